//! The hops of a forwarding field, from the right, without allocating.
//!
//! Only what is left of a hop can be a client's own invention, so nothing here looks further left
//! than the hop it reads: quotes, too, are paired from the right.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::{HeaderMap, HeaderName};

use super::FORWARDING_FIELD_BYTES_MAX;

/// The longest text that can be an address with its zone and its port; what is longer is none.
const ADDRESS_BYTES_MAX: usize = 128;

/// The hops of all lines of `X-Forwarded-For`, the last one first; `None` is one that cannot be used.
pub(super) fn x_forwarded_for<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = Option<IpAddr>> + use<'a> {
    hops(headers, name, false, address)
}

/// The hops of all lines of `Forwarded` (RFC 7239), as [`x_forwarded_for`] gives them.
pub(super) fn forwarded<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = Option<IpAddr>> + use<'a> {
    hops(headers, name, true, forwarded_for)
}

fn hops<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    quotes: bool,
    hop: fn(&[u8]) -> Option<IpAddr>,
) -> impl Iterator<Item = Option<IpAddr>> + use<'a> {
    let mut left = FORWARDING_FIELD_BYTES_MAX;
    headers.get_all(name).into_iter().rev().flat_map(move |line| {
        let line = line.as_bytes();
        let window = &line[line.len().saturating_sub(left)..];
        let cut = left == 0 || window.len() < line.len();
        left = left.saturating_sub(line.len() + ", ".len());
        let mut elements = FromRight { rest: Some(window), separator: b',', quotes };
        std::iter::from_fn(move || {
            loop {
                let element = trimmed(elements.next()?);
                if cut && elements.rest.is_none() {
                    return Some(None);
                }
                // RFC 9110, 5.6.1: empty elements mean nothing.
                if !element.is_empty() {
                    return Some(hop(element));
                }
            }
        })
    })
}

/// The address of one element of `Forwarded`.
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    let mut node = None;
    for pair in (FromRight { rest: Some(element), separator: b';', quotes: true }) {
        let pair = trimmed(pair);
        if pair.is_empty() {
            continue;
        }
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        if name.eq_ignore_ascii_case(b"for") && node.replace(value).is_some() {
            return None;
        }
    }
    match node? {
        [b'"', quoted @ .., b'"'] => quoted_address(quoted),
        token if token.iter().all(|&byte| is_token(byte)) => address(token),
        _ => None,
    }
}

/// The address in a quoted string: each backslash stands for the byte after it.
fn quoted_address(quoted: &[u8]) -> Option<IpAddr> {
    let mut text = [0; ADDRESS_BYTES_MAX];
    let mut length = 0;
    let mut bytes = quoted.iter();
    while let Some(&byte) = bytes.next() {
        *text.get_mut(length)? = match byte {
            b'\\' => *bytes.next()?,
            b'"' => return None,
            byte => byte,
        };
        length += 1;
    }
    address(&text[..length])
}

/// The canonical address that `text` holds, in any way proxies write one: with or without spaces,
/// quotes, brackets, a zone and a port.
///
/// A bare IPv6 address is never cut at its last colon: `2001:db8::1:80` has no port.
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    let text = match trimmed(text) {
        [b'"', quoted @ .., b'"'] => trimmed(quoted),
        plain => plain,
    };
    if text.len() > ADDRESS_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    if let Some(bracketed) = text.strip_prefix('[') {
        let (addr, port) = bracketed.split_once(']')?;
        let is_whole = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return v6(addr).filter(|_| is_whole);
    }
    let (addr, port) = text.split_once(':').map_or((text, None), |(addr, port)| (addr, Some(port)));
    match addr.parse::<Ipv4Addr>() {
        Ok(addr) => port.is_none_or(is_port).then_some(addr.into()),
        Err(_) => v6(text),
    }
}

/// An IPv6 address; its zone names an interface of the proxy's and says nothing here.
fn v6(text: &str) -> Option<IpAddr> {
    let addr = text.split_once('%').map_or(text, |(addr, _zone)| addr);
    Some(IpAddr::from(addr.parse::<Ipv6Addr>().ok()?).to_canonical())
}

/// RFC 7239, 6: up to five digits, or an obfuscated port.
fn is_port(text: &str) -> bool {
    let obfuscated = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match text.strip_prefix('_') {
        Some(port) => !port.is_empty() && port.bytes().all(obfuscated),
        None => (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// RFC 9110, 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Without the spaces and tabs around it.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// What stands between separators, from the right; those in quoted strings separate nothing.
struct FromRight<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
    quotes: bool,
}

impl<'a> Iterator for FromRight<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let mut end = rest.len();
        while let Some(at) = end.checked_sub(1) {
            if rest[at] == self.separator {
                self.rest = Some(&rest[..at]);
                return Some(&rest[end..]);
            }
            let quote = self.quotes && rest[at] == b'"';
            end = if quote { opening_quote(&rest[..at]) } else { at };
        }
        Some(rest)
    }
}

/// Where the string that is closed after `text` was opened; 0 where nothing opens it, so that all
/// that is left becomes one element, which cannot be used.
fn opening_quote(text: &[u8]) -> usize {
    let mut end = text.len();
    while let Some(at) = text[..end].iter().rposition(|&byte| byte == b'"') {
        let escapes = text[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if escapes % 2 == 0 {
            return at;
        }
        end = at;
    }
    0
}
