//! A refresh may use up the token that it was made with. Where that token was read from a file, the new one is written
//! back there, so that the user's own programs and the next run go on with it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bastion_host::files::{self, read_capped};
use zeroize::Zeroizing;

use super::job::{Back, Credential};
use super::run::Rotated;

const MAX_FILE: u64 = 4 << 20;

/// What takes rotated values: the variable, and its materials by name.
pub(crate) fn writer(credentials: &[Credential]) -> (Rotated, Unwritten) {
    let unwritten = Unwritten::default();
    let notes = unwritten.clone();
    let places: Vec<(String, Vec<Back>)> =
        credentials.iter().map(|credential| (credential.env.clone(), credential.back.clone())).collect();
    let one_at_a_time = Mutex::new(());
    let rotated: Rotated = Box::new(move |env, values| {
        // two credentials may stand in one file
        let _turn = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let own = places.iter().filter(|(name, _)| name == env).flat_map(|(_, back)| back);
        for place in own {
            let value = values.iter().find(|(name, _)| place.material == *name);
            if let Some((_, value)) = value {
                // the run itself goes on with the new value
                if let Err(error) = write(&place.file, &place.query, value) {
                    let (file, query) = (place.file.display(), &place.query);
                    let text = format!(
                        "the new {} of {env} could not be written to {file} ({query}): {error}; the old one there may be used up",
                        place.material
                    );
                    notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                }
            }
        }
    });
    (rotated, unwritten)
}

/// What could not be written back, in words.
pub(crate) type Unwritten = Arc<Mutex<Vec<String>>>;

/// Takes what could not be written back.
pub(crate) fn told(unwritten: &Unwritten) -> Vec<String> {
    std::mem::take(&mut *unwritten.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Replaces one field of a JSON file, which must be there, and nothing else of it.
fn write(file: &Path, query: &str, value: &str) -> std::io::Result<()> {
    let bytes = Zeroizing::new(read_capped(file, MAX_FILE)?);
    let mut json: serde_json::Value = serde_json::from_slice(&bytes)?;
    let place = query.split('.').try_fold(&mut json, |at, key| match at {
        serde_json::Value::Array(list) => key.parse::<usize>().ok().and_then(|n| list.get_mut(n)),
        other => other.get_mut(key),
    });
    match place {
        Some(place @ serde_json::Value::String(_)) => *place = value.into(),
        _ => return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the field is no text any more")),
    }
    let text = Zeroizing::new(serde_json::to_vec_pretty(&json)?);
    // a link, as users of dotfile managers have it, stays one
    files::replace(&file.canonicalize()?, &text, files::PRIVATE_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::job::Handed;

    #[test]
    fn a_rotated_token_goes_back_to_its_field_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("auth.json");
        std::fs::write(&file, r#"{"z": 1, "tokens": {"refresh": "old", "access": "a"}, "list": [{"t": "x"}]}"#)
            .unwrap();
        let back = |material: &str, query: &str| Back {
            material: material.to_owned(),
            file: file.clone(),
            query: query.to_owned(),
        };
        let credential = Credential {
            env: "TOKEN".into(),
            profile: "p".into(),
            value: Handed(Zeroizing::new("a".into())),
            materials: vec![],
            back: vec![back("refresh_token", "tokens.refresh"), back("other", "list.0.t")],
        };
        let (rotated, unwritten) = writer(&[credential]);
        let value = |name: &str, value: &str| (name.to_owned(), Zeroizing::new(value.to_owned()));
        rotated("OTHER", &[value("refresh_token", "not this")]);
        rotated("TOKEN", &[value("refresh_token", "new"), value("unknown", "b")]);
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(told(&unwritten), Vec::<String>::new());
        assert_eq!(
            json,
            serde_json::json!({"z": 1, "tokens": {"refresh": "new", "access": "a"}, "list": [{"t": "x"}]})
        );
        std::fs::write(&file, "{}").unwrap();
        rotated("TOKEN", &[value("refresh_token", "newer")]);
        let lost = told(&unwritten);
        assert!(lost.len() == 1 && lost[0].contains("tokens.refresh") && !lost[0].contains("newer"), "{lost:?}");
    }

    #[test]
    fn a_file_that_changed_its_form_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("auth.json");
        for text in ["{\"a\": {}}", "not json", "{}"] {
            std::fs::write(&file, text).unwrap();
            assert!(write(&file, "a", "x").is_err());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
