//! Names of months, as the beginnings that tell them apart, in plain spelling (lower case, no diacritics).

use std::sync::LazyLock;

use crate::context::plain_word;

/// Beginning and month. A word is a month if it begins so and is not much longer.
#[rustfmt::skip]
const MONTHS: &[(&str, u32)] = &[
    ("jan", 1), ("ene", 1), ("gen", 1), ("sty", 1), ("led", 1), ("ian", 1), ("oca", 1), ("sij", 1), ("tammi", 1), ("janv", 1), ("ιαν", 1), ("янв", 1), ("січ", 1), ("яну", 1), ("ocak", 1), ("saus", 1), ("jaan", 1),
    ("feb", 2), ("fev", 2), ("fevr", 2), ("lut", 2), ("uno", 2), ("sub", 2), ("velj", 2), ("helmi", 2), ("febb", 2), ("φεβ", 2), ("фев", 2), ("лют", 2), ("vas", 2), ("veeb", 2),
    ("mar", 3), ("mrt", 3), ("maa", 3), ("mrz", 3), ("brez", 3), ("ozuj", 3), ("marz", 3), ("maalis", 3), ("μαρ", 3), ("мар", 3), ("бер", 3), ("kov", 3), ("maer", 3), ("maart", 3), ("març", 3),
    ("apr", 4), ("abr", 4), ("avr", 4), ("kwi", 4), ("dub", 4), ("nis", 4), ("trav", 4), ("huhti", 4), ("απρ", 4), ("апр", 4), ("кві", 4), ("bal", 4),
    ("may", 5), ("mai", 5), ("mag", 5), ("maj", 5), ("mei", 5), ("kve", 5), ("svib", 5), ("touko", 5), ("μαι", 5), ("μαϊ", 5), ("май", 5), ("мая", 5), ("тра", 5), ("geg", 5), ("maio", 5), ("mayi", 5),
    ("jun", 6), ("giu", 6), ("cze", 6), ("cerven", 6), ("haz", 6), ("lip", 6), ("kesa", 6), ("ιουν", 6), ("июн", 6), ("чер", 6), ("birz", 6), ("juin", 6), ("iun", 6), ("юни", 6), ("czerw", 6),
    ("jul", 7), ("lug", 7), ("lipca", 7), ("lipiec", 7), ("cervenec", 7), ("tem", 7), ("srp", 7), ("heina", 7), ("ιουλ", 7), ("июл", 7), ("лип", 7), ("liep", 7), ("juil", 7), ("iul", 7), ("юли", 7), ("juuli", 7),
    ("aug", 8), ("ago", 8), ("aou", 8), ("sie", 8), ("srpen", 8), ("srpn", 8), ("agu", 8), ("kolov", 8), ("elo", 8), ("αυγ", 8), ("авг", 8), ("сер", 8), ("rugp", 8), ("avg", 8),
    ("sep", 9), ("set", 9), ("wrz", 9), ("zar", 9), ("eyl", 9), ("ruj", 9), ("syys", 9), ("szept", 9), ("σεπ", 9), ("сен", 9), ("вер", 9), ("rugs", 9), ("сеп", 9),
    ("oct", 10), ("okt", 10), ("ott", 10), ("out", 10), ("paz", 10), ("rij", 10), ("eki", 10), ("listop", 10), ("loka", 10), ("οκτ", 10), ("окт", 10), ("жов", 10), ("spal", 10), ("octo", 10),
    ("nov", 11), ("lis", 11), ("kas", 11), ("stud", 11), ("marras", 11), ("νοε", 11), ("ноя", 11), ("лис", 11), ("lapk", 11), ("ное", 11), ("noi", 11),
    ("dec", 12), ("dez", 12), ("dic", 12), ("gru", 12), ("pros", 12), ("ara", 12), ("joulu", 12), ("dets", 12), ("δεκ", 12), ("дек", 12), ("гру", 12), ("gruod", 12), ("des", 12), ("дец", 12),
];

/// Whether a word is the name of a month or its abbreviation.
pub(super) fn is_month(word: &[u8]) -> bool {
    let mut buffer = [0; 24];
    if word.len() < 3 || word.len() > buffer.len() {
        return false;
    }
    if word.is_ascii() {
        let plain = &mut buffer[..word.len()];
        plain.copy_from_slice(word);
        plain.make_ascii_lowercase();
        return listed(plain);
    }
    let plain = plain_word(word);
    plain.chars().count() >= 3 && listed(plain.as_bytes())
}

fn listed(plain: &[u8]) -> bool {
    // Bit n of a letter: the name of a month begins with it and the letter n.
    static SECONDS: LazyLock<[u32; 26]> = LazyLock::new(|| {
        let mut seconds = [0; 26];
        for (head, _) in MONTHS.iter().filter(|(head, _)| head.is_ascii()) {
            seconds[usize::from(head.as_bytes()[0] - b'a')] |= 1 << (head.as_bytes()[1] - b'a');
        }
        seconds
    });
    match plain {
        [a @ b'a'..=b'z', b @ b'a'..=b'z', ..] if SECONDS[usize::from(a - b'a')] >> (b - b'a') & 1 == 0 => false,
        _ => MONTHS
            .iter()
            .any(|(head, _)| head.as_bytes().first() == plain.first() && plain.starts_with(head.as_bytes())),
    }
}
