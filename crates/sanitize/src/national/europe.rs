//! The ids of western, central and southern Europe.

use super::{Id, date6, date8};
use crate::checks::{ean13, luhn, mod11_10, modulo, number, value, weighted};

#[rustfmt::skip]
pub(super) fn ids() -> Vec<Id> {
    vec![
        Id { rule: "national.uk_nino", source: "HMRC National Insurance Manual NIM39110", forms: &["!AA999999A", "AA 99 99 99 A", "AA 999999 A"], check: Some(nino),
             words: &["national insurance number*", "national insurance no", "national insurance", "ni number", "ni no", "nino", "n.i. number", "nat ins no", "insurance number"] },
        Id { rule: "national.uk_nhs", source: "NHS Data Dictionary, NHS Number (mod 11)", forms: &["9999999999", "999 999 9999", "999-999-9999"], check: Some(nhs),
             words: &["nhs", "nhs no", "nhs number", "nhs_number", "nhs nr", "nhs id", "chi number"] },
        Id { rule: "national.uk_utr", source: "HMRC unique taxpayer reference (mod 11)", forms: &["9999999999", "99999 99999"], check: Some(utr), words: &["utr", "unique taxpayer reference", "tax reference"] },
        Id { rule: "national.ie_ppsn", source: "Irish Department of Social Protection, PPS number (mod 23)", forms: &["9999999A", "9999999AA"], check: Some(ppsn), words: &["pps", "ppsn", "pps no", "pps number", "uimhir psp"] },
        Id { rule: "national.de_tax_id", source: "BZSt, Steuerliche Identifikationsnummer; ISO 7064 MOD 11,10", forms: &["99999999999", "99 999 999 999"], check: Some(de_tax),
             words: &["steuer-id*", "steuerid", "steueridentifikationsnummer", "steuer id", "steueridentnummer", "steuer-identifikationsnummer", "steuerliche identifikationsnummer", "idnr", "id-nr", "identifikationsnummer", "tin"] },
        Id { rule: "national.de_pension", source: "VKVV section 2, Rentenversicherungsnummer", forms: &["99999999A999", "99 999999 A 999", "99 999999 A999"], check: Some(de_pension),
             words: &["rentenversicherungsnummer", "sozialversicherungsnummer", "sozialversicherungsnr", "sv-nummer", "svnr", "sv-nr", "versicherungsnummer", "rvnr", "rv-nummer"] },
        Id { rule: "national.de_health", source: "GKV, Krankenversichertennummer (mod 10)", forms: &["A999999999"], check: None, words: &["krankenversichertennummer", "krankenversicherungsnummer", "kvnr", "versichertennummer", "krankenkassennummer"] },
        Id { rule: "national.de_card", source: "BSI TR-03110, ICAO 9303 (7-3-1) for the Personalausweis", forms: &["*********", "**********"], check: Some(icao),
             words: &["personalausweis*", "personalausweisnummer", "ausweisnummer", "ausweis-nr", "ausweisnr", "perso-nr"] },
        Id { rule: "national.de_tax_number", source: "German Steuernummer as the finance offices print it", forms: &["99/999/99999", "999/999/99999", "9999999999", "99999999999", "999/9999/9999", "9999999999999"], check: None, words: &["steuernummer", "steuernr", "st.-nr", "st-nr", "steuer-nr"] },
        Id { rule: "national.at_svnr", source: "ASVG, Sozialversicherungsnummer (mod 11)", forms: &["9999999999", "9999 999999", "9999-999999"], check: Some(at_svnr), words: &["svnr", "sv-nr", "sozialversicherungsnummer", "sozialversicherungsnr", "versicherungsnummer", "e-card"] },
        Id { rule: "national.ch_ahv", source: "AHVG art. 50c, AHVN13; EAN-13 check", forms: &["!999.9999.9999.99", "!9999999999999", "!999 9999 9999 99", "999-9999-9999-99"], check: Some(|s| s.starts_with(b"756") && ean13(s)),
             words: &["ahv", "ahv-nr", "ahv-nummer", "ahv nummer", "ahvn13", "avs", "n° avs", "no avs", "numero avs", "navs13", "ahv-nr.", "sozialversicherungsnummer", "numéro avs"] },
        Id { rule: "national.fr_nir", source: "INSEE, NIR (97 less the number mod 97)", forms: &["!999999*99999999", "!9 99 99 9* 999 999 99", "!9 99 99 9* 999 999/99", "9999999999999", "9 99 99 9* 999 999"], check: Some(nir),
             words: &["nir", "sécurité sociale", "securite sociale", "sécu", "n° de sécurité sociale", "numéro de sécurité sociale", "numéro de sécu", "n° sécu", "no de sécu", "n° de sécu", "nss", "insee", "n° ss", "immatriculation sociale"] },
        Id { rule: "national.fr_spi", source: "DGFiP, numéro fiscal de référence (mod 511)", forms: &["9999999999999", "99 99 999 999 999"], check: Some(|s| s.len() == 13 && s[0] < b'4' && modulo(&s[..10], 511) == u64::from(number(&s[10..]))),
             words: &["numéro fiscal", "n° fiscal", "spi", "référence fiscale", "identifiant fiscal"] },
        Id { rule: "national.be_rrn", source: "Royal decree of 3 April 1984, Rijksregisternummer (mod 97)", forms: &["!99.99.99-999.99", "99999999999", "99.99.99.999.99", "999999-999-99", "99 99 99 999 99", "99.99.99-999-99"], check: Some(rrn),
             words: &["rijksregisternummer", "rijksregister", "rijksregisternr", "rrn", "numéro national", "n° national", "numéro de registre national", "registre national", "n° registre national", "nationaal nummer", "insz", "niss", "nationalregisternummer", "national register number"] },
        Id { rule: "national.nl_bsn", source: "Wet algemene bepalingen burgerservicenummer, elfproef", forms: &["999999999", "9999.99.999", "999.999.999", "9999 99 999", "999 999 999", "99999999"], check: Some(bsn),
             words: &["bsn", "burgerservicenummer", "burger service nummer", "sofinummer", "sofi-nummer", "sofi", "bsn-nummer", "bsn nummer", "bsnnr", "citizen service number"] },
        Id { rule: "national.lu_matricule", source: "Luxembourg CCSS, matricule (Luhn and Verhoeff)", forms: &["!9999999999999"], check: Some(|s| date8(s) && luhn(&s[..12]) && crate::checks::verhoeff(&[&s[..11], &s[12..]].concat())), words: &["matricule", "matricule national", "identifikatiounsnummer"] },
        Id { rule: "national.es_nif", source: "Orden INT, NIF (mod 23)", forms: &["!99999999A", "!99999999-A", "99.999.999-A", "99.999.999 A", "99999999 A"], check: Some(|s| nif_letter(&s[..8]) == s[8]),
             words: &["nif", "n.i.f", "dni", "d.n.i", "dni/nif", "nif/nie", "documento nacional de identidad", "número de identificación fiscal"] },
        Id { rule: "national.es_nie", source: "Orden INT, NIE (mod 23)", forms: &["!A9999999A", "!A-9999999-A", "!A9999999-A", "A-9999999A"], check: Some(nie), words: &["nie", "n.i.e", "nif/nie", "número de identidad de extranjero", "tarjeta de residencia"] },
        Id { rule: "national.es_nss", source: "Seguridad Social, número de afiliación (mod 97)", forms: &["999999999999", "99/9999999999", "99/99999999/99", "99 99999999 99"], check: Some(|s| modulo(&s[..10], 97) == u64::from(number(&s[10..]))), words: &["seguridad social", "nss", "n.s.s", "nuss", "número de afiliación", "naf"] },
        Id { rule: "national.pt_nif", source: "Autoridade Tributária, NIF (mod 11)", forms: &["999999999", "999 999 999", "999.999.999", "999-999-999"], check: Some(pt_nif), words: &["nif", "n.i.f", "contribuinte", "nº contribuinte", "número de contribuinte", "n.º de contribuinte", "nº de contribuinte", "número fiscal", "numero fiscal"] },
        Id { rule: "national.pt_card", source: "Cartão de cidadão, número de documento (Luhn over base 36)", forms: &["99999999 9 AA9", "999999999AA9", "99999999-9-AA9", "999999999"], check: Some(pt_card), words: &["cartão de cidadão", "cartao de cidadao", "cartão cidadão", "bilhete de identidade", "nº cc"] },
        Id { rule: "national.pt_niss", source: "Segurança Social, NISS (weighted primes)", forms: &["99999999999", "999 9999 9999"], check: Some(|s| (9 - weighted(&s[..10], &[29, 23, 19, 17, 13, 11, 7, 5, 3, 2]) % 10) == value(s[10])), words: &["niss", "segurança social", "nº segurança social"] },
        Id { rule: "national.it_cf", source: "DM 23/12/1976, codice fiscale (odd and even tables, omocodia)", forms: &["!AAAAAA**A**A***A", "AAA AAA **A** A***A", "AAAAAA **A** A***A"], check: Some(codice),
             words: &["codice fiscale", "cod. fisc", "cod fisc", "cod.fisc", "c.f", "cf", "codice_fiscale", "codicefiscale", "cod. fiscale", "cod fiscale", "tessera sanitaria"] },
        Id { rule: "national.it_card", source: "Carta d'identità elettronica and older cards", forms: &["AA99999AA", "AA9999999", "9999999AA"], check: None, words: &["carta d'identità", "carta di identità", "carta identità", "c.i", "cie", "documento d'identità"] },
        Id { rule: "national.gr_amka", source: "ΑΜΚΑ, date and Luhn", forms: &["99999999999", "999999 99999"], check: Some(|s| date6(&s[..2], &s[2..4]) && luhn(s)), words: &["αμκα", "α.μ.κ.α", "amka"] },
        Id { rule: "national.gr_afm", source: "ΑΦΜ (powers of two, mod 11)", forms: &["999999999"], check: Some(|s| weighted(&s[..8], &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == value(s[8])), words: &["αφμ", "α.φ.μ", "afm", "αριθμός φορολογικού μητρώου"] },
        Id { rule: "national.gr_card", source: "Ελληνική ταυτότητα", forms: &["A999999", "AA999999", "A 999999", "AA 999999"], check: None, words: &["αδτ", "α.δ.τ", "ταυτότητα", "αριθμός ταυτότητας", "αρ. ταυτότητας", "δελτίο ταυτότητας"] },
        Id { rule: "national.mt_id", source: "Maltese identity card", forms: &["9999999A", "999999A", "99999A"], check: Some(|s| matches!(s[s.len() - 1], b'M' | b'G' | b'A' | b'P' | b'L' | b'H' | b'B' | b'Z')), words: &["karta tal-identità", "maltese id", "id card malta"] },
        Id { rule: "national.pl_pesel", source: "Ustawa o ewidencji ludności, PESEL (weights 1-3-7-9)", forms: &["99999999999", "999999 99999"], check: Some(pesel), words: &["pesel", "nr pesel", "numer pesel"] },
        Id { rule: "national.pl_card", source: "Dowód osobisty (weights 7-3-1)", forms: &["AAA999999", "AAA 999999"], check: Some(pl_card), words: &["dowód osobisty", "nr dowodu", "numer dowodu", "dowodu osobistego", "seria i numer", "dowód"] },
        Id { rule: "national.pl_nip", source: "NIP (mod 11)", forms: &["999-999-99-99", "999-99-99-999", "9999999999"], check: Some(|s| weighted(&s[..9], &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 == value(s[9])), words: &["nip", "nr nip", "numer nip"] },
        Id { rule: "national.cz_rc", source: "Zákon 133/2000 Sb., rodné číslo (mod 11)", forms: &["!999999/9999", "9999999999", "999999/999", "999999 9999"], check: Some(rodne),
             words: &["rodné číslo", "rodne cislo", "rč", "r.č", "r. č", "rodného čísla"] },
        Id { rule: "national.cz_card", source: "Občanský průkaz, občiansky preukaz", forms: &["999999999", "AA999999", "AA 999999"], check: None, words: &["občanský průkaz", "číslo op", "č. op", "občanského průkazu", "občiansky preukaz", "číslo občianskeho preukazu"] },
        Id { rule: "national.hu_id", source: "1996. évi XX. törvény, személyi azonosító (mod 11)", forms: &["99999999999", "9-999999-9999", "9 999999 9999"], check: Some(|s| date6(&s[5..7], &s[3..5])), words: &["személyi azonosító", "személyi szám", "személyazonosító"] },
        Id { rule: "national.hu_taj", source: "TAJ (weights 3-7, mod 10)", forms: &["999999999", "999 999 999", "999-999-999"], check: Some(|s| weighted(&s[..8], &[3, 7, 3, 7, 3, 7, 3, 7]) % 10 == value(s[8])), words: &["taj", "taj szám", "taj-szám", "tajszám"] },
        Id { rule: "national.hu_tax", source: "Adóazonosító jel (weights 1 to 9, mod 11)", forms: &["9999999999"], check: Some(|s| s[0] == b'8' && weighted(&s[..9], &[1, 2, 3, 4, 5, 6, 7, 8, 9]) % 11 == value(s[9])), words: &["adóazonosító", "adóazonosító jel", "adóazonosító jele"] },
        Id { rule: "national.hu_card", source: "Személyazonosító igazolvány", forms: &["999999AA", "AA999999"], check: None, words: &["személyi igazolvány", "személyi igazolvány szám", "szig"] },
        Id { rule: "national.ro_cnp", source: "Legea 105/1996, CNP (constant 279146358279)", forms: &["9999999999999"], check: Some(cnp), words: &["cnp", "c.n.p", "cod numeric personal"] },
        Id { rule: "national.bg_egn", source: "Закон за гражданската регистрация, ЕГН (mod 11)", forms: &["9999999999"], check: Some(egn), words: &["егн", "egn", "единен граждански номер"] },
        Id { rule: "national.hr_oib", source: "Zakon o OIB, ISO 7064 MOD 11,10", forms: &["99999999999"], check: Some(mod11_10), words: &["oib", "osobni identifikacijski broj", "tin"] },
        Id { rule: "national.yu_jmbg", source: "JMBG, EMŠO, ЕМБГ (mod 11)", forms: &["9999999999999"], check: Some(jmbg), words: &["jmbg", "emšo", "emso", "matični broj", "јмбг", "ембг", "матични број", "матичен број"] },
        Id { rule: "national.al_nid", source: "Letërnjoftimi, NID", forms: &["A99999999A"], check: None, words: &["nid", "letërnjoftim*", "numri personal"] },
    ]
}

fn nino(s: &[u8]) -> bool {
    let prefix = [s[0], s[1]];
    !b"DFIQUV".contains(&s[0])
        && !b"DFIQUVO".contains(&s[1])
        && !matches!(&prefix, b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ")
        && s[8] <= b'D'
}

fn nhs(s: &[u8]) -> bool {
    let rest = 11 - weighted(&s[..9], &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    rest % 11 == value(s[9])
}

fn utr(s: &[u8]) -> bool {
    const DIGITS: &[u8; 11] = b"21987654321";
    DIGITS[weighted(&s[1..], &[6, 7, 8, 9, 10, 5, 4, 3, 2]) as usize % 11] == s[0]
}

fn ppsn(s: &[u8]) -> bool {
    let second = s.get(8).map_or(0, |&l| u32::from(l - b'A' + 1) % 23 * 9);
    let rest = (weighted(&s[..7], &[8, 7, 6, 5, 4, 3, 2]) + second) % 23;
    u32::from(s[7] - b'A' + 1) % 23 == rest
}

/// One digit two or three times, one or two missing (BZSt).
fn de_tax(s: &[u8]) -> bool {
    let mut counts = [0; 10];
    s[..10].iter().for_each(|&d| counts[value(d) as usize] += 1);
    s[0] != b'0' && counts.iter().filter(|&&n| n > 1).count() == 1 && counts.iter().all(|&n| n <= 3) && mod11_10(s)
}

fn de_pension(s: &[u8]) -> bool {
    if s.len() != 12 || !s[8].is_ascii_uppercase() {
        return false;
    }
    let letter = u32::from(s[8] - b'A' + 1);
    let digits = [s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]].map(value).into_iter().chain([
        letter / 10,
        letter % 10,
        value(s[9]),
        value(s[10]),
    ]);
    let sum: u32 = digits.zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]).map(|(d, w)| d * w / 10 + d * w % 10).sum();
    sum % 10 == value(s[11])
}

/// ICAO 9303 weights 7-3-1 over digits and letters; nine signs carry no check digit, ten do.
fn icao(s: &[u8]) -> bool {
    if !s.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = s[..9]
        .iter()
        .zip([7, 3, 1].into_iter().cycle())
        .map(|(&c, w)| w * if c.is_ascii_digit() { value(c) } else { u32::from(c - b'A') + 10 })
        .sum();
    s.get(9).is_none_or(|&d| sum % 10 == value(d))
}

fn at_svnr(s: &[u8]) -> bool {
    let sum = weighted(s, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]) % 11;
    sum == value(s[3]) && number(&s[6..8]) <= 15 && number(&s[4..6]) <= 31
}

fn nir(s: &[u8]) -> bool {
    let month = number(&s[3..5]);
    let head = matches!(s[0], b'1'..=b'4' | b'7' | b'8') && matches!(month, 1..=12 | 20..=42 | 50..=99);
    if s.len() != 15 {
        return head && s.len() == 13;
    }
    let mut digits: [u8; 15] = [b'0'; 15];
    digits.copy_from_slice(s);
    let less = match s[6] {
        b'A' if s[5] == b'2' => 1_000_000,
        b'B' if s[5] == b'2' => 2_000_000,
        b'0'..=b'9' => 0,
        _ => return false,
    };
    if less > 0 {
        digits[6] = b'0';
    }
    let n = digits[..13].iter().fold(0u64, |n, &d| n * 10 + u64::from(value(d))) - less;
    head && 97 - n % 97 == u64::from(number(&s[13..]))
}

fn rrn(s: &[u8]) -> bool {
    let rest = u64::from(number(&s[9..]));
    let born = number(&s[2..4]) % 20 <= 12 && number(&s[4..6]) <= 31;
    let later = [b"2", &s[..9]].concat();
    born && (97 - modulo(&s[..9], 97) == rest || 97 - modulo(&later, 97) == rest)
}

fn bsn(s: &[u8]) -> bool {
    let padded = [&b"0"[..9 - s.len()], s].concat();
    let sum = weighted(&padded[..8], &[9, 8, 7, 6, 5, 4, 3, 2]);
    padded.iter().any(|&d| d != b'0') && sum % 11 == value(padded[8])
}

fn nif_letter(digits: &[u8]) -> u8 {
    b"TRWAGMYFPDXBNJZSQVHLCKE"[number(digits) as usize % 23]
}

fn nie(s: &[u8]) -> bool {
    matches!(s[0], b'X'..=b'Z') && nif_letter(&[&[s[0] - b'X' + b'0'], &s[1..8]].concat()) == s[8]
}

fn pt_nif(s: &[u8]) -> bool {
    let rest = weighted(&s[..8], &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    s[0] != b'0' && (if rest < 2 { 0 } else { 11 - rest }) == value(s[8])
}

fn pt_card(s: &[u8]) -> bool {
    let sum: u32 = s
        .iter()
        .enumerate()
        .map(|(i, &c)| {
            let v = if c.is_ascii_digit() { value(c) } else { u32::from(c - b'A') + 10 };
            if i % 2 == 0 { if v * 2 > 9 { v * 2 - 9 } else { v * 2 } } else { v }
        })
        .sum();
    s.len() == 12 && sum.is_multiple_of(10)
}

/// Letters stand for digits at seven places where two persons had one code.
fn codice(s: &[u8]) -> bool {
    const ODD: &[u8; 36] = &[
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16,
        10, 22, 25, 24, 23,
    ];
    let digits = [6, 7, 9, 10, 12, 13, 14].iter().all(|&i| s[i].is_ascii_digit() || b"LMNPQRSTUV".contains(&s[i]));
    let sum: u32 = s[..15]
        .iter()
        .enumerate()
        .map(|(i, &c)| {
            let v = if c.is_ascii_digit() { c - b'0' } else { c - b'A' + 10 };
            u32::from(if i % 2 == 0 { ODD[usize::from(v)] } else { v - if v < 10 { 0 } else { 10 } })
        })
        .sum();
    digits && b"ABCDEHLMPRST".contains(&s[8]) && u32::from(s[15] - b'A') == sum % 26
}

fn pesel(s: &[u8]) -> bool {
    let sum = weighted(&s[..10], &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]);
    date6(&s[4..6], &[b'0' + ((s[2] - b'0') % 2), s[3]]) && (10 - sum % 10) % 10 == value(s[10])
}

fn pl_card(s: &[u8]) -> bool {
    let letters: u32 = s[..3].iter().zip([7, 3, 1]).map(|(&c, w)| (u32::from(c - b'A') + 10) * w).sum();
    (letters + weighted(&s[4..], &[7, 3, 1, 7, 3])) % 10 == value(s[3])
}

fn rodne(s: &[u8]) -> bool {
    let month = number(&s[2..4]);
    let month = if month > 50 { month - 50 } else { month };
    let month = if month > 20 { month - 20 } else { month };
    let date = crate::checks::day_month(number(&s[4..6]), month, None);
    let check = s.len() == 9 || modulo(s, 11) == 0 || (s[9] == b'0' && modulo(&s[..9], 11) == 10);
    date && check
}

fn cnp(s: &[u8]) -> bool {
    let rest = weighted(&s[..12], &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
    s[0] != b'0' && date6(&s[5..7], &s[3..5]) && (if rest == 10 { 1 } else { rest }) == value(s[12])
}

fn egn(s: &[u8]) -> bool {
    let month = number(&s[2..4]) % 20;
    let rest = weighted(&s[..9], &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10;
    crate::checks::day_month(number(&s[4..6]), month, None) && rest == value(s[9])
}

fn jmbg(s: &[u8]) -> bool {
    let rest = weighted(&s[..12], &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    let check = if rest == 0 { 0 } else { 11 - rest };
    matches!(s[4], b'0' | b'9' | b'8') && date6(&s[..2], &s[2..4]) && check == value(s[12])
}
