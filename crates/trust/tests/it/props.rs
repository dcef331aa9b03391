//! Properties: no input makes reading panic; signing keeps all other bytes; scope and pruning agree.

use bastion_trust::{parse, payload};
use proptest::prelude::*;

use crate::support::{HOST, World};

/// Pieces of YAML that a manifest could be made of, and some that it can't.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("v: 1".to_owned()),
        Just("id: a".to_owned()),
        Just("owner:".to_owned()),
        Just("  host: h".to_owned()),
        Just("roots:".to_owned()),
        Just("- x".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("&a".to_owned()),
        Just("*a".to_owned()),
        Just("!t".to_owned()),
        Just("|".to_owned()),
        Just(">-".to_owned()),
        Just("'".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("# c".to_owned()),
        Just("? ".to_owned()),
        Just(": ".to_owned()),
        Just("---".to_owned()),
        Just("...".to_owned()),
        Just("%YAML 1.2".to_owned()),
        Just(",".to_owned()),
        Just("\t".to_owned()),
        Just("\r".to_owned()),
        Just("\u{85}".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("<<: 1".to_owned()),
        "[ -~]{0,6}",
        "\\PC{0,3}",
    ]
}

/// A manifest's lines in some layout, none of them the signature.
fn manifest() -> impl Strategy<Value = String> {
    let comment = prop_oneof![Just(String::new()), "[a-z é#:'\\-]{0,12}".prop_map(|text| format!(" # {text}"))];
    let lines = Just(vec![
        "v: 1",
        "id: 'a'",
        "owner: {host: alice.example}",
        "roots: [..]",
        "serial: 3",
        "sweep: \"daily\"",
        "exclude:\n  - a\n  - >-\n    b\n    c",
    ])
    .prop_shuffle();
    let breaks = prop_oneof![Just("\n"), Just("\r\n")];
    (lines, proptest::collection::vec(comment, 7), breaks, any::<bool>(), any::<bool>()).prop_map(
        |(lines, comments, nl, last, blank)| {
            let joined: Vec<String> = lines
                .iter()
                .zip(comments)
                .map(
                    |(line, comment)| if line.contains('\n') { (*line).to_owned() } else { format!("{line}{comment}") },
                )
                .collect();
            let mut text = joined.join(if blank { "\n\n" } else { "\n" });
            if last {
                text.push('\n');
            }
            text.replace('\n', nl)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn no_yaml_makes_reading_panic(pieces in proptest::collection::vec((piece(), prop_oneof![Just("\n"), Just(" "), Just("\n  "), Just("")]), 0..24)) {
        let text: String = pieces.into_iter().map(|(piece, gap)| piece + gap).collect();
        if let Err(error) = parse(text.as_bytes()) {
            prop_assert!(error.line >= 1 && error.column >= 1 && error.line <= text.lines().count() + text.matches('\r').count() + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn signing_keeps_all_other_bytes(text in manifest()) {
        let world = World::new();
        world.write(&text);
        world.sign();
        let signed = world.read();
        prop_assert!(world.judge().is_ok());
        // take out what signing may write, and the old text is there again
        let at = signed.find("signature:").unwrap();
        let before = signed[..at].replacen("serial: 4", "serial: 3", 1);
        prop_assert_eq!(before.trim_end_matches(['\r', '\n']), text.trim_end_matches(['\r', '\n']));
        prop_assert_eq!(signed.ends_with('\n'), text.ends_with('\n'));
        // and a second signing changes serial and value only
        world.sign();
        let again = world.read();
        let strip = |text: &str| text.lines().filter(|line| !line.starts_with("  value:")).collect::<Vec<_>>().join("\n").replace("serial: 5", "serial: 4");
        prop_assert_eq!(strip(&again), strip(&signed));
    }

    #[test]
    fn the_payload_is_a_fixed_point(text in manifest()) {
        // canonical JSON is YAML: reading the payload gives the payload
        let first = payload(text.as_bytes()).unwrap();
        prop_assert_eq!(payload(&first).unwrap(), first);
        let parsed = parse(text.as_bytes()).unwrap();
        prop_assert_eq!(parsed.manifest().owner_host.as_str(), HOST);
    }
}
