//! A request line: method, path and query, as the server saw them.

use http::Method;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

/// What a URI's path and query cannot hold; live requests with such bytes are refused by the server
/// or come encoded. Without `%`, so that what is encoded already stays as it is.
const NOT_IN_URI: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>').add(b'`');

/// What a request line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLine {
    /// The method; `None` where the line is unusable.
    pub method: Option<Method>,
    /// The path, `""` where there is none.
    pub path: String,
    /// The query, without its `?`.
    pub query: Option<String>,
    /// The authority of an absolute-form target.
    pub authority: Option<String>,
}

impl RequestLine {
    /// Reads `METHOD TARGET HTTP/…`. The target may hold spaces and any other bytes: those that a
    /// URI cannot hold are percent-encoded. A line that is no request (`-`, empty, garbage) has no
    /// method and no path.
    #[must_use]
    pub fn read(line: &[u8]) -> Self {
        Self::usable(line).unwrap_or_default()
    }

    fn usable(line: &[u8]) -> Option<Self> {
        let (method, rest) = split_at_byte(line, b' ')?;
        let method = Method::from_bytes(method).ok()?;
        let target = without_version(rest);
        let target = split_at_byte(target, b'#').map_or(target, |(target, _)| target);
        let (authority, target) = match scheme_end(target) {
            Some(end) => {
                let after = &target[end..];
                let path = after.iter().position(|byte| matches!(byte, b'/' | b'?'));
                let (authority, target) = after.split_at(path.unwrap_or(after.len()));
                (Some(encoded(authority)), target)
            }
            None => (None, target),
        };
        let (path, query) = match split_at_byte(target, b'?') {
            Some((path, query)) => (path, Some(encoded(query))),
            None => (target, None),
        };
        let path = match (path, &authority) {
            ([b'/', ..] | b"*", _) => encoded(path),
            // `GET http://example.com` asks for the root.
            ([], Some(_)) => "/".to_owned(),
            // `CONNECT example.com:443` names no path.
            _ if method == Method::CONNECT => String::new(),
            _ => return None,
        };
        Some(RequestLine { method: Some(method), path, query, authority })
    }
}

/// The target, up to the last ` HTTP/…`; HTTP/0.9 has none.
fn without_version(rest: &[u8]) -> &[u8] {
    const MARK: &[u8] = b" HTTP/";
    match rest.windows(MARK.len()).rposition(|window| window == MARK) {
        Some(end) if !rest[end + 1..].contains(&b' ') => &rest[..end],
        _ => rest,
    }
}

/// Where the authority of `http://…` or `https://…` begins.
fn scheme_end(target: &[u8]) -> Option<usize> {
    let begins = |scheme: &[u8]| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    [b"http://".as_slice(), b"https://"].into_iter().find(|scheme| begins(scheme)).map(<[u8]>::len)
}

fn split_at_byte(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let index = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..index], &bytes[index + 1..]))
}

fn encoded(bytes: &[u8]) -> String {
    percent_encode(bytes, NOT_IN_URI).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_is_method_path_and_query() {
        let table: [(&[u8], &str, &str, Option<&str>); 16] = [
            (b"GET /x HTTP/1.1", "GET", "/x", None),
            (b"GET /x?y=1 HTTP/1.1", "GET", "/x", Some("y=1")),
            (b"GET /x?y=1?z HTTP/2.0", "GET", "/x", Some("y=1?z")),
            (b"GET /x? HTTP/1.1", "GET", "/x", Some("")),
            (b"GET /x", "GET", "/x", None),
            // C103
            (b"GET /a b c HTTP/1.1", "GET", "/a%20b%20c", None),
            (b"GET /a HTTP/1.1 HTTP/1.1", "GET", "/a%20HTTP/1.1", None),
            (b"GET /a\" HTTP/9 b HTTP/1.1", "GET", "/a\"%20HTTP/9%20b", None),
            (b"GET /\xff\x00<%ff%zz HTTP/1.1", "GET", "/%FF%00%3C%ff%zz", None),
            (b"GET /x#top HTTP/1.1", "GET", "/x", None),
            (b"GET http://h.example/x?y HTTP/1.1", "GET", "/x", Some("y")),
            (b"GET HTTPS://h.example HTTP/1.1", "GET", "/", None),
            (b"GET http://h.example?y HTTP/1.1", "GET", "/", Some("y")),
            (b"OPTIONS * HTTP/1.1", "OPTIONS", "*", None),
            (b"CONNECT h.example:443 HTTP/1.1", "CONNECT", "", None),
            (b"PROPFIND / HTTP/1.1", "PROPFIND", "/", None),
        ];
        for (line, method, path, query) in table {
            let found = RequestLine::read(line);
            let found_method = found.method.as_ref().map(Method::as_str);
            let text = line.escape_ascii();
            assert_eq!(found_method, Some(method), "{text}");
            assert_eq!((&*found.path, found.query.as_deref()), (path, query), "{text}");
        }
    }

    /// C99
    #[test]
    fn what_is_no_request_has_no_method_and_no_path() {
        let table: [&[u8]; 9] = [
            b"-",
            b"",
            b" ",
            b"HELP",
            b"lv|'|'|VHJvamFu|'|'|Win XP",
            b"\x16\x03\x01\x02 /x HTTP/1.1",
            b"GET x HTTP/1.1",
            b"GET ftp://h.example/x HTTP/1.1",
            b"GET  /x HTTP/1.1",
        ];
        for line in table {
            assert_eq!(RequestLine::read(line), RequestLine::default(), "{}", line.escape_ascii());
        }
    }
}
