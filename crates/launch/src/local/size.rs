//! Amounts as the manifest writes them: `memory: 4GiB`, `cpu: "1.5"`.

use crate::error::LaunchError;

/// Bytes of `4096`, `512M`, `4GiB`: units are powers of 1,024, and the `B` and the `i` may be left out.
///
/// # Errors
/// Where it is no amount, or none at all.
pub(crate) fn bytes(key: &str, text: &str) -> Result<u64, LaunchError> {
    let bad = || {
        LaunchError::refused(
            format!("`sandbox.local.{key}: {}`", text.escape_debug()),
            "is no amount of memory; write a number with K, M, G or T, such as 512M or 4G",
        )
    };
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim_start().to_ascii_lowercase();
    let shift = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 0,
        "k" | "ki" => 10,
        "m" | "mi" => 20,
        "g" | "gi" => 30,
        "t" | "ti" => 40,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(bad)
}

/// Thousandths of a processor of `2` or `1.5`.
///
/// # Errors
/// Where it is no number, less than a hundredth, or more than 1,024.
pub(crate) fn cpu_millis(text: &str) -> Result<u32, LaunchError> {
    let bad = || {
        LaunchError::refused(
            format!("`sandbox.local.cpu: {}`", text.escape_debug()),
            "is no number of processors, such as 2 or 1.5",
        )
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 3 || text.ends_with('.') {
        return Err(bad());
    }
    let millis = format!("{whole}{part:0<3}").parse().map_err(|_| bad())?;
    if (10..=1_024_000).contains(&millis) { Ok(millis) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_usually_written() {
        for (text, is) in [
            ("4096", 4096),
            ("1k", 1024),
            ("512M", 512 << 20),
            ("512 MiB", 512 << 20),
            ("4GiB", 4 << 30),
            ("4gb", 4 << 30),
            ("2T", 2 << 40),
        ] {
            assert_eq!(bytes("memory", text).unwrap(), is, "{text}");
        }
        for text in ["", "0", "M", "-1", "1.5G", "4X", "4 G B", "99999999999T", "0x10", "4iB"] {
            assert!(bytes("memory", text).is_err(), "{text}");
        }
    }

    #[test]
    fn processors_may_be_parts_of_one() {
        for (text, is) in [("2", 2000), ("1.5", 1500), ("0.25", 250), ("0.01", 10)] {
            assert_eq!(cpu_millis(text).unwrap(), is, "{text}");
        }
        for text in ["", "0", "0.001", "1.", ".5", "-1", "1e3", "5000", "1.2345", "two"] {
            assert!(cpu_millis(text).is_err(), "{text}");
        }
    }
}
