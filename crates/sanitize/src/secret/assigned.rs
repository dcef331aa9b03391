//! Does a name or a sentence say that what follows is secret, and does that read like a secret?
//!
//! Refused: words (`password: required`), placeholders (`${TOKEN}`, `****`), names and calls of programs (`self.password`).

use std::sync::LazyLock;

use super::{ASSIGNED, SPOKEN, in_word};
use crate::{
    Kind,
    context::{Word, plain_word},
    scanner::{Hit, Spot, weight},
};

/// How much a name says about its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// A password: what stands behind it is one, unless it reads like a word.
    Password,
    /// A machine's key: long and random.
    Key,
    /// The header with a scheme before the value.
    Authorization,
}

/// Ends of names, in plain spelling and without `_`, `-`, `.` and spaces.
#[rustfmt::skip]
const PASSWORDS: &[&str] = &[
    "password", "passwd", "passwort", "kennwort", "passphrase", "passcode", "pwd", "pass", "pw", "pswd", "userpass", "contrasena", "clave", "senha", "palavrapasse", "motdepasse", "mdp", "codesecret",
    "wachtwoord", "losenord", "passord", "adgangskode", "kodeord", "salasana", "haslo", "heslo", "jelszo", "parola", "sifre", "lozinka", "zaporka", "geslo", "slaptazodis", "parole", "parool", "lykilord",
    "κωδικοσ", "пароль", "пароля", "парола", "лозинка", "密码", "密碼", "口令", "登录密码", "パスワード", "暗証番号", "비밀번호", "암호", "पासवर्ड", "سر", "المرور", "סיסמה", "รหัสผ่าน", "matkhau", "katasandi", "sandi",
];
const KEYS: &[&str] = &[
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "encryptionkey",
    "signingkey",
    "sharedkey",
    "masterkey",
    "accountkey",
    "storagekey",
    "clientsecret",
    "appsecret",
    "consumersecret",
    "secretaccesskey",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "bearertoken",
    "sessiontoken",
    "idtoken",
    "xapikey",
    "apitoken",
    "apisecret",
    "webhooksecret",
    "jwtsecret",
    "sessionsecret",
    "credential",
    "credentials",
    "sessionid",
    "sharedaccesssignature",
    "sig",
    "schlussel",
    "geheimnis",
    "jeton",
    "cle",
    "凭证",
    "密钥",
    "令牌",
    "秘密鍵",
    "토큰",
];

fn name(text: &[u8]) -> Option<Name> {
    let mut buffer = [0; 64];
    if text.is_ascii() {
        let mut len = 0;
        for b in text.iter().filter(|b| b.is_ascii_alphanumeric()).take(buffer.len()) {
            buffer[len] = b.to_ascii_lowercase();
            len += 1;
        }
        return named(&buffer[..len]);
    }
    let bare: String = plain_word(text).chars().filter(|c| c.is_alphanumeric()).collect();
    named(bare.as_bytes())
}

/// Whether the name of a secret may end with two bytes.
fn may_end_name(a: u8, b: u8) -> bool {
    // Bit n of a letter: a name ends with the letter n and it.
    static LAST: LazyLock<[u32; 26]> = LazyLock::new(|| {
        let mut last = [0; 26];
        for name in PASSWORDS.iter().chain(KEYS).chain(&["authorization"]).filter(|name| name.is_ascii()) {
            if let [.., a, b] = name.as_bytes() {
                last[usize::from(b - b'a') % 26] |= 1 << ((a - b'a') % 26);
            }
        }
        last
    });
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    !(a.is_ascii_lowercase() && b.is_ascii_lowercase()) || LAST[usize::from(b - b'a')] >> (a - b'a') & 1 == 1
}

fn named(bare: &[u8]) -> Option<Name> {
    /// Names by their last byte, longer kinds of names first.
    type Names = Vec<Vec<(&'static [u8], Name)>>;
    static NAMES: LazyLock<Names> = LazyLock::new(|| {
        let mut names: Names = vec![Vec::new(); 256];
        let all = [(&["authorization"][..], Name::Authorization), (PASSWORDS, Name::Password), (KEYS, Name::Key)];
        for (name, kind) in all.iter().flat_map(|(list, kind)| list.iter().map(|name| (name.as_bytes(), *kind))) {
            names[usize::from(name[name.len() - 1])].push((name, kind));
        }
        names
    });
    NAMES[usize::from(*bare.last()?)].iter().find(|(end, _)| bare.ends_with(end)).map(|(_, kind)| *kind)
}

/// A value behind the `:` or `=` at `at`, where the name before it says that it is secret.
pub(crate) fn assigned(text: &[u8], at: usize) -> Option<Hit> {
    let mut end = at;
    while end > 0 && at - end < 4 && matches!(text[end - 1], b' ' | b'"' | b'\'' | b'`' | b'*' | b']' | b'\\' | b':') {
        end -= 1;
    }
    // Most names are not of interest; their last letter says so.
    if end == 0 || !(text[end - 1] >= 0x80 || b"adehjklnopstuwyzADEHJKLNOPSTUWYZ23)".contains(&text[end - 1])) {
        return None;
    }
    if let [.., a, b] = text[..end]
        && !may_end_name(a, b)
    {
        return None;
    }
    let floor = end.saturating_sub(48);
    let mut start =
        end - text[floor..end].iter().rev().take_while(|b| in_word(**b) || **b >= 0x80 || **b == b' ').count();
    while start < end && text[start] & 0xC0 == 0x80 {
        start += 1;
    }
    let name = name(&text[start..end])?;
    let (from, to) = value(text, at, name)?;
    let word = &text[from..to];
    let right = match name {
        Name::Password => password(word, quote(text, from).is_some(), text[at]),
        Name::Key => random(word, 12),
        Name::Authorization => word.len() >= 8,
    };
    right.then_some(Hit { start: from, end: to, kind: Kind::Secret, rule: ASSIGNED, weight: weight::KEYED_VALID })
}

fn quote(text: &[u8], from: usize) -> Option<u8> {
    from.checked_sub(1).map(|i| text[i]).filter(|b| matches!(b, b'"' | b'\'' | b'`'))
}

/// Where the value behind `:` or `=` lies.
fn value(text: &[u8], at: usize, name: Name) -> Option<(usize, usize)> {
    let mut from = at + 1;
    let doubled = text.get(from) == Some(&text[at]) || at > 0 && text[at - 1] == text[at];
    if doubled {
        return None;
    }
    from += text[from..].iter().take(6).take_while(|b| matches!(b, b' ' | b'\t' | b'=' | b'>')).count();
    if name == Name::Authorization {
        for scheme in [&b"Bearer "[..], b"bearer ", b"Basic ", b"basic ", b"Token ", b"token ", b"Bot ", b"ApiKey "] {
            if text[from..].starts_with(scheme) {
                from += scheme.len();
            }
        }
    }
    if text.get(from) == Some(&b'\\') {
        from += 1;
    }
    let rest = &text[from..(from + 512).min(text.len())];
    if let Some(&mark @ (b'"' | b'\'' | b'`')) = rest.first() {
        let len = rest[1..].iter().position(|&b| b == mark || b == b'\n')?;
        let len = if rest[len] == b'\\' { len - 1 } else { len };
        return (len > 0 && rest.get(len + 1) != Some(&b'\n')).then_some((from + 1, from + 1 + len));
    }
    let len = bare(rest);
    (len > 0).then_some((from, from + len))
}

/// Length of a value without quotes: to the next space, less the sentence's punctuation.
fn bare(rest: &[u8]) -> usize {
    let mut len = 0;
    while len < rest.len() {
        let ends = rest[len] <= b' ' || matches!(rest[len], b'"' | b'`' | b'<' | b'>');
        // The next parameter of a query, the next field of a list, a full stop of another script.
        let query = rest[len] == b'&'
            && rest[len + 1..].iter().take(32).find(|b| !b.is_ascii_alphanumeric() && **b != b'_') == Some(&b'=');
        let cjk = rest[len..].starts_with("。".as_bytes()) || rest[len..].starts_with("、".as_bytes());
        if ends || query || cjk {
            break;
        }
        len += 1;
    }
    while len > 0 && matches!(rest[len - 1], b',' | b';' | b'.' | b')' | b']' | b'}' | b'\'') {
        len -= 1;
    }
    len
}

/// Whether a value reads like a password and not like a word, a placeholder or code.
fn password(word: &[u8], quoted: bool, sign: u8) -> bool {
    const NONE: &[&[u8]] = &[
        b"string",
        b"password",
        b"passwd",
        b"secret",
        b"undefined",
        b"required",
        b"optional",
        b"example",
        b"changeme_",
        b"boolean",
        b"number",
        b"hidden",
        b"redacted",
    ];
    if word.len() < 4 || word.len() > 128 || placeholder(word) || NONE.contains(&word.to_ascii_lowercase().as_slice()) {
        return false;
    }
    let has = |class: fn(&u8) -> bool| word.iter().any(class);
    let (lower, upper, digit) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase), has(u8::is_ascii_digit));
    let symbol =
        word.iter().any(|b| b.is_ascii_punctuation() && !matches!(b, b'_' | b'-' | b'.' | b'\'' | b'/' | b':'));
    if !quoted && call(word) || word.contains(&b' ') && !(quoted && digit) {
        return false;
    }
    if code(word) && !quoted {
        return false;
    }
    match (digit, symbol) {
        (true, _) => lower || upper || symbol || (word.len() >= 4 && word.len() <= 12 && sign == b':' || quoted),
        (false, true) => (lower || upper) && (quoted || word.len() >= 6),
        // Letters only: a quoted word, or capitals where no name has them.
        (false, false) => {
            (quoted && word.len() >= 6 && word.iter().all(u8::is_ascii_alphanumeric))
                || (word.len() >= 6 && odd_case(word))
        }
    }
}

/// `$VAR`, `${x}`, `{{x}}`, `<x>`, `%s`, `****`, `xxxx`
fn placeholder(word: &[u8]) -> bool {
    let filler = word.iter().all(|b| matches!(b, b'*' | b'x' | b'X' | b'.' | b'-' | b'_' | b'?'));
    let variable = match word {
        [b'$', rest @ ..] => {
            rest.first().is_some_and(|b| matches!(b, b'{' | b'('))
                || rest.iter().all(|b| b.is_ascii_uppercase() || *b == b'_')
        }
        [b'<' | b'{', ..] | [b'[', .., b']'] | [b'%', b's' | b'd'] => true,
        _ => false,
    };
    filler || variable
}

/// Names and calls of programs: `self.password`, `userPassword`, `PASSWORD`, `std::env`, `a->b`.
fn code(word: &[u8]) -> bool {
    let name = word.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':'));
    let path =
        word.windows(2).any(|w| w == b"->" || w == b"::" || w == b"()" || w == b"[\"" || w == b"['" || w == b"=>");
    let member = name && word.split(|b| matches!(b, b'.' | b'_')).count() > 1 && !word.iter().any(u8::is_ascii_digit);
    path || member
}

/// A name with a bracket behind it: `getpass()`, `input("…`.
fn call(word: &[u8]) -> bool {
    let name = word.iter().take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.')).count();
    name >= 3 && word.get(name) == Some(&b'(')
}

/// Capitals in a row behind or before small letters, as in no name of camel case.
fn odd_case(word: &[u8]) -> bool {
    let lower = word.iter().filter(|b| b.is_ascii_lowercase()).count();
    let pairs = word.windows(2).filter(|w| w[0].is_ascii_uppercase() && w[1].is_ascii_uppercase()).count();
    let humps = word.windows(2).filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()).count();
    lower >= 2 && word.iter().all(u8::is_ascii_alphabetic) && (pairs >= 1 && humps >= 1 || humps >= 3)
}

/// Whether a value is as random as a key: long, letters and digits, one word.
fn random(word: &[u8], min: usize) -> bool {
    let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = word.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let plain = word.iter().all(|b| b.is_ascii_alphanumeric() || b"_-+/=.~!$%".contains(b));
    let longest = word.split(|b| !b.is_ascii_alphanumeric()).map(<[u8]>::len).max().unwrap_or(0);
    word.len() >= min && plain && digits >= 2 && letters >= 2 && longest >= 10 && !placeholder(word) && !code(word)
}

/// A password in a sentence (`the password is hunter2`), whose first digit is at the spot.
pub(crate) fn spoken(spot: &Spot, hits: &mut Vec<Hit>) {
    let Some((keyword, from)) = spot.before.link(Word::Password) else { return };
    let apart =
        spot.text[keyword..from].iter().any(|b| matches!(b, b'\n' | b'/' | b'.' | b'*' | b'=')) || keyword == from;
    if apart || spot.start - from > 24 || spot.text[from..spot.start].iter().any(u8::is_ascii_whitespace) {
        return;
    }
    let to = from + bare(&spot.text[from..(from + 128).min(spot.text.len())]);
    let word = &spot.text[from..to];
    let mixed = word.iter().any(u8::is_ascii_alphabetic) && word.iter().any(u8::is_ascii_digit);
    let path = word.iter().any(|b| matches!(b, b'/' | b'\\')) || word.ends_with(b":");
    if to > spot.start && mixed && !path && word.len() >= 6 && password(word, false, b':') {
        hits.push(Hit { start: from, end: to, kind: Kind::Secret, rule: SPOKEN, weight: weight::KEYED });
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{nothing, only};

    #[test]
    fn assigned_values() {
        for (text, want) in [
            ("password: hunter2", "hunter2"),
            ("Passwort: MEhnVEFEfBYO", "MEhnVEFEfBYO"),
            ("contraseña: JgxLJCb$!", "JgxLJCb$!"),
            ("密码：wJtTLx3X8Vp%EN", "wJtTLx3X8Vp%EN"),
            ("pwd=6H$T#Kc#TkGnN", "6H$T#Kc#TkGnN"),
            ("db_password = \"letmein\"", "letmein"),
            ("mot de passe : Soleil22!", "Soleil22!"),
            ("?user=a&password=s3cret&x=1", "s3cret"),
            (
                "aws_secret_access_key = QYW13194xrHGZCp5DZjK4Hj6p3zqMC6vA8WS5Jcs",
                "QYW13194xrHGZCp5DZjK4Hj6p3zqMC6vA8WS5Jcs",
            ),
            ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
            ("the password is hunter2, he said", "hunter2"),
            ("{\"api_key\": \"0a1b2c3d4e5f6a7b8c9d\"}", "0a1b2c3d4e5f6a7b8c9d"),
        ] {
            only(text, "SECRET", want);
        }
    }

    #[test]
    fn near_misses() {
        for text in [
            "password: required",
            "password: String,",
            "password = self.password",
            "password: $PASSWORD",
            "password = getpass()",
            "password: ********",
            "if password == other1",
            "token = next_token()",
            "Password: must have 8 characters",
            "pass: 12 tests",
            "secret: none",
            "key: value1",
            "bypass: true",
            "class=\"sk-fading-circle\"",
        ] {
            nothing(text);
        }
    }
}
