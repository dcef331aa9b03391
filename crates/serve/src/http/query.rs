//! The query of a target: `name=value` pairs, `&` between them, percent-encoded (WHATWG URL §5.1, read strictly).

/// The query can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the query is not percent-encoded UTF-8 of name=value pairs, each name once")]
pub(crate) struct QueryError;

/// The pairs in order, decoded. A name that is there twice is refused: which one counts would depend on the reader.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, QueryError> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(QueryError)?;
        let (name, value) = (decode(name)?, decode(value)?);
        if pairs.iter().any(|(known, _)| *known == name) {
            return Err(QueryError);
        }
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// `text` as it stands for one value in a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                encoded.push('%');
                encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
                encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    encoded
}

fn decode(text: &str) -> Result<String, QueryError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => digit(bytes.next())? << 4 | digit(bytes.next())?,
            other => other,
        });
    }
    String::from_utf8(decoded).map_err(|_| QueryError)
}

fn digit(byte: Option<u8>) -> Result<u8, QueryError> {
    match byte {
        Some(byte @ b'0'..=b'9') => Ok(byte - b'0'),
        Some(byte @ b'a'..=b'f') => Ok(byte - b'a' + 10),
        Some(byte @ b'A'..=b'F') => Ok(byte - b'A' + 10),
        _ => Err(QueryError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for text in ["", "a b", "ä/漢😀", "100%&=+?#", "\0\r\n"] {
            let query = format!("prefix={}&limit=5", encode(text));
            assert!(query.is_ascii());
            assert_eq!(pairs(&query).unwrap()[0].1, text);
        }
        assert_eq!(pairs("a=1+2&&b=").unwrap(), [("a".into(), "1 2".into()), ("b".into(), String::new())]);
    }

    #[test]
    fn what_has_two_readings_is_refused() {
        for query in ["a", "a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2", "a=1&%61=2"] {
            assert_eq!(pairs(query), Err(QueryError), "{query}");
        }
    }
}
