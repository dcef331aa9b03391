//! Which fields of a record are personal because of what stands beside them?
//!
//! In a line of fields (`;`, `|`, tab, or comma) that holds an account, address, card or id, a field that is wholly a date is
//! taken for a date of birth, one that is wholly a valid national id for that, and one that is wholly a phone number for that.

use super::{DOB_ROW, birth};
use crate::{
    Kind, national, phone,
    scanner::{Hit, weight},
};

/// Longest line that is looked at as a record, in bytes.
const LINE: usize = 2048;

/// Adds the values that the records of the hits so far hold.
pub(crate) fn rows(text: &[u8], hits: &mut Vec<Hit>) {
    // Stable sorts are fast on what is nearly sorted.
    hits.sort_by_key(|hit| (hit.start, hit.end));
    let anchors: Vec<usize> = hits
        .iter()
        .filter(|h| {
            matches!(h.kind, Kind::Iban | Kind::Email | Kind::CreditCard | Kind::NationalId) && h.weight >= weight::FREE
        })
        .map(|h| h.start)
        .collect();
    let count = hits.len();
    let mut done = 0;
    for at in anchors {
        if at < done {
            continue;
        }
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |i| i + 1);
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |i| at + i);
        done = end;
        if end - start <= LINE {
            row(text, start, end, count, hits);
        }
    }
}

/// The line `start..end`; the first `count` hits are sorted, later ones are of earlier lines.
fn row(text: &[u8], start: usize, end: usize, count: usize, hits: &mut Vec<Hit>) {
    let line = &text[start..end];
    let Some(sep) = [b'|', b';', b'\t', b','].into_iter().find(|&sep| memchr::memchr_iter(sep, line).nth(1).is_some())
    else {
        return;
    };
    let mut field_start = start;
    // Hits are at most a key file long; those of this line begin in it or a little before.
    let here = hits[..count].partition_point(|h| h.start < start)..hits[..count].partition_point(|h| h.start < end);
    let contact = hits[here.clone()].iter().all(|h| h.kind == Kind::Email);
    for field in line.split(|&b| b == sep) {
        let next = field_start + field.len() + 1;
        let lead = field.iter().take_while(|b| b.is_ascii_whitespace() || **b == b'"').count();
        let body = field[lead..].trim_ascii_end();
        let body = body.strip_suffix(b"\"").unwrap_or(body);
        let from = field_start + lead;
        field_start = next;
        // Commas part sentences too: there only the telling kinds count.
        if body.len() < 6
            || body.len() > 40
            || hits[here.clone()].iter().any(|h| h.start < from + body.len() && from < h.end)
        {
            continue;
        }
        let date = || {
            birth::date(body, body.iter().position(u8::is_ascii_digit)?)
                .filter(|d| *d == (0, body.len()))
                .map(|_| (Kind::Dob, DOB_ROW))
        };
        let id = || national::whole(body).map(|rule| (Kind::NationalId, rule));
        let call = || phone::whole(body).map(|rule| (Kind::Phone, rule));
        // A record with an address but no account is a contact: its numbers are rather phones.
        let found = match (sep, contact) {
            (b',', _) => id(),
            (_, true) => date().or_else(call).or_else(id),
            (_, false) => date().or_else(id).or_else(call),
        };
        if let Some((kind, rule)) = found {
            hits.push(Hit { start: from, end: from + body.len(), kind, rule, weight: weight::ROW });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{found, nothing};

    #[test]
    fn fields_beside_an_account() {
        assert_eq!(
            found("Jo Doe;15.07.1985;341725410;DE89370400440532013000\n"),
            [("DOB", "15.07.1985"), ("NATIONAL_ID", "341725410"), ("IBAN", "DE89370400440532013000")]
        );
        assert_eq!(
            found("| Jo Doe | 0937 558410 | jo@example.org |"),
            [("PHONE", "0937 558410"), ("EMAIL", "jo@example.org")]
        );
    }

    #[test]
    fn fields_alone() {
        nothing("widget;15.07.1985;341725410;12\n");
    }
}
