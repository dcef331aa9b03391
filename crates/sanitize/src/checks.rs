//! The check-digit procedures that several formats share. Each takes ASCII digits (or what its doc says) and never panics on them.

/// Value of an ASCII digit.
pub(crate) const fn value(digit: u8) -> u32 {
    digit.wrapping_sub(b'0') as u32
}

/// Luhn's mod 10 (ISO/IEC 7812-1 Annex B).
pub(crate) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &d)| {
            let d = value(d);
            if i % 2 == 0 { d } else { d * 2 - if d > 4 { 9 } else { 0 } }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Sum of digits times weights.
pub(crate) fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(&d, w)| value(d) * w).sum()
}

/// Digits as one number modulo `m`.
pub(crate) fn modulo(digits: &[u8], m: u64) -> u64 {
    digits.iter().fold(0, |rest, &d| (rest * 10 + u64::from(value(d))) % m)
}

/// ISO 7064 MOD 97-10 over digits and upper-case letters, in reading order: 1 for a right IBAN once its head is moved back.
pub(crate) fn mod97(signs: impl IntoIterator<Item = u8>) -> u32 {
    signs.into_iter().fold(0, |rest, sign| match sign {
        b'0'..=b'9' => (rest * 10 + value(sign)) % 97,
        b'A'..=b'Z' => (rest * 100 + u32::from(sign - b'A') + 10) % 97,
        _ => 96,
    })
}

/// ISO 7064 MOD 11,10 over digits.
pub(crate) fn mod11_10(digits: &[u8]) -> bool {
    let product = digits[..digits.len() - 1].iter().fold(10, |product, &d| {
        let sum = (value(d) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == value(digits[digits.len() - 1])
}

/// Verhoeff's dihedral check (1969).
pub(crate) fn verhoeff(digits: &[u8]) -> bool {
    const D: [[usize; 10]; 10] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
        [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
        [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
        [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
        [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
        [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
        [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
        [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    ];
    const P: [[usize; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
    digits.iter().rev().enumerate().fold(0, |c, (i, &d)| D[c][P[i % 8][value(d) as usize % 10]]) == 0
}

/// EAN-13 (ISO/IEC 15420).
pub(crate) fn ean13(digits: &[u8]) -> bool {
    digits.len() == 13 && weighted(digits, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]).is_multiple_of(10)
}

/// Whether day and month are of a real date; the year decides on 29 February where it is known.
pub(crate) const fn day_month(day: u32, month: u32, year: Option<u32>) -> bool {
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => match year {
            Some(year) if !(year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))) => 28,
            _ => 29,
        },
        _ => 0,
    };
    day >= 1 && day <= days
}

/// The number that two or more digits make.
pub(crate) fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |n, &d| n.saturating_mul(10).saturating_add(value(d)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert!(luhn(b"79927398713") && !luhn(b"79927398710"));
        assert!(verhoeff(b"2363") && !verhoeff(b"2364"));
        assert!(mod11_10(b"65929970489") && !mod11_10(b"65929970488"));
        assert!(ean13(b"4006381333931") && !ean13(b"4006381333932"));
    }

    #[test]
    fn dates() {
        assert!(day_month(29, 2, Some(2000)) && !day_month(29, 2, Some(1900)) && day_month(29, 2, None));
        assert!(!day_month(31, 4, None) && !day_month(0, 1, None) && !day_month(1, 13, None));
    }
}
