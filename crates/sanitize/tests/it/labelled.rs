//! One line of a text for each kind of fault that other tools were reported for, and what is right.

use crate::found;

#[test]
fn nothing_is_found_where_others_see_values() {
    for text in [
        "id 3f0bc921-a55d-453a-8046-5297901ea118 ok",
        "A GUIDE FOR INTERVENTION B2 H7",
        "os.path on apollo.lab.local; main.py",
        "std::map bd::y listen 0.0.0.0 and ::",
        "id 943 476 5919 or 9434765919",
        "credit card account is 1234-5678-1234-5678",
        "ask @opengov or \"@someone\"",
        "AU_ACN 004 085\n616 next",
        "OMB No. 1545-0074 PA 12345",
        "EAN 4006381333931, ISBN 978-3-16-148410-0, CAS 7732-18-5",
        "commit 1f0eb0667cb0dfd30004561b214b56e1ae8378a3, md5 d41d8cd98f00b204e9800998ecf8427e",
        "react@17.0.2 and @types/node@18.1.0, logo@2x.png, git@github.com:jo/app.git",
        "version 4.6.0.6 of the driver, section 3.2.1, v0.7.2",
        "at 00:31:17.931192, timestamp=1720384337, x = 345.284407743297",
        "CVE-2021-63052, RFC 7674 section 1.4.1, doi:10.1000/62dmf6y8.2000",
        "total 595,480.81 USD, pages 131-317, 1947-2016, 23/5 teams scored 36-76",
        "https://example.org/a/578570?id=777917098 and pages/4956559000/Runbook",
        "color #80ddf7 on #b8e, 0x466653bf 0xd23024f0d10d894c",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn values_are_found_whole_and_alone() {
    for (text, kind, value) in [
        ("peer A0F9::09C0:876A:1A0B up", "IP", "A0F9::09C0:876A:1A0B"),
        ("SSN 987-65-4329 on the form", "NATIONAL_ID", "987-65-4329"),
        ("my ssn is 219-09999", "NATIONAL_ID", "219-09999"),
        ("身分證字號B123456780。", "NATIONAL_ID", "B123456780"),
        ("凭证为sk_test_FAKE111111111111111111111111。", "SECRET", "sk_test_FAKE111111111111111111111111"),
        ("card 6212345678900000003 ok", "CREDIT_CARD", "6212345678900000003"),
        ("Fake card number 4539 1488 0343 6467.com that", "CREDIT_CARD", "4539 1488 0343 6467"),
        ("sample415-555-0134", "PHONE", "415-555-0134"),
        ("my phone:(415) 555 0134", "PHONE", "(415) 555 0134"),
        ("IBAN GB82 WEST 1234 5698 7654 32 failed", "IBAN", "GB82 WEST 1234 5698 7654 32"),
        ("11/30 09:15:42 INFO index #2, TR4 has address 9.44.44.144, ifidx 1", "IP", "9.44.44.144"),
        ("Home:d'arcy@example.com", "EMAIL", "d'arcy@example.com"),
        ("CPR 010180-4285 (no mod-11 since 2007)", "NATIONAL_ID", "010180-4285"),
    ] {
        assert_eq!(found(text), [(kind, value)], "{text}");
    }
}

#[test]
fn lines_may_break_inside_a_number() {
    assert_eq!(
        found("Kartennummer 5555 5555\n5555 4444 und IBAN DE89 3704 0044\n0532 0130 00"),
        [("CREDIT_CARD", "5555 5555\n5555 4444"), ("IBAN", "DE89 3704 0044\n0532 0130 00")]
    );
}

#[test]
fn ids_of_many_countries_behind_their_keywords() {
    for (text, value) in [
        ("SSN: 219-09-9999", "219-09-9999"),
        ("National Insurance number AB 12 34 56 C", "AB 12 34 56 C"),
        ("NHS number 943 476 5919", "943 476 5919"),
        ("(SIN 046 454 286)", "046 454 286"),
        ("TFN = 123 456 782;", "123 456 782"),
        ("Steuer-ID 65 929 970 489", "65 929 970 489"),
        ("AHV-Nr. 756.9217.0769.85", "756.9217.0769.85"),
        ("N° de sécurité sociale 2 55 08 14 168 025 38", "2 55 08 14 168 025 38"),
        ("Rijksregisternummer 85.07.30-033.28", "85.07.30-033.28"),
        ("BSN: 111222333", "111222333"),
        ("\"DNI\": \"12345678Z\"", "12345678Z"),
        ("N.I.E. X1234567L", "X1234567L"),
        ("contribuinte n.º 123456789", "123456789"),
        ("Codice fiscale RSSMRA85M01H501Q", "RSSMRA85M01H501Q"),
        ("PESEL 44051401359", "44051401359"),
        ("rodné číslo 780123/3540", "780123/3540"),
        ("CNP 1800101221144", "1800101221144"),
        ("ЕГН 7523169263", "7523169263"),
        ("personnummer 811228-9874", "811228-9874"),
        ("fødselsnummer 01010750160", "01010750160"),
        ("CPR-nr. 070761-4285", "070761-4285"),
        ("hetu 131052-308T", "131052-308T"),
        ("kennitala 120174-3399", "120174-3399"),
        ("isikukood 37605030299", "37605030299"),
        ("СНИЛС 112-233-445 95", "112-233-445 95"),
        ("ИНН 500100732259", "500100732259"),
        ("T.C. Kimlik No 10000000146", "10000000146"),
        ("身份证号11010519491231002X。", "11010519491231002X"),
        ("マイナンバー 123456789018", "123456789018"),
        ("주민등록번호 900101-1234567", "900101-1234567"),
        ("Aadhaar 2341 2341 2346", "2341 2341 2346"),
        ("PAN card ABCPE1234F", "ABCPE1234F"),
        ("NRIC S1234567D", "S1234567D"),
        ("CURP BOXW310820HNERXN09", "BOXW310820HNERXN09"),
        ("CPF nº 111.444.777-35", "111.444.777-35"),
        ("RUT 12.345.678-5", "12.345.678-5"),
        ("CUIL 20-12345678-6", "20-12345678-6"),
        ("SA ID 8001015009087", "8001015009087"),
        ("ת.ז. 123456782", "123456782"),
        ("Emirates ID 784-1980-1234567-8", "784-1980-1234567-8"),
        ("MyKad 800101-14-5678", "800101-14-5678"),
        ("OIB 12345678903", "12345678903"),
        ("JMBG 0101006500006", "0101006500006"),
    ] {
        assert_eq!(found(text), [("NATIONAL_ID", value)], "{text}");
    }
}

#[test]
fn a_wrong_check_digit_is_hidden_behind_its_keyword_only() {
    for (keyword, value) in [
        ("NHS number", "943 476 5918"),
        ("SIN", "046 454 287"),
        ("Steuer-ID", "65 929 970 488"),
        ("AHV-Nr.", "756.9217.0769.84"),
        ("BSN", "111222334"),
        ("DNI", "12345678A"),
        ("PESEL", "44051401358"),
        ("Codice fiscale", "RSSMRA85M01H501A"),
        ("fødselsnummer", "01010750161"),
        ("Aadhaar", "2341 2341 2347"),
        ("CPF", "111.444.777-36"),
        ("NRIC", "S1234567A"),
        ("IBAN", "DE89 3704 0044 0532 0130 01"),
        ("card number", "4111 1111 1111 1112"),
    ] {
        let keyed = format!("{keyword}: {value}");
        assert_eq!(found(&keyed).iter().map(|f| f.1).collect::<Vec<_>>(), [value], "{keyed}");
        let bare = format!("seen {value} there");
        assert_eq!(found(&bare), [], "{bare}");
    }
}
