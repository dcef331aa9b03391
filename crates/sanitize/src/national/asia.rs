//! The ids of Asia and the Middle East.

use super::{Id, date6, date8};
use crate::checks::{luhn, number, value, verhoeff, weighted};

#[rustfmt::skip]
pub(super) fn ids() -> Vec<Id> {
    vec![
        Id { rule: "national.cn_id", source: "GB 11643-1999 (ISO 7064 MOD 11-2)", forms: &["!99999999999999999*", "999999 99999999 999*", "999999999999999"], check: Some(cn),
             words: &["身份证", "身份证号", "身份证号码", "公民身份号码", "身份号码", "居民身份证", "二代证", "身分证", "证件号码", "chinese id"] },
        Id { rule: "national.tw_id", source: "Taiwan, 國民身分證統一編號 (weights 1-9-8…)", forms: &["!A999999999"], check: Some(tw), words: &["身分證", "身分證字號", "身份證字號", "身分證號碼", "統一編號", "taiwan id"] },
        Id { rule: "national.hk_id", source: "Hong Kong Immigration Department, HKID", forms: &["A999999", "AA999999", "A999999*", "AA999999*"], check: None, words: &["hkid", "hkid no", "hong kong id", "香港身份證", "身份證號碼", "身份證"] },
        Id { rule: "national.jp_mynumber", source: "Japan, Ordinance 85 of 2014, My Number (mod 11)", forms: &["999999999999", "9999 9999 9999", "9999-9999-9999"], check: Some(mynumber), words: &["マイナンバー", "個人番号", "my number", "マイナンバーカード", "個人番号カード"] },
        Id { rule: "national.kr_rrn", source: "Korean Resident Registration Act, 주민등록번호", forms: &["!999999-9999999", "9999999999999"], check: Some(rrn), words: &["주민등록번호", "주민번호", "주민등록", "외국인등록번호", "resident registration number", "rrn"] },
        Id { rule: "national.in_aadhaar", source: "UIDAI, Aadhaar (Verhoeff)", forms: &["999999999999", "9999 9999 9999", "9999-9999-9999"], check: Some(|s| s[0] >= b'2' && verhoeff(s)),
             words: &["aadhaar", "aadhaar no", "aadhaar number", "aadhar", "adhaar", "uidai", "uid number", "आधार", "आधार संख्या", "आधार नंबर", "ஆதார்", "ఆధార్"] },
        Id { rule: "national.in_pan", source: "Income Tax Department of India, PAN", forms: &["!AAAAA9999A"], check: Some(|s| b"PCHFATBLJGEK".contains(&s[3])), words: &["pan", "pan card", "pan no", "pan number", "permanent account number", "पैन"] },
        Id { rule: "national.in_voter", source: "Election Commission of India, EPIC", forms: &["AAA9999999"], check: None, words: &["voter id", "epic", "epic no", "voter card", "elector's photo identity"] },
        Id { rule: "national.pk_cnic", source: "NADRA, CNIC", forms: &["!99999-9999999-9", "9999999999999"], check: Some(|s| s.len() == 13 && matches!(s[0], b'1'..=b'8')), words: &["cnic", "nicop", "nadra", "cnic no", "شناختی کارڈ"] },
        Id { rule: "national.bd_nid", source: "Bangladesh Election Commission, NID", forms: &["9999999999", "9999999999999", "99999999999999999"], check: None, words: &["nid", "nid no", "জাতীয় পরিচয়পত্র"] },
        Id { rule: "national.lk_nic", source: "Sri Lanka, NIC", forms: &["999999999A", "999999999999"], check: Some(|s| s.len() == 12 || matches!(s[9], b'V' | b'X')), words: &["nic", "nic no", "nic number"] },
        Id { rule: "national.sg_nric", source: "ICA Singapore, NRIC and FIN", forms: &["!A9999999A"], check: Some(nric), words: &["nric", "nric no", "nric number", "fin no", "fin number", "singapore id"] },
        Id { rule: "national.my_nric", source: "JPN Malaysia, MyKad", forms: &["!999999-99-9999", "999999999999"], check: Some(|s| date6(&s[4..6], &s[2..4])), words: &["mykad", "nric", "ic no", "ic number", "no. kp", "no kp", "kad pengenalan", "kp"] },
        Id { rule: "national.id_nik", source: "Indonesia, NIK", forms: &["9999999999999999", "999999 999999 9999"], check: Some(|s| { let day = number(&s[6..8]); crate::checks::day_month(if day > 40 { day - 40 } else { day }, number(&s[8..10]), None) }), words: &["nik", "ktp", "no ktp", "nomor ktp", "nomor induk kependudukan", "no. ktp"] },
        Id { rule: "national.th_id", source: "Thailand, เลขประจำตัวประชาชน (mod 11)", forms: &["!9-9999-99999-99-9", "9999999999999", "9 9999 99999 99 9"], check: Some(|s| (11 - weighted(&s[..12], &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 10 == value(s[12])),
             words: &["เลขประจำตัวประชาชน", "บัตรประชาชน", "เลขบัตรประชาชน", "thai id", "thai national id"] },
        Id { rule: "national.vn_cccd", source: "Vietnam, căn cước công dân", forms: &["999999999999", "999999999", "999 999 999 999"], check: None, words: &["cccd", "cmnd", "căn cước", "căn cước công dân", "số cccd", "số cmnd", "chứng minh nhân dân"] },
        Id { rule: "national.ph_id", source: "Philippines, PhilSys, SSS, TIN", forms: &["9999-9999-9999-9999", "99-9999999-9", "999-999-999", "999-999-999-999", "9999-9999999-9"], check: None, words: &["philsys", "psn", "sss", "sss no", "sss number", "philhealth", "umid", "crn"] },
        Id { rule: "national.tr_tckn", source: "5490 sayılı Kanun, T.C. kimlik numarası (two check digits)", forms: &["99999999999"], check: Some(tckn),
             words: &["tckn", "tc kimlik", "t.c. kimlik", "t.c. kimlik no", "tc kimlik no", "t.c kimlik", "kimlik no", "kimlik numarası", "tc no", "t.c. no", "vatandaşlık numarası", "tc"] },
        Id { rule: "national.il_id", source: "Israel, מספר זהות (Luhn)", forms: &["999999999", "99999999-9", "9-9999999-9"], check: Some(luhn), words: &["תעודת זהות", "ת.ז", "מספר זהות", "teudat zehut", "israeli id", "tz"] },
        Id { rule: "national.sa_id", source: "Saudi Absher, national id and iqama (Luhn)", forms: &["9999999999"], check: Some(|s| matches!(s[0], b'1' | b'2') && luhn(s)), words: &["iqama", "iqama no", "iqama number", "رقم الهوية", "الهوية الوطنية", "رقم الإقامة", "إقامة", "saudi id"] },
        Id { rule: "national.ae_id", source: "ICP, Emirates ID (Luhn)", forms: &["!999-9999-9999999-9", "999999999999999", "999 9999 9999999 9"], check: Some(|s| s.starts_with(b"784")), words: &["emirates id", "eid", "eida", "emirates id no", "رقم الهوية", "الهوية الإماراتية"] },
        Id { rule: "national.eg_id", source: "Egypt, الرقم القومي", forms: &["99999999999999"], check: Some(|s| matches!(s[0], b'2' | b'3') && date6(&s[5..7], &s[3..5])), words: &["الرقم القومي", "egyptian id", "رقم قومي"] },
        Id { rule: "national.kw_id", source: "PACI, civil id (mod 11)", forms: &["999999999999"], check: Some(|s| (11 - weighted(&s[..11], &[2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11) % 10 == value(s[11])), words: &["civil id", "الرقم المدني", "البطاقة المدنية"] },
        Id { rule: "national.qa_id", source: "Qatar, QID", forms: &["99999999999"], check: Some(|s| matches!(s[0], b'2' | b'3')), words: &["qid", "qatar id", "البطاقة الشخصية"] },
        Id { rule: "national.ir_id", source: "Iran, کد ملی (mod 11)", forms: &["9999999999", "999-999999-9"], check: Some(|s| { let rest = weighted(&s[..9], &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11; (if rest < 2 { rest } else { 11 - rest }) == value(s[9]) }), words: &["کد ملی", "کدملی", "شماره ملی", "code melli"] },
    ]
}

fn cn(s: &[u8]) -> bool {
    if s.len() == 15 {
        return date6(&s[10..12], &s[8..10]);
    }
    let sum = weighted(&s[..17], &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]);
    matches!(number(&s[..2]), 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83)
        && date8(&s[6..14])
        && b"10X98765432"[sum as usize % 11] == s[17]
}

fn tw(s: &[u8]) -> bool {
    const CODES: &[u32; 26] =
        &[10, 11, 12, 13, 14, 15, 16, 17, 34, 18, 19, 20, 21, 22, 35, 23, 24, 25, 26, 27, 28, 29, 32, 30, 31, 33];
    let code = CODES[usize::from(s[0] - b'A')];
    let sum = code / 10 + code % 10 * 9 + weighted(&s[1..], &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    matches!(s[1], b'1' | b'2' | b'8' | b'9') && sum.is_multiple_of(10)
}

fn mynumber(s: &[u8]) -> bool {
    let rest = weighted(&s[..11], &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    (if rest <= 1 { 0 } else { 11 - rest }) == value(s[11])
}

/// Numbers given out since October 2020 have no check digit.
fn rrn(s: &[u8]) -> bool {
    date6(&s[4..6], &s[2..4])
}

fn nric(s: &[u8]) -> bool {
    let sum = weighted(&s[1..8], &[2, 7, 6, 5, 4, 3, 2]);
    let rest = |plus: u32| (sum + plus) as usize % 11;
    match s[0] {
        b'S' => b"JZIHGFEDCBA"[rest(0)] == s[8],
        b'T' => b"JZIHGFEDCBA"[rest(4)] == s[8],
        b'F' => b"XWUTRQPNMLK"[rest(0)] == s[8],
        b'G' => b"XWUTRQPNMLK"[rest(4)] == s[8],
        b'M' => b"KLJNPQRTUWX"[10 - rest(3)] == s[8],
        _ => false,
    }
}

fn tckn(s: &[u8]) -> bool {
    let odd = weighted(s, &[1, 0, 1, 0, 1, 0, 1, 0, 1]);
    let even = weighted(s, &[0, 1, 0, 1, 0, 1, 0, 1]);
    let all = weighted(&s[..10], &[1; 10]);
    s[0] != b'0' && (odd * 7 + 100 - even) % 10 == value(s[9]) && all % 10 == value(s[10])
}
