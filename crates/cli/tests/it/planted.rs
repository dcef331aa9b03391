//! A value that is planted in a document of each kind is found nowhere but in the extract store and the vault.

use crate::formats;
use crate::support::{Machine, files, holds, rows};

const MAIL: &str = "quillon.zebra@example.org";
const IBAN: &str = "DE89370400440532013000";
const SECRET: &str = "AKIAZQ3DPLANTED7XYZW";

#[test]
fn planted_values_leave_the_plaintext_stores_nowhere() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[]);
    let lines = [
        "The walnut harvest of the northern orchard was good.".to_owned(),
        format!("Write to {MAIL} about it."),
        format!("Pay to IBAN {IBAN} please."),
        format!("The access key is {SECRET} for the bucket."),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let names = formats::write_all(&folder, &lines);
    // Values in names are hidden where names are shown.
    std::fs::write(folder.join(format!("about {MAIL}.txt")), "walnut names\n").unwrap();

    let first = machine.swept(&folder).ok();
    let up = machine.up(&folder);
    let mut said = vec![first.out, first.err];
    for args in [
        vec!["search", "walnut harvest", "-k", "50", "--json"],
        vec!["cards", "--json"],
        vec!["cards", "--dirs", "--json"],
        vec!["status", "--json"],
        vec!["health"],
    ] {
        let ran = machine.run(&args).ok();
        said.push(ran.out);
        said.push(ran.err);
    }
    // Nor is a value an oracle: asking for the part of it that nothing else holds finds nothing.
    for part in ["quillon", SECRET, IBAN] {
        let answer: serde_json::Value =
            serde_json::from_str(&machine.run(&["search", part, "--json"]).ok().out).unwrap();
        assert_eq!(answer["hits"].as_array().unwrap().len(), 0, "{part} finds {answer}");
    }

    let cards = rows(&folder.join(".agent/catalog/files.jsonl"));
    for name in &names {
        let card = cards.iter().find(|card| card["path"] == *name).unwrap_or_else(|| panic!("no card of {name}"));
        assert_eq!(card["status"], "ok", "{card}");
        for kind in ["EMAIL", "IBAN", "SECRET"] {
            assert!(card["hidden"][kind].as_u64() >= Some(1), "{name}: no {kind} was hidden: {card}");
        }
        let doc = card["doc"].as_str().unwrap();
        let read = machine.run(&["read", doc]).ok();
        assert!(read.out.contains("walnut harvest"), "{name}: {}", read.out);
        said.push(read.out);
    }
    said.push(up.said());
    assert_eq!(up.stop(), 143);

    let out = folder.join(".agent");
    // Terms are kept in parts and lower case: what is looked for is a part that only a planted value has.
    let parts = ["quillon", "Quillon", SECRET, &SECRET.to_lowercase(), IBAN, &IBAN.to_lowercase()].map(str::to_owned);
    let mut searched = 0;
    for path in files(&out).into_iter().chain(files(&machine.state())) {
        let plain = path.starts_with(out.join("extract")) || path.file_name().is_some_and(|name| name == "vault.db");
        // The walk map and the rows hold real names, one of which has the address in it; the endpoint shows it sanitized.
        let names = path == out.join("walk.jsonl") || path.file_name().is_some_and(|name| name == "rows.db");
        let mut bytes = std::fs::read(&path).unwrap();
        if names {
            bytes = String::from_utf8_lossy(&bytes).replace(&format!("about {MAIL}.txt"), "").into_bytes();
        }
        for part in parts.iter().filter(|_| !plain) {
            assert!(!holds(&bytes, part), "{part} is in {}", path.display());
            searched += 1;
        }
    }
    assert!(searched > 60, "only {searched} files were searched");
    for text in &said {
        for value in [MAIL, IBAN, SECRET] {
            assert!(!text.contains(value), "{value} was said:\n{text}");
        }
    }

    // The control: it is in the two places where it belongs, so the search above can fail.
    let extracts = files(&out.join("extract"));
    assert!(extracts.iter().filter(|path| holds(&std::fs::read(path).unwrap(), MAIL)).count() >= names.len() - 2);
    let token = rows(&out.join("catalog/files.jsonl"))
        .iter()
        .find_map(|card| {
            let head = card["head"].as_str()?;
            let start = head.find("[IBAN_")?;
            Some(head[start..start + 19].to_owned())
        })
        .unwrap();
    assert_eq!(machine.run(&["reveal", &token]).ok().out.trim_end().split('\t').next_back(), Some(IBAN));
}
