//! Which language is a text written in? Only where that is sure.

use whatlang::{Lang, detect};

/// Characters of the text that are looked at.
const SAMPLE: usize = 4000;
/// Letters below which nothing is said.
const FEWEST: usize = 60;

/// ISO 639-1 code of the text's language, `None` where it is short, mixed or in doubt.
pub(crate) fn of(text: &str) -> Option<String> {
    // The middle is less likely to be a letterhead or a table of contents than the beginning.
    let start = if text.len() > 8 * SAMPLE { text.floor_char_boundary(text.len() / 4) } else { 0 };
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= start + SAMPLE * 2).unwrap_or(text.len());
    let sample = &text[start..end];
    if sample.chars().filter(|c| c.is_alphabetic()).take(FEWEST).count() < FEWEST {
        return None;
    }
    let guess = detect(sample)?;
    if !guess.is_reliable() {
        return None;
    }
    code(guess.lang()).map(str::to_owned)
}

/// ISO 639-3, as the detector speaks, to ISO 639-1.
fn code(lang: Lang) -> Option<&'static str> {
    Some(match lang.code() {
        "epo" => "eo",
        "eng" => "en",
        "rus" => "ru",
        "cmn" => "zh",
        "spa" => "es",
        "por" => "pt",
        "ita" => "it",
        "ben" => "bn",
        "fra" => "fr",
        "deu" => "de",
        "ukr" => "uk",
        "kat" => "ka",
        "ara" => "ar",
        "hin" => "hi",
        "jpn" => "ja",
        "heb" => "he",
        "yid" => "yi",
        "pol" => "pl",
        "amh" => "am",
        "jav" => "jv",
        "kor" => "ko",
        "nob" => "nb",
        "dan" => "da",
        "swe" => "sv",
        "fin" => "fi",
        "tur" => "tr",
        "nld" => "nl",
        "hun" => "hu",
        "ces" => "cs",
        "ell" => "el",
        "bul" => "bg",
        "bel" => "be",
        "mar" => "mr",
        "kan" => "kn",
        "ron" => "ro",
        "slv" => "sl",
        "hrv" => "hr",
        "srp" => "sr",
        "mkd" => "mk",
        "lit" => "lt",
        "lav" => "lv",
        "est" => "et",
        "tam" => "ta",
        "vie" => "vi",
        "urd" => "ur",
        "tha" => "th",
        "guj" => "gu",
        "uzb" => "uz",
        "pan" => "pa",
        "aze" => "az",
        "ind" => "id",
        "tel" => "te",
        "pes" => "fa",
        "mal" => "ml",
        "ori" => "or",
        "mya" => "my",
        "nep" => "ne",
        "sin" => "si",
        "khm" => "km",
        "tuk" => "tk",
        "aka" => "ak",
        "zul" => "zu",
        "sna" => "sn",
        "afr" => "af",
        "lat" => "la",
        "slk" => "sk",
        "cat" => "ca",
        "tgl" => "tl",
        "hye" => "hy",
        "cym" => "cy",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sure_languages_are_named_and_others_are_not() {
        let german =
            "Der Vertrag wurde gestern von beiden Seiten unterschrieben und gilt für die nächsten drei Jahre. "
                .repeat(3);
        let russian = "Договор подписан вчера обеими сторонами и будет действовать в течение следующих трёх лет. Если \
            одна из сторон захочет его расторгнуть, она должна сообщить об этом письменно не позднее чем за месяц.";
        assert_eq!(of(&german).as_deref(), Some("de"));
        assert_eq!(of(russian).as_deref(), Some("ru"));
        assert_eq!(of("Short."), None);
        assert_eq!(of(&"0123 4567 ".repeat(100)), None);
    }
}
