//! The ids of the Nordic and Baltic countries, Russia, Ukraine and Kazakhstan.

use super::{Id, date6};
use crate::checks::{luhn, number, value, weighted};

#[rustfmt::skip]
pub(super) fn ids() -> Vec<Id> {
    vec![
        Id { rule: "national.se_pnr", source: "Skatteverket SKV 704, personnummer and samordningsnummer (Luhn)", forms: &["!999999-9999", "!99999999-9999", "9999999999", "999999999999", "999999 9999", "99999999 9999"], check: Some(personnummer),
             words: &["personnummer", "personnr", "pers.nr", "persnr", "pnr", "person nr", "samordningsnummer", "swedish id"] },
        Id { rule: "national.no_fnr", source: "Skatteetaten, fødselsnummer and D-nummer (two mod 11)", forms: &["!99999999999", "!999999 99999", "!999999-99999"], check: Some(fodselsnummer),
             words: &["fødselsnummer", "fødselsnr", "fnr", "f.nr", "personnummer", "personnr", "d-nummer", "norwegian id", "fodselsnummer"] },
        Id { rule: "national.dk_cpr", source: "CPR-kontoret, personnummer (mod 11 not binding since 2007)", forms: &["999999-9999", "9999999999", "999999 9999"], check: Some(|s| date6(&s[..2], &s[2..4])), words: &["cpr", "cpr-nr", "cpr-nummer", "cpr nummer", "cprnr", "cpr nr", "personnummer", "cpr number"] },
        Id { rule: "national.fi_hetu", source: "DVV, henkilötunnus (mod 31)", forms: &["!999999-999*", "!999999A999*"], check: Some(hetu), words: &["henkilötunnus", "hetu", "henkilötunnuksesi", "henkilötunnuksen", "sotu", "personbeteckning", "henkilotunnus", "finnish id"] },
        Id { rule: "national.is_kt", source: "Þjóðskrá, kennitala (mod 11)", forms: &["!999999-9999", "9999999999"], check: Some(kennitala), words: &["kennitala", "kennitölu", "kt"] },
        Id { rule: "national.ee_lt", source: "EVS 585, isikukood; asmens kodas (two-step mod 11)", forms: &["99999999999"], check: Some(isikukood), words: &["isikukood", "isikukoodi", "ik", "asmens kodas", "a.k", "personal code", "ak"] },
        Id { rule: "national.lv_pk", source: "Personas kods", forms: &["999999-99999", "99999999999"], check: Some(|s| date6(&s[..2], &s[2..4]) || s.starts_with(b"32")), words: &["personas kods", "p.k", "pers. kods"] },
        Id { rule: "national.ru_snils", source: "ПФР, СНИЛС (mod 101)", forms: &["!999-999-999 99", "!999-999-999-99", "99999999999", "999 999 999 99"], check: Some(snils), words: &["снилс", "snils", "страховой номер", "страховое свидетельство"] },
        Id { rule: "national.ru_inn", source: "ФНС, ИНН физического лица (two mod 11)", forms: &["999999999999"], check: Some(inn), words: &["инн", "inn", "идентификационный номер налогоплательщика"] },
        Id { rule: "national.ua_rnokpp", source: "ДПС, РНОКПП (mod 11)", forms: &["9999999999"], check: Some(|s| weighted(&s[..9], &[10, 5, 7, 9, 4, 6, 10, 5, 7]) % 11 % 10 == value(s[9]) || ua(s)), words: &["рнокпп", "іпн", "ипн", "инн", "rnokpp", "податковий номер", "ідентифікаційний код"] },
        Id { rule: "national.ua_card", source: "ID-картка, УНЗР", forms: &["99999999-99999", "999999999"], check: None, words: &["унзр", "id-картка", "ід-картка"] },
        Id { rule: "national.kz_iin", source: "ИИН (two-step mod 11)", forms: &["999999999999"], check: Some(iin), words: &["иин", "жсн", "iin"] },
    ]
}

fn personnummer(s: &[u8]) -> bool {
    let s = if s.len() == 12 { &s[2..] } else { s };
    let day = number(&s[4..6]);
    crate::checks::day_month(if day > 60 { day - 60 } else { day }, number(&s[2..4]), None) && luhn(s)
}

fn fodselsnummer(s: &[u8]) -> bool {
    let day = number(&s[..2]);
    let month = number(&s[2..4]);
    let born = crate::checks::day_month(
        if day > 40 { day - 40 } else { day },
        if month > 40 { month - 40 } else { month },
        None,
    );
    let first = weighted(s, &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1, 0]).is_multiple_of(11);
    let second = weighted(s, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11);
    born && first && second
}

fn hetu(s: &[u8]) -> bool {
    let tail = &s[s.len() - 4..];
    let century = s.len() == 10 || b"ABCDEFUVWXY".contains(&s[6]);
    let rest = (number(&s[..6]) * 1000 + number(&tail[..3])) % 31;
    century && date6(&s[..2], &s[2..4]) && b"0123456789ABCDEFHJKLMNPRSTUVWXY"[rest as usize] == tail[3]
}

fn kennitala(s: &[u8]) -> bool {
    let day = number(&s[..2]);
    let rest = weighted(&s[..8], &[3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    let check = (11 - rest) % 11;
    matches!(s[9], b'0' | b'8' | b'9')
        && crate::checks::day_month(if day > 40 { day - 40 } else { day }, number(&s[2..4]), None)
        && check == value(s[8])
}

fn isikukood(s: &[u8]) -> bool {
    let mut rest = weighted(&s[..10], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
    if rest == 10 {
        rest = weighted(&s[..10], &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10;
    }
    matches!(s[0], b'1'..=b'8') && date6(&s[5..7], &s[3..5]) && rest == value(s[10])
}

fn snils(s: &[u8]) -> bool {
    let rest = weighted(&s[..9], &[9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101;
    rest % 100 == number(&s[9..])
}

fn inn(s: &[u8]) -> bool {
    let first = weighted(&s[..10], &[7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11 % 10;
    let second = weighted(&s[..11], &[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11 % 10;
    first == value(s[10]) && second == value(s[11])
}

/// The first weight is minus one.
fn ua(s: &[u8]) -> bool {
    let sum = weighted(&s[1..9], &[5, 7, 9, 4, 6, 10, 5, 7]) + 11 - value(s[0]);
    sum % 11 % 10 == value(s[9])
}

fn iin(s: &[u8]) -> bool {
    let mut rest = weighted(&s[..11], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) % 11;
    if rest == 10 {
        rest = weighted(&s[..11], &[3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2]) % 11;
    }
    date6(&s[4..6], &s[2..4]) && rest == value(s[11])
}
