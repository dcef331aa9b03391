//! Who does a Dockerfile's last stage run as? Enough of its grammar to tell: line continuations, comments, the
//! `escape` directive, here-documents, and stages that build on others
//! (<https://docs.docker.com/reference/dockerfile/>).

/// Who the image runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FinalUser {
    /// The last `USER` that counts for the final stage, as written.
    Named(String),
    /// No `USER` counts: that of the base image, which only the engine knows.
    Inherited,
}

impl FinalUser {
    /// Whether the built image must be asked who it runs as.
    pub(crate) fn is_unsure(&self) -> bool {
        match self {
            // quotes, escapes and variables are the engine's to resolve
            Self::Named(name) => {
                !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-:".contains(&b)) || name.starts_with("0x")
            }
            Self::Inherited => true,
        }
    }
}

/// Whether a `USER` is root, by name or by number.
pub(crate) fn is_root(user: &str) -> bool {
    let name = user.trim().split(':').next().unwrap_or_default();
    name == "root" || name.parse::<u32>() == Ok(0)
}

struct Stage {
    alias: Option<String>,
    base: String,
    user: Option<String>,
}

/// The user of the final stage.
pub(crate) fn final_user(text: &str) -> Result<FinalUser, &'static str> {
    let mut stages: Vec<Stage> = Vec::new();
    for instruction in instructions(text)? {
        let (word, rest) = instruction.split_once(char::is_whitespace).unwrap_or((&instruction, ""));
        if word.eq_ignore_ascii_case("from") {
            let words: Vec<&str> = rest.split_whitespace().filter(|word| !word.starts_with("--")).collect();
            let alias = match words.as_slice() {
                [_, as_word, alias] if as_word.eq_ignore_ascii_case("as") => Some(alias.to_lowercase()),
                _ => None,
            };
            let base = words.first().ok_or("has a FROM without an image")?;
            stages.push(Stage { alias, base: base.to_lowercase(), user: None });
        } else if word.eq_ignore_ascii_case("user") {
            let stage = stages.last_mut().ok_or("has a USER before the first FROM")?;
            stage.user = Some(rest.trim().to_owned()).filter(|user| !user.is_empty());
        }
    }
    let mut at = stages.len().checked_sub(1).ok_or("has no FROM")?;
    loop {
        let stage = &stages[at];
        if let Some(user) = &stage.user {
            return Ok(FinalUser::Named(user.clone()));
        }
        // a stage may only build on one before it, so this ends
        match stages[..at].iter().rposition(|other| other.alias.as_deref() == Some(&stage.base)) {
            Some(earlier) => at = earlier,
            None => return Ok(FinalUser::Inherited),
        }
    }
}

/// The Dockerfile with these instructions behind it, run as root, and then its own user again. `COPY` makes files of
/// root's whoever the user is, so where that is not known here nothing but the copies is added.
pub(crate) fn extended(text: &str, copies: &[String], user: &FinalUser) -> String {
    let mut lines = vec![text.trim_end_matches(['\n', '\r']).to_owned()];
    match user {
        FinalUser::Named(name) => {
            lines.push("USER root".to_owned());
            lines.extend_from_slice(copies);
            lines.push(format!("USER {name}"));
        }
        FinalUser::Inherited => lines.extend_from_slice(copies),
    }
    lines.join("\n") + "\n"
}

/// The instructions, each on one line, without comments and the bodies of here-documents.
fn instructions(text: &str) -> Result<Vec<String>, &'static str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let escape = escape(text);
    let mut out = Vec::new();
    let mut current = String::new();
    let mut continues = false;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue; // also between the lines of one instruction
        }
        match trimmed.strip_suffix(escape) {
            Some(part) => {
                current.push_str(part);
                current.push(' ');
                continues = true;
                continue;
            }
            None => current.push_str(trimmed),
        }
        continues = false;
        for (word, dash) in here_documents(&current) {
            let end = |line: &str| if dash { line.trim_start_matches('\t') == word } else { line == word };
            if !lines.by_ref().any(end) {
                return Err("has a here-document without an end");
            }
        }
        out.push(std::mem::take(&mut current));
    }
    if continues {
        return Err("ends in the middle of an instruction");
    }
    Ok(out)
}

/// The escape character: a backslash, or what the directive at the very top says.
fn escape(text: &str) -> char {
    for line in text.lines() {
        let Some((name, value)) = line.trim().strip_prefix('#').and_then(|comment| comment.split_once('=')) else {
            break;
        };
        if name.trim().eq_ignore_ascii_case("escape") {
            return if value.trim() == "`" { '`' } else { '\\' };
        }
    }
    '\\'
}

/// The words that end the here-documents of an instruction, and whether tabs before them are passed over.
fn here_documents(instruction: &str) -> Vec<(String, bool)> {
    let name = instruction.split_whitespace().next().unwrap_or_default();
    if !["RUN", "COPY", "ADD"].iter().any(|with| name.eq_ignore_ascii_case(with)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for word in instruction.split_whitespace() {
        let Some(rest) = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix("<<") else { continue };
        let (rest, dash) = rest.strip_prefix('-').map_or((rest, false), |rest| (rest, true));
        let end: String = rest.trim_matches(['"', '\'']).to_owned();
        if end.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            found.push((end, dash));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> String {
        match final_user(text).unwrap() {
            FinalUser::Named(name) => name,
            FinalUser::Inherited => "(inherited)".to_owned(),
        }
    }

    #[test]
    fn the_last_user_of_the_final_stage_counts() {
        for (text, expected) in [
            ("FROM a\nUSER 1000\n", "1000"),
            ("from a\nuser  me:us  \n", "me:us"),
            ("FROM a AS one\nUSER me\nFROM b\n", "(inherited)"),
            ("FROM a AS One\nUSER me\nFROM --platform=x one\nRUN x\n", "me"),
            ("FROM a\nUSER me\nRUN echo \\\n# no\n\n  USER root\n", "me"),
            ("# escape=`\nFROM a\nUSER me\nRUN echo `\n USER root\nRUN dir \\\nUSER you", "you"),
            ("FROM a\nUSER me\nRUN <<EOF\nUSER root\nEOF\nCOPY <<-\"A\" <<B /x/\nUSER r\n\tA\nUSER s\nB\n", "me"),
            ("\u{feff}FROM a\n#USER x\nENV USER root\nUSER $ME\n", "$ME"),
        ] {
            assert_eq!(user(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_dockerfile_is_refused() {
        for text in ["", "# FROM a", "USER me\nFROM a", "FROM", "FROM a\nRUN x \\", "FROM a\nRUN <<E\nUSER me"] {
            assert!(final_user(text).is_err(), "{text}");
        }
    }

    #[test]
    fn root_is_known_by_name_and_number() {
        assert!(["root", "0", "00", "0:0", "root:me", " 0 "].iter().all(|user| is_root(user)));
        assert!(!["1000", "me", "rooty", "1000:0", "$X"].iter().any(|user| is_root(user)));
    }

    #[test]
    fn a_user_that_the_engine_has_to_make_out_is_looked_at_once_built() {
        for user in ["$ME", "\"root\"", "ro\\ot", "0x0"] {
            assert!(FinalUser::Named(user.into()).is_unsure(), "{user}");
        }
        assert!(["1000", "me:us", "a.b-c_d"].iter().all(|user| !FinalUser::Named((*user).into()).is_unsure()));
    }

    #[test]
    fn the_payload_is_copied_as_root_and_the_user_comes_back() {
        let copies = ["COPY x /x".to_owned()];
        assert_eq!(
            extended("FROM a\nUSER me", &copies, &FinalUser::Named("me".into())),
            "FROM a\nUSER me\nUSER root\nCOPY x /x\nUSER me\n"
        );
        assert_eq!(extended("FROM a\n", &copies, &FinalUser::Inherited), "FROM a\nCOPY x /x\n");
    }
}
