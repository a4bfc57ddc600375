//! Quoted fields: where they end, and what they hold.

use std::borrow::Cow;

use http::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

/// What a field value cannot hold; the one control it can, the tab, does no harm encoded.
const NOT_IN_VALUE: &AsciiSet = CONTROLS;

/// A logged value as a header field can hold it: as it is, else with its control characters
/// percent-encoded.
#[must_use]
pub fn field_value(logged: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_bytes(logged).ok().or_else(|| {
        let encoded: String = percent_encode(logged, NOT_IN_VALUE).collect();
        HeaderValue::from_str(&encoded).ok()
    })
}

/// The field that begins after an opening quote, and what follows its closing one; `None` if it
/// does not end. A quote after an odd number of backslashes is part of the field.
pub(super) fn quoted(bytes: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let mut escaped = false;
    let end = bytes.iter().position(|byte| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })?;
    Some((unescape(&bytes[..end]), &bytes[end + 1..]))
}

/// As [`quoted`]; a field that does not end is all that is left.
pub(super) fn quoted_or_cut(bytes: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    quoted(bytes).unwrap_or_else(|| (unescape(bytes), &[]))
}

/// Undoes what servers write for bytes that a quoted field cannot hold: `\"`, `\\`, `\xHH` and C's
/// letters. Any other backslash stands for itself.
fn unescape(field: &[u8]) -> Cow<'_, [u8]> {
    if !field.contains(&b'\\') {
        return Cow::Borrowed(field);
    }
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let (byte, next) = match (first, after) {
            (b'\\', [b'x', high, low, next @ ..]) if is_hex(*high) && is_hex(*low) => {
                (hex(*high) << 4 | hex(*low), next)
            }
            (b'\\', [letter, next @ ..]) => match escape(*letter) {
                Some(byte) => (byte, next),
                None => (*first, after),
            },
            _ => (*first, after),
        };
        plain.push(byte);
        rest = next;
    }
    Cow::Owned(plain)
}

fn escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' => letter,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'v' => 0x0b,
        b'f' => 0x0c,
        _ => return None,
    })
}

fn is_hex(digit: u8) -> bool {
    digit.is_ascii_hexdigit()
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_no_field_can_hold_is_encoded_and_others_stay_as_they_are() {
        let table: [(&[u8], &[u8]); 4] = [
            (b"Agent/1", b"Agent/1"),
            (b"a\tb %00 \xff", b"a\tb %00 \xff"),
            (b"a\nb\x7f\x00", b"a%0Ab%7F%00"),
            (b"", b""),
        ];
        for (logged, expected) in table {
            let value = field_value(logged).unwrap();
            assert_eq!(value.as_bytes(), expected, "{}", logged.escape_ascii());
        }
    }

    #[test]
    fn a_quoted_field_ends_at_the_first_quote_that_is_not_escaped() {
        type Split = (&'static [u8], &'static [u8]);
        let table: [(&[u8], Option<Split>); 11] = [
            (b"\" 200", Some((b"", b" 200"))),
            (b"a b\" c", Some((b"a b", b" c"))),
            (br#"a\"b" c"#, Some((b"a\"b", b" c"))),
            (br#"a\\" c"#, Some((b"a\\", b" c"))),
            (br#"a\\\" c" d"#, Some((b"a\\\" c", b" d"))),
            (br#"\x22\x5C\xfF""#, Some((b"\"\\\xff", b""))),
            (br#"\n\t\r\b\v\f""#, Some((b"\n\t\r\x08\x0b\x0c", b""))),
            (br#"\d \x \x4 \x4g""#, Some((br"\d \x \x4 \x4g", b""))),
            (b"\xff\x00\xfe\"", Some((b"\xff\x00\xfe", b""))),
            (b"never ends", None),
            (br#"never ends\""#, None),
        ];
        for (input, expected) in table {
            let found = quoted(input);
            let found = found.as_ref().map(|(field, rest)| (&**field, *rest));
            assert_eq!(found, expected, "{}", input.escape_ascii());
        }
    }
}
