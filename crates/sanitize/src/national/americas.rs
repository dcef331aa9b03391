//! The ids of the Americas.

use super::{Id, date6};
use crate::checks::{luhn, number, value, weighted};

#[rustfmt::skip]
pub(super) fn ids() -> Vec<Id> {
    vec![
        Id { rule: "national.us_ssn", source: "SSA, Social Security number (areas and groups never given out)", forms: &["!999-99-9999", "999 99 9999", "999999999", "999.99.9999", "99999999"], check: Some(ssn),
             words: &["ssn", "ss#", "s.s.n", "social security number", "social security no", "social security #", "social security", "social sec", "soc sec", "ssn/tin", "social security num"] },
        Id { rule: "national.us_itin", source: "IRS, Individual Taxpayer Identification Number", forms: &["999-99-9999", "999999999"], check: Some(|s| s[0] == b'9' && matches!(number(&s[3..5]), 50..=65 | 70..=88 | 90..=92 | 94..=99)), words: &["itin", "individual taxpayer"] },
        Id { rule: "national.us_mbi", source: "CMS, Medicare Beneficiary Identifier", forms: &["!9A*9-A*9-AA99", "9A*9A*9AA99"], check: Some(|s| s[0] != b'0' && !s.iter().any(|c| b"SLOIBZ".contains(c))), words: &["mbi", "medicare", "medicare number", "medicare beneficiary"] },
        Id { rule: "national.ca_sin", source: "ESDC, Social Insurance Number (Luhn)", forms: &["999999999", "999 999 999", "999-999-999", "999.999.999"], check: Some(|s| !matches!(s[0], b'0' | b'8') && luhn(s)),
             words: &["SIN", "sin number", "sin no", "social insurance number", "social insurance no", "social insurance", "s.i.n", "numéro d'assurance sociale", "assurance sociale", "NAS", "n.a.s"] },
        Id { rule: "national.ca_health", source: "Canadian provincial health numbers", forms: &["9999999999", "9999 999 999", "9999-999-999", "9999-999-999-AA", "AAAA 9999 9999", "AAAA99999999"], check: None, words: &["ohip", "health card", "health card number", "phn", "ramq", "carte soleil", "assurance maladie"] },
        Id { rule: "national.mx_curp", source: "RENAPO, CURP", forms: &["!AAAA999999AAAAAA*9"], check: Some(curp), words: &["curp", "clave única de registro"] },
        Id { rule: "national.mx_rfc", source: "SAT, RFC de persona física", forms: &["AAAA999999***", "AAAA-999999-***"], check: Some(|s| date6(&s[8..10], &s[6..8])), words: &["RFC", "r.f.c", "registro federal de contribuyentes"] },
        Id { rule: "national.mx_nss", source: "IMSS, número de seguridad social (Luhn)", forms: &["99999999999", "99 99 99 9999 9"], check: Some(luhn), words: &["nss", "imss", "seguridad social", "número de seguridad social"] },
        Id { rule: "national.br_cpf", source: "Receita Federal, CPF (two mod 11)", forms: &["!999.999.999-99", "99999999999", "999 999 999 99", "999-999-999-99", "999.999.999.99", "999.999.999/99", "999999999-99"], check: Some(cpf), words: &["cpf", "c.p.f", "cpf/mf", "cadastro de pessoas físicas"] },
        Id { rule: "national.br_rg", source: "Registro geral of the Brazilian states", forms: &["99.999.999-*", "9.999.999", "99999999*", "9999999", "99.999.999"], check: None, words: &["RG", "r.g", "registro geral", "carteira de identidade", "identidade"] },
        Id { rule: "national.br_pis", source: "Caixa, PIS/PASEP/NIT (mod 11)", forms: &["999.99999.99-9", "99999999999", "999.999.999-99"], check: Some(|s| (11 - weighted(&s[..10], &[3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10 == value(s[10])), words: &["pis", "pasep", "pis/pasep", "nis", "nit"] },
        Id { rule: "national.br_voter", source: "TSE, título de eleitor", forms: &["999999999999", "9999 9999 9999"], check: None, words: &["título de eleitor", "titulo de eleitor", "título eleitoral"] },
        Id { rule: "national.ar_cuil", source: "ANSES, CUIL and CUIT (mod 11)", forms: &["!99-99999999-9", "99999999999"], check: Some(|s| matches!(number(&s[..2]), 20 | 23 | 24 | 27) && (11 - weighted(&s[..10], &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10 == value(s[10])), words: &["cuil", "cuit", "cuil/cuit", "c.u.i.t", "c.u.i.l"] },
        Id { rule: "national.dni", source: "Documento nacional de identidad of Argentina and Peru", forms: &["99.999.999", "99999999", "9.999.999", "9999999", "99-99999999-9"], check: None, words: &["dni", "d.n.i", "documento nacional de identidad", "documento"] },
        Id { rule: "national.cl_rut", source: "Registro Civil de Chile, RUN and RUT (mod 11)", forms: &["!99.999.999-*", "!9.999.999-*", "99999999-*", "9999999-*", "99999999*", "9999999*"], check: Some(rut), words: &["rut", "r.u.t", "RUN", "R.U.N", "rut nº", "rol único"] },
        Id { rule: "national.co_cc", source: "Registraduría de Colombia, cédula de ciudadanía", forms: &["9999999999", "9.999.999.999", "99999999", "99.999.999", "9999999", "999999"], check: None, words: &["cédula", "cédula de ciudadanía", "cedula", "c.c", "nuip"] },
        Id { rule: "national.ec_ci", source: "Registro Civil del Ecuador (Luhn)", forms: &["9999999999", "999999999-9"], check: Some(|s| number(&s[..2]) <= 24 && luhn(s)), words: &["cédula", "cédula de identidad", "c.i", "cedula"] },
        Id { rule: "national.uy_ci", source: "DNIC Uruguay, cédula de identidad", forms: &["9.999.999-9", "99999999", "9999999-9"], check: Some(|s| (10 - weighted(&s[..7], &[2, 9, 8, 7, 6, 3, 4]) % 10) % 10 == value(s[7])), words: &["cédula de identidad", "c.i", "ci", "cédula"] },
        Id { rule: "national.ve_ci", source: "SAIME Venezuela, cédula", forms: &["A99999999", "A-99999999", "A-99.999.999", "A9999999", "A-9999999"], check: Some(|s| matches!(s[0], b'V' | b'E')), words: &["cédula", "cédula de identidad", "c.i", "ci", "cedula"] },
        Id { rule: "national.do_cedula", source: "JCE República Dominicana (Luhn)", forms: &["!999-9999999-9", "99999999999"], check: Some(luhn), words: &["cédula", "cedula", "cédula dominicana"] },
        Id { rule: "national.cr_cedula", source: "TSE Costa Rica", forms: &["9-9999-9999", "999999999", "9 9999 9999"], check: None, words: &["cédula", "cedula", "cédula de identidad"] },
        Id { rule: "national.gt_cui", source: "RENAP Guatemala, CUI", forms: &["9999 99999 9999", "9999999999999"], check: None, words: &["dpi", "cui", "código único de identificación"] },
    ]
}

fn ssn(s: &[u8]) -> bool {
    s.len() == 9 && s[0] != b'9' && !matches!(&s[..3], b"000" | b"666") && &s[3..5] != b"00" && &s[5..] != b"0000"
}

fn curp(s: &[u8]) -> bool {
    // Ñ stands between N and O in the alphabet of the check.
    let code = |c: u8| match c {
        b'0'..=b'9' => value(c),
        b'A'..=b'N' => u32::from(c - b'A') + 10,
        _ => u32::from(c - b'A') + 11,
    };
    let sum: u32 = s[..17].iter().zip((2..=18).rev()).map(|(&c, w)| code(c) * w).sum();
    date6(&s[8..10], &s[6..8]) && matches!(s[10], b'H' | b'M' | b'X') && (10 - sum % 10) % 10 == value(s[17])
}

fn cpf(s: &[u8]) -> bool {
    let digit = |n: usize| {
        let sum: u32 =
            s[..n].iter().zip((2..=n + 1).rev()).map(|(&d, w)| value(d) * u32::try_from(w).unwrap_or(0)).sum();
        (sum * 10) % 11 % 10
    };
    s.iter().any(|&d| d != s[0]) && digit(9) == value(s[9]) && digit(10) == value(s[10])
}

fn rut(s: &[u8]) -> bool {
    let (body, check) = s.split_at(s.len() - 1);
    let sum: u32 = body.iter().rev().zip([2, 3, 4, 5, 6, 7].into_iter().cycle()).map(|(&d, w)| value(d) * w).sum();
    let want = match 11 - sum % 11 {
        11 => b'0',
        10 => b'K',
        n => b"0123456789"[n as usize],
    };
    body.iter().all(u8::is_ascii_digit) && check[0] == want
}
