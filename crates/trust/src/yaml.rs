//! What does this text say, as a strict YAML tree? Answers with values that know their place, or a refusal.
//!
//! The schema is the core schema of YAML 1.2 (<https://yaml.org/spec/1.2.2/#103-core-schema>) without floats.
//! Everything that lets two readers see two things is refused: duplicate keys, anchors and aliases (before they
//! are expanded), tags, directives, merge keys, keys that are no strings, a second document, integers that a
//! JSON number can't hold exactly. Depth is bounded while reading, so no input makes this code recurse further.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};

use crate::error::MalformedError;

/// Containers may lie in each other this deep, the outermost one counted.
pub(crate) const MAX_DEPTH: usize = 16;
/// Keys and values of a file, all together: bounds the work that an unsigned megabyte can cause.
const MAX_NODES: usize = 50_000;
/// The largest integer that RFC 8785 (so an IEEE double) keeps exactly: 2^53 - 1.
const MAX_INT: i64 = (1 << 53) - 1;

/// A line and a column of the file, both counted from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// One value, where it stands, and which bytes of the file are it.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it holds.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
    /// Bytes of the file, from the value's first to past its last. Of a block collection only the start is
    /// exact: its end may lie behind comments that follow it.
    pub(crate) span: Range<usize>,
    /// Written as `[…]` or `{…}`.
    pub(crate) flow: bool,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names are those of YAML's core schema
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Str(String),
    Seq(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The key itself.
    pub name: String,
    /// Where it stands.
    pub place: Place,
    pub(crate) span: Range<usize>,
}

impl Place {
    /// An error that is about this place.
    pub fn error(self, what: impl Into<String>) -> MalformedError {
        MalformedError { line: self.line, column: self.column, what: what.into() }
    }
}

impl Node {
    /// An error that is about this value.
    pub fn error(&self, what: impl Into<String>) -> MalformedError {
        self.place.error(what)
    }

    /// What kind of value this is, for a message.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) => "a number",
            Value::Str(_) => "a string",
            Value::Seq(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// The value of `key`, where this is a mapping that has it.
    pub fn field(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The elements, where this is a list.
    pub fn elements(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Seq(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// The text, where this is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The byte past the last scalar or closing bracket of this value: comments behind it are not counted.
    pub(crate) fn content_end(&self) -> usize {
        if self.flow {
            return self.span.end;
        }
        match &self.value {
            Value::Seq(nodes) => nodes.last().map_or(self.span.end, Node::content_end),
            Value::Map(entries) => {
                entries.last().map_or(self.span.end, |(key, node)| node.content_end().max(key.span.end))
            }
            _ => self.span.end,
        }
    }

    /// Moves every span by so many bytes.
    fn shift(&mut self, by: usize) {
        let moved = |span: &Range<usize>| span.start + by..span.end + by;
        self.span = moved(&self.span);
        match &mut self.value {
            Value::Seq(nodes) => nodes.iter_mut().for_each(|node| node.shift(by)),
            Value::Map(entries) => entries.iter_mut().for_each(|(key, node)| {
                key.span = moved(&key.span);
                node.shift(by);
            }),
            _ => {}
        }
    }

    /// The same value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(b) => (*b).into(),
            Value::Int(n) => (*n).into(),
            Value::Str(s) => s.as_str().into(),
            Value::Seq(nodes) => nodes.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                serde_json::Value::Object(entries.iter().map(|(k, node)| (k.name.clone(), node.to_json())).collect())
            }
        }
    }
}

/// Reads the one document of `text`. A byte order mark in front of it is passed over.
pub(crate) fn read(text: &str) -> Result<Node, MalformedError> {
    match text.strip_prefix('\u{feff}') {
        None => read_plain(text),
        Some(rest) => read_plain(rest).map(|mut root| {
            root.shift(text.len() - rest.len());
            root
        }),
    }
}

fn read_plain(text: &str) -> Result<Node, MalformedError> {
    let lines = Lines::of(text);
    refuse_directives(text)?;
    let mut reader = Reader { parser: Parser::new_from_str(text), lines, nodes: 0 };
    let (start, span) = reader.next()?;
    debug_assert_eq!(start, Event::StreamStart);
    let (event, at) = reader.next()?;
    if event == Event::StreamEnd {
        return Err(reader.lines.place(span.start).error("the file is empty"));
    }
    let Event::DocumentStart(_) = event else {
        return Err(reader.lines.place(at.start).error("no document starts here"));
    };
    let (event, span) = reader.next()?;
    let root = reader.node(event, span, 1)?;
    reader.next()?; // the document's end
    match reader.next()? {
        (Event::StreamEnd, _) => Ok(root),
        (_, span) => Err(reader.lines.place(span.start).error("a second document; a manifest is exactly one")),
    }
}

/// `%YAML` and `%TAG` change how the rest is read; none is needed here.
fn refuse_directives(text: &str) -> Result<(), MalformedError> {
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('%') {
            return Err(Place { line: index + 1, column: 1 }.error("directives (`%…`) are not allowed"));
        }
        if !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
    }
    Ok(())
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    lines: Lines<'t>,
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), MalformedError> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.lines.place(*error.marker()).error(format!("not YAML: {}", error.info()))),
            None => Err(self.lines.last().error("the file ends too early")),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, MalformedError> {
        let place = self.lines.place(span.start);
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(place.error(format!("more than {MAX_NODES} keys and values")));
        }
        let (Event::Scalar(_, _, anchor, ref tag)
        | Event::SequenceStart(anchor, ref tag)
        | Event::MappingStart(anchor, ref tag)) = event
        else {
            return Err(place.error(match event {
                Event::Alias(_) => "aliases (`*name`) are not allowed",
                _ => "a value is missing here",
            }));
        };
        if anchor != 0 {
            return Err(place.error("anchors (`&name`) are not allowed"));
        }
        if tag.is_some() {
            return Err(place.error("tags (`!name`) are not allowed"));
        }
        let start = self.lines.offset(span.start);
        if let Event::Scalar(text, style, ..) = event {
            let value = if style == ScalarStyle::Plain {
                resolve(&text).map_err(|what| place.error(what))?
            } else {
                Value::Str(text.into_owned())
            };
            let span = self.lines.scalar(start, self.lines.offset(span.end), style);
            return Ok(Node { value, place, span, flow: false });
        }
        if depth > MAX_DEPTH {
            return Err(place.error(format!("nested deeper than {MAX_DEPTH}")));
        }
        let flow = matches!(self.lines.text.as_bytes().get(start), Some(b'[' | b'{')) && !span.is_empty();
        let (value, last) = match event {
            Event::SequenceStart(..) => self.sequence(depth)?,
            _ => self.mapping(depth)?,
        };
        let end = if flow { self.lines.past_bracket(last.start) } else { self.lines.offset(last.start) };
        Ok(Node { value, place, span: start..end.max(start), flow })
    }

    fn sequence(&mut self, depth: usize) -> Result<(Value, Span), MalformedError> {
        let mut nodes = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok((Value::Seq(nodes), span));
            }
            nodes.push(self.node(event, span, depth + 1)?);
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<(Value, Span), MalformedError> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok((Value::Map(entries), span));
            }
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = self.node(event, span, depth + 1)?;
            if merge {
                return Err(key.error("merge keys (`<<`) are not allowed"));
            }
            let Value::Str(name) = key.value else {
                return Err(key.error(format!("a key must be a string, this is {}", key.kind())));
            };
            if !seen.insert(name.clone()) {
                return Err(key.place.error(format!("the key `{name}` is there twice")));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            entries.push((Key { name, place: key.place, span: key.span }, value));
        }
    }
}

/// What a plain scalar means in the core schema.
fn resolve(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, radix) = match (text.strip_prefix("0o"), text.strip_prefix("0x")) {
        (Some(octal), _) => (octal, 8),
        (_, Some(hex)) => (hex, 16),
        _ => (unsigned, 10),
    };
    if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
        let magnitude = i64::from_str_radix(digits, radix).ok().filter(|n| *n <= MAX_INT);
        let Some(magnitude) = magnitude else {
            return Err(format!("the number {text} is larger than {MAX_INT}"));
        };
        return Ok(Value::Int(if text.starts_with('-') { -magnitude } else { magnitude }));
    }
    if is_float(unsigned) || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("{text} is a floating-point number; only whole numbers are allowed"));
    }
    Ok(Value::Str(text.to_owned()))
}

/// Whether `text` (its sign taken off) is `[0-9]+(\.[0-9]*)?` or `\.[0-9]+` with an optional exponent, or infinite.
fn is_float(text: &str) -> bool {
    if matches!(text, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let exponent_ok = exponent.is_none_or(|e| {
        let digits = e.strip_prefix(['-', '+']).unwrap_or(e);
        !digits.is_empty() && all_digits(digits)
    });
    let mantissa_ok = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    exponent_ok && mantissa_ok
}

/// Where each line of the text starts. Offsets are taken from line and column, which the scanner sets anew on
/// each line, and not from its running index.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// Line, column and byte of the last mark that was looked up.
    last: Cell<(usize, usize, usize)>,
}

impl<'t> Lines<'t> {
    /// Breaks lines as YAML does: at LF, CRLF and a lone CR.
    fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let breaks = bytes.iter().enumerate().filter(|(i, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(i + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = std::iter::once(0).chain(breaks.map(|(i, _)| i + 1)).collect();
        Self { text, starts, last: Cell::new((0, 0, 0)) }
    }

    fn place(&self, mark: Marker) -> Place {
        Place { line: mark.line().clamp(1, self.starts.len()), column: mark.col() + 1 }
    }

    fn last(&self) -> Place {
        Place { line: self.starts.len(), column: 1 }
    }

    /// The bytes of a scalar. The scanner counts what follows a closing quote in, and of a block scalar it knows the
    /// content only: its bytes are here those from the indicator to the line break that ends the content.
    fn scalar(&self, start: usize, end: usize, style: ScalarStyle) -> Range<usize> {
        let text = self.text;
        let closing = |quote: char| {
            let mut escaped = false;
            let mut chars = text[start..].char_indices().skip(1).peekable();
            while let Some((i, c)) = chars.next() {
                if std::mem::take(&mut escaped) {
                    continue;
                }
                let doubled = c == quote && quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == quote);
                if doubled || (c == '\\' && quote == '"') {
                    escaped = true;
                } else if c == quote {
                    return start + i + 1;
                }
            }
            end
        };
        match style {
            ScalarStyle::SingleQuoted => start..closing('\''),
            ScalarStyle::DoubleQuoted => start..closing('"'),
            ScalarStyle::Plain => start..end.max(start),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let indicator = text[..start].rfind(['|', '>']).unwrap_or(start);
                let content = text[..end.max(start)].trim_end_matches([' ', '\t']);
                let end = if content.ends_with('\n') { content.len() } else { end.max(start) };
                indicator..end
            }
        }
    }

    /// The byte past the closing bracket that is the next thing at or behind a mark. The scanner's own marks of a
    /// closing bracket may lie before or behind the blanks and comments around it.
    fn past_bracket(&self, mark: Marker) -> usize {
        let mut at = self.offset(mark);
        while let Some(c) = self.text[at..].chars().next() {
            match c {
                ']' | '}' => return at + 1,
                '#' => at += self.text[at..].find(['\n', '\r']).unwrap_or(self.text.len() - at),
                _ => at += c.len_utf8(),
            }
        }
        at
    }

    /// The byte at a mark; a mark past its line's end is the text's end. Marks mostly come in order, so the way from
    /// the last one is walked and not that from the line's start: a file may be one long line.
    fn offset(&self, mark: Marker) -> usize {
        let (line, column) = (mark.line(), mark.col());
        let Some(start) = line.checked_sub(1).and_then(|line| self.starts.get(line)) else {
            return self.text.len();
        };
        let (from, known) = match self.last.get() {
            (l, c, byte) if l == line && c <= column => (byte, c),
            _ => (*start, 0),
        };
        let rest = &self.text[from..];
        let byte = from + rest.char_indices().nth(column - known).map_or(rest.len(), |(i, _)| i);
        self.last.set((line, column, byte));
        byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (usize, usize, String) {
        let error = read(text).expect_err(text);
        (error.line, error.column, error.what)
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        let root =
            read("a: 0x1F\nb: 0o17\nc: -5\nd: +7\ne: yes\nf: True\ng: ~\nh:\ni: '5'\nj: 2026-01-01\nk: 012\n").unwrap();
        assert_eq!(
            root.to_json(),
            serde_json::json!({"a": 31, "b": 15, "c": -5, "d": 7, "e": "yes", "f": true, "g": null, "h": null, "i": "5", "j": "2026-01-01", "k": 12})
        );
        for float in ["1.0", ".5", "1.", "1e3", "-.inf", ".nan", "1.5E-3", "+1.0"] {
            assert!(refusal(&format!("a: {float}")).2.contains("floating"), "{float}");
        }
        for string in ["1.2.3", "e3", ".", "-", "+", "0x", "0o8", "1_000", "1e", "--1", "0xfg", "-0x1"] {
            assert!(matches!(read(&format!("a: '{string}'")).unwrap().field("a").unwrap().value, Value::Str(_)));
            assert!(matches!(resolve(string).unwrap(), Value::Str(_)), "{string}");
        }
        assert!(refusal("a: 9007199254740992").2.contains("larger"));
        assert!(read("a: 9007199254740991").is_ok());
        assert!(refusal("a: 99999999999999999999999").2.contains("larger"));
    }

    #[test]
    fn what_two_readers_may_see_differently_is_refused_with_its_place() {
        for (text, line, column, word) in [
            ("a: 1\nb: 2\na: 3\n", 3, 1, "twice"),
            ("a: 1\n'a': 3\n", 2, 1, "twice"),
            ("x: {a: 1, a: 2}", 1, 11, "twice"),
            ("a: &x 1\n", 1, 7, "anchor"),
            ("a: &x [1]\n", 1, 7, "anchor"),
            ("a: 1\nb: *x\n", 2, 4, ""),
            ("a: !!str 1\n", 1, 10, "tags"),
            ("a: ! 1\n", 1, 6, "tags"),
            ("a: 1\n<<: {b: 1}\n", 2, 1, "merge"),
            ("a: 1\n---\nb: 2\n", 2, 1, "second document"),
            ("%YAML 1.1\n---\na: 1\n", 1, 1, "directives"),
            ("# c\n%TAG ! tag:x,2000:\n---\na: 1\n", 2, 1, "directives"),
            ("1: a\n", 1, 1, "key must be a string"),
            ("true: a\n", 1, 1, "key must be a string"),
            ("? [a]\n: b\n", 1, 3, "key must be a string"),
            ("", 1, 1, "empty"),
        ] {
            let (l, c, what) = refusal(text);
            assert!(what.contains(word), "{text:?}: {what}");
            assert_eq!((l, c), (line, column), "{text:?}: {what}");
        }
    }

    #[test]
    fn an_alias_bomb_is_refused_at_its_first_anchor() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in b'b'..=b'z' {
            let (this, last) = (level as char, (level - 1) as char);
            bomb.push_str(&format!(
                "{this}: &{this} [*{last},*{last},*{last},*{last},*{last},*{last},*{last},*{last}]\n"
            ));
        }
        assert_eq!(refusal(&bomb).0, 1);
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        assert!(refusal(&"- a\n".repeat(MAX_NODES)).2.contains("more than 50000"));
        assert!(read(&"- a\n".repeat(MAX_NODES - 1)).is_ok());
        assert_eq!(
            read(&format!("[{}]", "é,".repeat(MAX_NODES - 1))).unwrap().elements().unwrap().len(),
            MAX_NODES - 1
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |n: usize| format!("{}x{}", "[".repeat(n), "]".repeat(n));
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        assert!(refusal(&nested(MAX_DEPTH + 1)).2.contains("nested deeper"));
        for opening in ["[", "{a: ", "- ", "? ", "[{", "a: [", "- - ", "{? "] {
            refusal(&opening.repeat(100_000));
        }
    }

    #[test]
    fn spans_are_the_bytes_of_the_values() {
        let text = "# é comment\r\na: 'zwei'\r\nbé: [1, 2] # é\r\nc:\r\n  - x: 1\r\n    y: q\r\n  # after\r\nd: 5";
        let root = read(text).unwrap();
        let slice = |node: &Node| &text[node.span.clone()];
        assert_eq!(slice(root.field("a").unwrap()), "'zwei'");
        assert_eq!(slice(root.field("bé").unwrap()), "[1, 2]");
        assert_eq!(slice(root.field("d").unwrap()), "5");
        let c = root.field("c").unwrap();
        assert!(text[..c.content_end()].ends_with("y: q"));
        assert!(text[c.span.start..].starts_with("- x") && !c.flow);
        let text = "a: 'it''s' # c\nb: \"q\\\"\" # c\nc: |\n  x\n  y\nd: >- # h\n  z\n  # n\ne: {f: 'g', h: \"i\"}\n";
        let root = read(text).unwrap();
        let slice = |name: &str| &text[root.field(name).unwrap().span.clone()];
        assert_eq!((slice("a"), slice("b")), ("'it''s'", "\"q\\\"\""));
        assert_eq!((slice("c"), slice("d")), ("|\n  x\n  y\n", ">- # h\n  z\n  # n\n"));
        let flow = "{a: {b: 1}, c: [ ] }";
        let root = read(flow).unwrap();
        assert!(root.flow && &flow[root.span.clone()] == flow);
        assert_eq!(&flow[root.field("a").unwrap().span.clone()], "{b: 1}");
        assert_eq!(&flow[root.field("c").unwrap().span.clone()], "[ ]");
    }
}
