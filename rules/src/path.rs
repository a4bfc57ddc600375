//! A request's path, as it came and normalised.

use std::{borrow::Cow, cell::OnceCell};

/// The path of a request target, in the two forms that rules are matched against.
#[derive(Clone, Debug)]
pub struct RequestPath<'a> {
    raw: &'a str,
    /// Only where it differs from `raw`; found out when it is asked for.
    normal: OnceCell<Option<String>>,
}

impl<'a> RequestPath<'a> {
    /// A path that is normalised once it is asked for; that allocates only where it changes it.
    ///
    /// In the normal form (RFC 3986, 6.2.2) escaped unreserved octets are decoded, once; the other
    /// escapes have upper-case digits, and stand also for octets that a path may not hold as they
    /// are; dot segments are removed, and then empty segments. A `%` without two hexadecimal digits
    /// stays. `""` is "no path"; it and whatever else does not begin with a slash (`*`, an
    /// authority) is normal as it is and fits no pattern.
    #[must_use]
    pub fn new(raw: &'a str) -> Self {
        RequestPath { raw, normal: OnceCell::new() }
    }

    #[inline]
    fn other_form(&self) -> Option<&str> {
        // To look again is as cheap as to remember, for the paths that most requests have.
        if !self.raw.starts_with('/') || !may_change(self.raw.as_bytes()) {
            return None;
        }
        self.normal.get_or_init(|| normalised(self.raw)).as_deref()
    }

    /// The path as it came.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The normalised path.
    #[must_use]
    pub fn normal(&self) -> &str {
        self.other_form().unwrap_or(self.raw)
    }

    /// The normalised path without one trailing slash (`/` stays).
    #[must_use]
    pub fn normal_trimmed(&self) -> &str {
        let normal = self.normal();
        normal.strip_suffix('/').filter(|trimmed| !trimmed.is_empty()).unwrap_or(normal)
    }

    /// Whether normalising changed nothing.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        self.other_form().is_none()
    }
}

/// Whether normalising `path` may change it: a scan of eight octets at a time. Almost every path
/// ends here.
fn may_change(path: &[u8]) -> bool {
    let Some(last) = path.last_chunk() else {
        let padding = each(b'a');
        return is_suspect(
            path.iter().rev().fold(padding, |eight, &octet| eight << 8 | u64::from(octet)),
        );
    };
    let mut rest = path;
    while let Some((eight, _)) = rest.split_first_chunk() {
        if is_suspect(u64::from_le_bytes(*eight)) {
            return true;
        }
        // The next eight begin with the last of these: pairs are seen whole.
        rest = &rest[7..];
    }
    is_suspect(u64::from_le_bytes(*last))
}

/// Whether eight octets, the first one lowest, are other than letters, digits and `-./_`, which most
/// paths are made of, or hold a slash before a slash or a dot.
///
/// Each octet's answer is its high bit, which all these octets lack; so no sum carries over.
fn is_suspect(eight: u64) -> bool {
    let high = each(0x80);
    let low = eight & !high;
    let from = |octets: u64, first: u8| octets + each(0x80 - first);
    let is = |octets: u64, octet: u8| !from(octets ^ each(octet), 1);
    let lower = low | each(0x20);
    let letters = from(lower, b'a') & !from(lower, b'z' + 1);
    let digits_and_marks = from(low, b'-') & !from(low, b'9' + 1);
    let common = (letters | digits_and_marks | is(low, b'_')) & !eight & high;
    let pairs = is(low, b'/') & is(low | each(1), b'/') >> 8 & each(0x80);
    common != high || pairs != 0
}

/// Eight times the same octet.
const fn each(octet: u8) -> u64 {
    u64::from_le_bytes([octet; 8])
}

/// The normal form, where it is another one.
fn normalised(path: &str) -> Option<String> {
    let octets = normal_octets(path);
    let mut segments = octets.split('/').skip(1).peekable();
    let mut odd = false;
    while let Some(segment) = segments.next() {
        odd |= is_dots(segment) || (segment.is_empty() && segments.peek().is_some());
    }
    match octets {
        Cow::Borrowed(_) if !odd => None,
        Cow::Owned(octets) if !odd => Some(octets),
        octets => Some(plain_segments(&octets)),
    }
}

/// `path` without dot segments (RFC 3986, 5.2.4), and then without empty ones.
fn plain_segments(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        if segment == ".." {
            plain.truncate(plain.rfind('/').unwrap_or(0));
        }
        if !is_dots(segment) {
            plain.push('/');
            plain.push_str(segment);
        } else if segments.peek().is_none() {
            plain.push('/');
        }
    }
    let mut after_slash = false;
    plain.retain(|char| {
        let doubled = after_slash && char == '/';
        after_slash = char == '/';
        !doubled
    });
    plain
}

/// Whether this is a dot segment, which a path goes through without being there.
pub(crate) fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// `text` with each octet written in its one normal way.
pub(crate) fn normal_octets(text: &str) -> Cow<'_, str> {
    if octets_of(text.as_bytes()).all(|(octet, width)| match width {
        1 => octet == b'%' || is_path(octet),
        _ => false,
    }) {
        return Cow::Borrowed(text);
    }
    let mut normal = String::with_capacity(text.len());
    for (octet, width) in octets_of(text.as_bytes()) {
        let lone_percent = width == 1 && octet == b'%';
        let plain = if width == 1 { is_path(octet) } else { is_unreserved(octet) };
        if plain || lone_percent {
            normal.push(char::from(octet));
        } else {
            normal.push('%');
            normal.push(char::from(HEX[usize::from(octet >> 4)]));
            normal.push(char::from(HEX[usize::from(octet & 15)]));
        }
    }
    if normal == text { Cow::Borrowed(text) } else { Cow::Owned(normal) }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The octets that `text` stands for, each with the bytes it is written in: three for an escape.
fn octets_of(text: &[u8]) -> impl Iterator<Item = (u8, usize)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        let (octet, width) = match escaped {
            Some(octet) => (octet, 3),
            None => (*rest.first()?, 1),
        };
        rest = &rest[width..];
        Some((octet, width))
    })
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// RFC 3986, 2.3.
fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() | matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// What a path may hold as it is (RFC 3986, 3.3: pchar), and its slashes.
fn is_path(octet: u8) -> bool {
    is_unreserved(octet)
        | matches!(
            octet,
            b'!' | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
                | b'/'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(raw: &str, normal: &str) {
        let path = RequestPath::new(raw);
        assert_eq!(path.normal(), normal, "the normal form of {raw:?}");
        assert_eq!(path.is_normal(), raw == normal, "{raw:?}: a copy is kept only of another form");
    }

    // C18
    #[test]
    fn unreserved_octets_are_decoded_once() {
        check("/%61pi/login", "/api/login");
        check("/%7Euser/a%2Db%5Fc", "/~user/a-b_c");
        check("/api/%252e", "/api/%252e");
        check("/api/%252e%252e/x", "/api/%252e%252e/x");
        check("/%%34%31", "/%41");
    }

    // C18
    #[test]
    fn other_escapes_stay_apart_and_get_upper_case_digits() {
        check("/api/%2flogin", "/api/%2Flogin");
        check("/api/%2Flogin", "/api/%2Flogin");
        check("/caf%c3%a9", "/caf%C3%A9");
        check("/a%3fb%23", "/a%3Fb%23");
    }

    #[test]
    fn octets_that_no_path_may_hold_are_escaped() {
        check("/café", "/caf%C3%A9");
        check("/{a}|\"b\"", "/%7Ba%7D%7C%22b%22");
        check("/a b", "/a%20b");
        check("/!$&'()*+,;=:@", "/!$&'()*+,;=:@");
    }

    #[test]
    fn malformed_escapes_stay_as_they_are() {
        for path in ["/%", "/%zz", "/a%2", "/%%", "/100%/x"] {
            check(path, path);
        }
        check("/%zz/%61", "/%zz/a");
    }

    // C18
    #[test]
    fn dot_segments_are_removed() {
        check("/api/%2e%2e/api/login", "/api/login");
        check("/a/./b/../c", "/a/c");
        check("/a/b/..", "/a/");
        check("/a/b/.", "/a/b/");
        check("/..", "/");
        check("/../../a", "/a");
        check("/mid/content=5/../6", "/mid/6");
        for path in ["/.well-known/x", "/...", "/a..b/.c", "/.%2F."] {
            check(path, path);
        }
    }

    // C19
    #[test]
    fn empty_segments_are_merged_after_the_dots() {
        check("//", "/");
        check("//a///b//", "/a/b/");
        check("/a//../b", "/a/b");
        check("/a/..//b", "/b");
    }

    #[test]
    fn what_begins_with_no_slash_is_no_path_and_stays() {
        for path in ["", "*", "example.com:443", "%61//b", "a/../b"] {
            check(path, path);
        }
    }

    // C16
    #[test]
    fn one_trailing_slash_is_trimmed_but_not_the_root() {
        let trimmed = |raw| RequestPath::new(raw).normal_trimmed().to_owned();
        assert_eq!(trimmed("/api/register/"), "/api/register");
        assert_eq!(trimmed("/api/register"), "/api/register");
        assert_eq!(trimmed("/a//"), "/a");
        assert_eq!(trimmed("/"), "/");
        assert_eq!(trimmed("//"), "/");
        assert_eq!(trimmed(""), "");
        assert_eq!(trimmed("*"), "*");
    }

    #[test]
    fn the_scan_finds_whatever_normalising_would_change() {
        for octet in 0..=u8::MAX {
            for at in 1..20 {
                for length in at + 1..20 {
                    let mut path = vec![b'a'; length];
                    path[0] = b'/';
                    path[at] = octet;
                    let plain = is_path(octet) && !(at == 1 && matches!(octet, b'/' | b'.'));
                    assert!(may_change(&path) || plain, "{octet:#x} at {at} of {length}");
                    if octet.is_ascii_alphanumeric() || b"-_".contains(&octet) {
                        assert!(!may_change(&path), "{octet:#x} at {at} of {length} is plain");
                    }
                    for next in [b'/', b'.'] {
                        path[at - 1] = b'/';
                        path[at] = next;
                        assert!(may_change(&path), "a slash before {next:#x} at {at} of {length}");
                    }
                }
            }
        }
    }

    /// RFC 3986, 5.2.4, letter by letter.
    fn remove_dot_segments(path: &str) -> String {
        let mut input = path.to_owned();
        let mut output = String::new();
        while !input.is_empty() {
            if input.starts_with("/./") || input == "/." {
                input.replace_range(..input.len().min(3), "/");
            } else if input.starts_with("/../") || input == "/.." {
                input.replace_range(..input.len().min(4), "/");
                output.truncate(output.rfind('/').unwrap_or(0));
            } else {
                let end = input[1..].find('/').map_or(input.len(), |at| at + 1);
                output.push_str(&input[..end]);
                input.replace_range(..end, "");
            }
        }
        output
    }

    proptest! {
        #[test]
        fn dots_are_removed_as_the_rfc_says(path in "/(\\.|\\.\\.|/|a|b\\.){0,12}") {
            let mut expected = remove_dot_segments(&path);
            while expected.contains("//") {
                expected = expected.replace("//", "/");
            }
            let found = RequestPath::new(&path);
            prop_assert_eq!(found.normal(), expected);
        }

        #[test]
        fn any_text_has_a_normal_form(path in "/(\\PC|[%./]|%[0-9a-fA-F]{2}){0,40}") {
            let first = RequestPath::new(&path);
            let normal = first.normal();
            prop_assert!(normal.starts_with('/') && normal.is_ascii());
            prop_assert!(!normal.contains("//") && !normal.split('/').any(is_dots));
            prop_assert_eq!(first.is_normal(), normal == path);
        }

        #[test]
        fn a_normal_form_of_whole_escapes_is_its_own(path in "/([a-z./~ é]|%[0-9a-fA-F]{2}){0,20}") {
            // %25 may go before two digits, and stays: nothing is decoded twice.
            let first = RequestPath::new(&path).normal().to_owned();
            let second = RequestPath::new(&first);
            prop_assert_eq!(second.normal(), &first);
        }
    }
}
