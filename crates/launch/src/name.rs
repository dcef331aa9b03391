//! What is the sandbox called? At most 19 characters of `[a-z0-9-]`, the gateway's own limit, judged before anything.

use jiff::Timestamp;

use crate::error::LaunchError;

/// The longest name that a gateway takes.
pub(crate) const MAX_NAME: usize = 19;
/// Characters of the time in a made-up name, with the `-` before it.
const STAMP: usize = 8;

/// A name as it was given.
///
/// # Errors
/// Where a gateway would not take it.
pub(crate) fn given(name: &str) -> Result<String, LaunchError> {
    match fault(name) {
        None => Ok(name.to_owned()),
        Some(why) => Err(LaunchError::refused(format!("the sandbox name `{}`", name.escape_debug()), why)),
    }
}

/// A name from the prefix and the time: the whole time (`-20260102030405`) where that fits, else seven characters of
/// base 36 that count the seconds, which come again after 2,000 years.
///
/// # Errors
/// Where the prefix is not one or leaves no room.
pub(crate) fn made(prefix: &str, now: Timestamp) -> Result<String, LaunchError> {
    let refused = |why: String| LaunchError::refused(format!("the name prefix `{}`", prefix.escape_debug()), why);
    let trimmed = prefix.trim_end_matches('-');
    if let Some(why) = fault(trimmed) {
        return Err(refused(why));
    }
    if trimmed.len() + STAMP > MAX_NAME {
        return Err(refused(format!(
            "is longer than {} characters, and a sandbox name has {MAX_NAME} with the time in it; give `sandbox.name_prefix` or --name",
            MAX_NAME - STAMP
        )));
    }
    let digits = now.strftime("%Y%m%d%H%M%S").to_string();
    if trimmed.len() + 1 + digits.len() <= MAX_NAME {
        return Ok(format!("{trimmed}-{digits}"));
    }
    Ok(format!("{trimmed}-{}", base36(now.as_second())))
}

/// A prefix made from an agent's id, which may be longer than fits: as much of it as does.
pub(crate) fn prefix_of(id: &str) -> String {
    let mut prefix = String::new();
    for c in id.chars().take(MAX_NAME - STAMP) {
        if c != '-' || !prefix.ends_with('-') {
            prefix.push(c);
        }
    }
    prefix.trim_end_matches('-').to_owned()
}

fn fault(name: &str) -> Option<String> {
    let length = name.chars().count();
    if name.is_empty() {
        return Some("is empty".to_owned());
    }
    if length > MAX_NAME {
        return Some(format!("has {length} characters; a sandbox name has at most {MAX_NAME}"));
    }
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if !name.bytes().all(|b| plain(b) || b == b'-') || name.contains("--") {
        return Some("must be a to z, 0 to 9 and single `-`".to_owned());
    }
    let ends = name.bytes().next().is_some_and(plain) && name.bytes().last().is_some_and(plain);
    (!ends).then(|| "must start and end with a letter or digit".to_owned())
}

fn base36(mut seconds: i64) -> String {
    let mut text = [b'0'; STAMP - 1];
    for place in text.iter_mut().rev() {
        let digit = u8::try_from(seconds.rem_euclid(36)).unwrap_or_default();
        *place = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        seconds = seconds.div_euclid(36);
    }
    text.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn names_fit_and_differ_by_the_second() {
        let now = at("2026-11-30T20:42:07Z");
        assert_eq!(made("wat", now).unwrap(), "wat-20261130204207");
        for prefix in ["a", "watch", "watcher-abc", "hello-"] {
            let one = made(prefix, now).unwrap();
            let two = made(prefix, at("2026-11-30T20:42:08Z")).unwrap();
            assert!(one.len() <= MAX_NAME && fault(&one).is_none() && one != two, "{one} {two}");
        }
    }

    #[test]
    fn any_id_gives_a_prefix() {
        for (id, prefix) in
            [("a", "a"), ("a--b", "a-b"), ("pull-request-watcher", "pull-reques"), ("ten-chars--x", "ten-chars")]
        {
            assert_eq!(prefix_of(id), prefix);
            assert!(made(prefix, at("2026-11-30T20:42:07Z")).is_ok());
        }
    }

    #[test]
    fn a_prefix_that_leaves_no_room_is_refused() {
        for prefix in ["twelve-chars", "a_b", "A", "", "-a", "a--b", "é"] {
            assert!(made(prefix, at("2026-11-30T20:42:07Z")).is_err(), "{prefix}");
        }
    }

    #[test]
    fn a_given_name_is_taken_or_refused_as_it_is() {
        assert_eq!(given("my-run-1").unwrap(), "my-run-1");
        for name in ["", "a--b", "-a", "a-", "A", "a.b", "twenty-characters-xx", "a\nb"] {
            assert!(given(name).is_err(), "{name}");
        }
    }
}
