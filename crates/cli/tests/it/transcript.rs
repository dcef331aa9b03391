//! The README's transcript is what the program says.

use std::path::Path;

use crate::support::Machine;

/// The block of the README that begins with `$ bastion up`.
fn transcript() -> Vec<String> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let mut blocks = readme.split("```");
    let block = blocks
        .find(|block| block.trim_start_matches("console").trim_start().starts_with("$ bastion up"))
        .expect("the README has no transcript");
    block.lines().map(str::to_owned).filter(|line| !line.is_empty() && line != "console").collect()
}

/// Ids, numbers, times and tokens are different each time.
fn normal(line: &str) -> String {
    let is_id = |word: &str| {
        let digits = word.trim_end_matches('…');
        digits.chars().all(|char| char.is_ascii_hexdigit())
            && (digits.len() == 64 || !digits.is_empty() && digits != word)
    };
    line.split_whitespace()
        .map(|word| if is_id(word) { "ID".to_owned() } else { normal_word(word) })
        .collect::<Vec<_>>()
        .join(" ")
}

fn normal_word(word: &str) -> String {
    let mut normal = String::new();
    let mut rest = word;
    while let Some(char) = rest.chars().next() {
        if char.is_ascii_digit() {
            normal.push('N');
            rest = rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
        } else if let Some(token) = rest.strip_prefix("[EMAIL_") {
            normal.push_str("[EMAIL_X]");
            rest = token.split_once(']').map_or("", |(_, rest)| rest);
        } else {
            normal.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    normal
}

#[test]
fn the_readme_tells_what_happens() {
    let machine = Machine::new();
    let folder = machine.folder(
        "Documents",
        &[
            (
                "garden.md",
                "# Garden\n\nThe roses want pruning in March. Ask maria.lopez@example.org for the good shears.\n",
            ),
            ("bank.txt", "Rent goes to DE89 3704 0044 0532 0130 00 on the first of the month.\n"),
        ],
    );
    let up = machine.up(&folder);
    let mut said = up.said();
    {
        let query = "when to prune roses";
        said.push_str(&machine.run(&["search", query]).ok().out);
    }
    let said: Vec<String> = said.lines().map(normal).collect();
    let home = machine.home.path().canonicalize().unwrap().display().to_string();
    let host = machine.owner();
    for line in transcript() {
        if line.starts_with('$') || line.trim() == "…" {
            continue;
        }
        let wanted = normal(&line.replace("~", &home).replace("my-laptop", host.trim()));
        assert!(said.contains(&wanted), "the README says what was not said:\n{wanted}\n--- said:\n{}", said.join("\n"));
    }
    drop(up);
}
