//! The language of a text, where we have a stemmer for it.

use frostem::{Algorithm, Stemmer};

/// A language with a stemmer (Snowball).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Language(Algorithm);

impl Language {
    /// By ISO 639-1 or 639-3 code, or a BCP 47 tag that begins with one; none where there is no stemmer.
    pub(crate) fn of(tag: &str) -> Option<Self> {
        let code = tag.split(['-', '_']).next().unwrap_or_default();
        let code = match code.to_ascii_lowercase().as_str() {
            // whatlang's and others' names for the written forms of Norwegian and the languages that share them
            "nb" | "nob" | "nn" | "nno" => "no".to_owned(),
            "pes" => "fa".to_owned(),
            "ekk" => "et".to_owned(),
            code => code.to_owned(),
        };
        // Longer names are algorithms, not languages ("porter").
        (2..=3).contains(&code.len()).then(|| Algorithm::from_name(&code).ok().map(Self)).flatten()
    }

    /// The inverse of [`Language::name`].
    pub(crate) fn named(name: &str) -> Option<Self> {
        Algorithm::from_name(name).ok().map(Self)
    }

    /// The name that the index keeps.
    pub(crate) fn name(self) -> &'static str {
        self.0.name()
    }

    /// The stem of a word in lower case.
    pub(crate) fn stem(self, word: &str) -> String {
        Stemmer::new(self.0).stem(word).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_two_and_three_letters_and_tags_are_known() {
        for tag in ["en", "eng", "en-GB", "EN_us"] {
            assert_eq!(Language::of(tag).map(Language::name), Some("english"), "{tag}");
        }
        for tag in [
            "de", "deu", "fr", "fra", "es", "spa", "it", "ita", "pt", "por", "nl", "nld", "ru", "rus", "sv", "swe",
            "nb", "nob", "da", "dan", "fi", "fin", "hu", "hun", "ro", "ron", "tr", "tur", "ar", "ara", "el", "ell",
            "ta", "tam", "pl", "pol", "cs", "ces",
        ] {
            assert!(Language::of(tag).is_some(), "{tag}");
        }
        for tag in ["", "xx", "zho", "jpn", "porter", "english"] {
            assert!(Language::of(tag).is_none(), "{tag}");
        }
    }

    #[test]
    fn a_language_is_found_again_by_its_name() {
        let german = Language::of("de").unwrap();
        assert_eq!(Language::named(german.name()), Some(german));
    }
}
