//! What stands in a value's place, and what can be told from it.

use bastion_sanitize::{FINGERPRINT, Kind, TokenKey, rules, sanitize, scan, tokens, unescape};

fn key() -> TokenKey {
    TokenKey::new([9; 32])
}

#[test]
fn a_token_stands_for_each_value() {
    let text = "Jo <jo@example.org>, again JO@example.org, card 4111 1111 1111 1111.";
    let clean = sanitize(text, &key()).unwrap();
    assert_eq!(clean.found.len(), 2);
    assert_eq!(
        clean.counts.iter().map(|(k, n)| (*k, *n)).collect::<Vec<_>>(),
        [(Kind::Email, 2), (Kind::CreditCard, 1)]
    );
    let (mail, card) = (&clean.found[0], &clean.found[1]);
    assert_eq!((mail.value.as_str(), mail.normal.as_str(), mail.times), ("jo@example.org", "jo@example.org", 2));
    assert_eq!(clean.text, format!("Jo <{0}>, again {0}, card {1}.", mail.token, card.token));
    let ranges: Vec<_> = tokens(&clean.text).map(|range| &clean.text[range]).collect();
    assert_eq!(ranges, [&mail.token, &mail.token, &card.token]);
    assert!(mail.token.starts_with("[EMAIL_") && mail.token.len() == "[EMAIL_]".len() + 12);
}

#[test]
fn tokens_depend_on_key_kind_and_value_alone() {
    let token = |text: &str, key: &TokenKey| sanitize(text, key).unwrap().found[0].token.clone();
    let mail = token("jo@example.org", &key());
    assert_eq!(token("Write to jo@example.org today", &key()), mail);
    assert_ne!(token("jo@example.org", &TokenKey::new([8; 32])), mail);
    assert_ne!(token("jo@example.net", &key()), mail);
}

#[test]
fn look_alikes_are_told_from_tokens() {
    let text = "see [EMAIL_abcdefghij23] and [\\IP_abcdefghij23] of jo@example.org";
    let clean = sanitize(text, &key()).unwrap();
    assert!(clean.text.starts_with("see [\\EMAIL_abcdefghij23] and [\\\\IP_abcdefghij23] of [EMAIL_"));
    assert_eq!(tokens(&clean.text).count(), 1);
    assert!(unescape(&clean.text).starts_with("see [EMAIL_abcdefghij23] and [\\IP_abcdefghij23] of [EMAIL_"));
}

#[test]
fn debug_output_holds_no_value() {
    let clean = sanitize("jo@example.org", &key()).unwrap();
    assert!(!format!("{clean:?}").contains("jo@"));
}

#[test]
fn every_rule_is_documented() {
    let page = include_str!("../../../../docs/sanitize.md");
    for rule in rules() {
        assert!(page.contains(&format!("`{}`", rule.name)), "docs/sanitize.md lacks {}", rule.name);
    }
    assert!(!FINGERPRINT.is_empty());
}

#[test]
fn spans_name_listed_rules() {
    for text in [
        "jo@example.org",
        "tel 030 1234567",
        "DE89370400440532013000",
        "born 1985-07-15",
        "password: hunter2",
        "https://a:b@example.org",
    ] {
        for span in scan(text) {
            assert!(rules().iter().any(|rule| rule.name == span.rule && rule.kind == span.kind), "{}", span.rule);
        }
    }
}
