//! A request's path, as it came and normalised.

use std::borrow::Cow;

/// The path of a request target, in the two forms that rules are matched against.
#[derive(Clone, Debug)]
pub struct RequestPath<'a> {
    raw: &'a str,
    /// Only where it differs from `raw`.
    normal: Option<String>,
}

impl<'a> RequestPath<'a> {
    /// Normalises `raw`; allocates only where that changes it.
    ///
    /// In the normal form (RFC 3986, 6.2.2) escaped unreserved octets are decoded, once; the other
    /// escapes have upper-case digits, and stand also for octets that a path may not hold as they
    /// are; dot segments are removed, and then empty segments. A `%` without two hexadecimal digits
    /// stays. `""` is "no path"; it and whatever else does not begin with a slash (`*`, an
    /// authority) is normal as it is and fits no pattern.
    #[must_use]
    pub fn new(raw: &'a str) -> Self {
        let normal = (raw.starts_with('/') && may_change(raw.as_bytes())).then(|| normalised(raw));
        RequestPath { raw, normal: normal.flatten() }
    }

    /// The path as it came.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The normalised path.
    #[must_use]
    pub fn normal(&self) -> &str {
        self.normal.as_deref().unwrap_or(self.raw)
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
        self.normal.is_none()
    }
}

/// Whether normalising `path` may change it: a scan without branches, which the compiler does many
/// bytes at a time. Almost every path ends here.
fn may_change(path: &[u8]) -> bool {
    let octets = path.iter().fold(false, |found, &octet| found | (octet == b'%') | !is_path(octet));
    let pairs = path.iter().zip(path.iter().skip(1));
    octets
        | pairs.fold(false, |found, (&left, &right)| {
            found | ((left == b'/') & ((right == b'/') | (right == b'.')))
        })
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
