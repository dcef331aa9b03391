//! Holds [`FINGERPRINT`](crate::FINGERPRINT) to the rules: a sample's output is pinned to it.

use sha2::{Digest, Sha256};

/// The fingerprint and the digest of what the rules find in the sample. Where this test fails after a change of rules, raise the
/// number in `FINGERPRINT` and put the new digest here: stores made with the old rules are then made anew.
const PINNED: (&str, &str) = ("rules-1", "3fd815c1ba763d81");

const SAMPLE: &[&str] = &[
    "Jo <jo@example.org> o'brien@mail.example.co.uk logo@2x.png git@github.com:a/b.git 邮箱jo@example.org。",
    "IBAN GB82 WEST 1234 5698 7654 32; DE89370400440532013001; Konto DE89370400440532013001",
    "card 4111 1111 1111 1111, 4111111111111112, 3056 930902 5904, Kartennummer 6759649826438453",
    "203.0.113.7 version 9.8.0.9 2001:db8::1 dead::beef 00:1A:2B:3C:4D:5E https://jo:pw@example.org/x",
    "tel 030 1234567, +49 170 1234567, (415) 555-2671, 01 23 45 67 89, id 943 476 5919, pages 131-317",
    "SSN 219-09-9999 or 219-09-9998, NHS number 943 476 5919, DNI 12345678Z, 身份证号11010519491231002X, CPF 111.444.777-36",
    "USt-IdNr. DE136695976, ATU13585627 (VAT), born July 15, 1985, 1985年7月15日生まれ, published 1985-07-15",
    "Passport L38517754, DL# X002898610178, Kennzeichen HH-HD 95, ZIP 12345-6789, PLZ 87151, cap 20155",
    "password: hunter2, api_key = \"0a1b2c3d4e5f6a7b8c9d\", sk_live_aB3dE5fG7hJ9kL2m, wallet 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "Jo Doe;15.07.1985;341725410;DE89370400440532013000\n| Jo Doe | 0937 558410 | jo@example.org |",
];

#[test]
fn the_fingerprint_names_these_rules() {
    let mut hash = Sha256::new();
    for text in SAMPLE {
        for span in crate::scan(text) {
            hash.update(format!("{} {} {} {}\n", span.start, span.end, span.kind, span.rule));
        }
    }
    for rule in crate::rules() {
        hash.update(rule.name);
    }
    let digest = data_encoding::HEXLOWER.encode(&hash.finalize()[..8]);
    assert_eq!((crate::FINGERPRINT, digest.as_str()), PINNED);
}
