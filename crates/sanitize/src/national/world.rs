//! The ids of Africa and Oceania.

use super::{Id, date6};
use crate::checks::{luhn, value, weighted};

#[rustfmt::skip]
pub(super) fn ids() -> Vec<Id> {
    vec![
        Id { rule: "national.za_id", source: "South African Department of Home Affairs, identity number (Luhn)", forms: &["!9999999999999", "999999 9999 999", "999999 9999 99 9"], check: Some(|s| date6(&s[4..6], &s[2..4]) && matches!(s[10], b'0' | b'1' | b'2') && luhn(s)),
             words: &["sa id", "rsa id", "south african id", "sa id number", "za id", "rsa id number", "id-nommer", "identiteitsnommer", "south african identity number"] },
        Id { rule: "national.au_tfn", source: "ATO, tax file number (mod 11)", forms: &["999999999", "999 999 999", "999-999-999", "99999999", "99 999 999"], check: Some(tfn), words: &["tfn", "tax file number", "tax file no", "tax file"] },
        Id { rule: "national.au_medicare", source: "Services Australia, Medicare card (mod 10)", forms: &["9999999999", "9999 99999 9", "99999999999", "9999 99999 9 9", "9999-99999-9"], check: Some(|s| matches!(s[0], b'2'..=b'6') && weighted(&s[..8], &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == value(s[8])), words: &["medicare", "medicare no", "medicare number", "medicare card"] },
        Id { rule: "national.nz_ird", source: "Inland Revenue New Zealand, IRD number (mod 11)", forms: &["999999999", "99999999", "99-999-999", "999-999-999", "999 999 999"], check: Some(ird), words: &["ird", "ird no", "ird number"] },
        Id { rule: "national.ng_nin", source: "NIMC Nigeria, NIN; CBN, BVN", forms: &["99999999999"], check: None, words: &["NIN", "nin number", "bvn", "national identification number", "bank verification number"] },
        Id { rule: "national.ke_id", source: "Kenya, national identity card and KRA PIN", forms: &["99999999", "9999999", "A999999999A"], check: None, words: &["kra pin", "huduma", "kenyan id", "kitambulisho"] },
        Id { rule: "national.gh_card", source: "NIA, Ghana Card", forms: &["AAA-999999999-9"], check: None, words: &["ghana card", "ghanacard"] },
        Id { rule: "national.ma_cin", source: "Morocco, CNIE", forms: &["A999999", "AA999999", "AA99999", "A99999"], check: None, words: &["CIN", "cnie", "c.i.n", "carte nationale"] },
        Id { rule: "national.tn_cin", source: "Tunisia, CIN; Mauritius and others of eight digits", forms: &["99999999"], check: None, words: &["CIN", "c.i.n", "بطاقة التعريف"] },
    ]
}

fn tfn(s: &[u8]) -> bool {
    match s.len() {
        9 => weighted(s, &[1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 == 0,
        _ => weighted(s, &[10, 7, 8, 4, 6, 3, 5, 1]) % 11 == 0,
    }
}

fn ird(s: &[u8]) -> bool {
    let padded = [&b"0"[..9 - s.len()], s].concat();
    let step = |weights: &[u32]| (11 - weighted(&padded[..8], weights) % 11) % 11;
    let mut check = step(&[3, 2, 7, 6, 5, 4, 3, 2]);
    if check == 10 {
        check = step(&[7, 4, 3, 2, 5, 2, 7, 6]);
    }
    check == value(padded[8])
}
