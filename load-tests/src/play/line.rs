//! A log line as a request.

use std::borrow::Cow;

use hotgate_cli::log::{Line, field_value};
use http::{
    HeaderName, HeaderValue, Method, Request, Uri,
    header::{REFERER, USER_AGENT},
    uri::PathAndQuery,
};

use super::send::Body;

/// There is no constant for it in `http`.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A line that can be sent.
#[derive(Debug)]
pub(super) struct Planned {
    /// The first field, as it goes out.
    pub(super) client: String,
    pub(super) request: Request<Body>,
}

/// Why a line is not played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unplayable {
    /// Its first field is no address: sent without one, it would count as the proxy's own.
    NoClient,
    /// It asks for nothing that an HTTP client can send.
    NoRequest,
}

impl Planned {
    pub(super) fn of(line: &Line<'_>) -> Result<Self, Unplayable> {
        let forwarded = match line.client {
            Some(client) => Cow::Owned(client.to_string().into_bytes()),
            None => Cow::Borrowed(line.forwarded.ok_or(Unplayable::NoClient)?),
        };
        let value = HeaderValue::from_bytes(&forwarded).map_err(|_| Unplayable::NoClient)?;
        let client = value.to_str().map_err(|_| Unplayable::NoClient)?.to_owned();
        let mut request = request(line).ok_or(Unplayable::NoRequest)?;
        let headers = request.headers_mut();
        headers.insert(X_FORWARDED_FOR, value);
        if let Some(agent) = &line.agent {
            let logged = [(REFERER, &agent.referer), (USER_AGENT, &agent.user_agent)];
            for (name, value) in logged {
                if let Some(value) = value.as_deref().and_then(field_value) {
                    headers.insert(name, value);
                }
            }
        }
        Ok(Planned { client, request })
    }
}

/// Method, path and query. A log holds no bodies, so none is sent.
fn request(line: &Line<'_>) -> Option<Request<Body>> {
    let method = line.request.method.clone().filter(|method| *method != Method::CONNECT)?;
    let path = &line.request.path;
    let target: PathAndQuery = match &line.request.query {
        Some(query) => format!("{path}?{query}").parse().ok()?,
        None => path.parse().ok()?,
    };
    Request::builder().method(method).uri(Uri::from(target)).body(Body::new()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(client: &str, request: &str) -> Result<Planned, Unplayable> {
        let line = format!(
            "{client} - - [18/May/2015:08:05:03 +0000] \"{request}\" 200 1 \"http://a/\" \"Agent\\x07/1\""
        );
        Planned::of(&Line::read(line.as_bytes()).unwrap())
    }

    #[test]
    fn a_line_goes_out_as_it_was_logged() {
        let table = [
            ("GET /a//../b%2f?x=[1]&y HTTP/1.1", "GET", "/a//../b%2f?x=[1]&y"),
            ("HEAD / HTTP/1.0", "HEAD", "/"),
            ("OPTIONS * HTTP/1.1", "OPTIONS", "*"),
            ("POST http://shop.example/a?b HTTP/1.1", "POST", "/a?b"),
            ("PROPFIND //x HTTP/1.1", "PROPFIND", "//x"),
        ];
        for (logged, method, uri) in table {
            let Planned { client, request } = planned("203.0.113.9", logged).unwrap();
            assert_eq!(request.method().as_str(), method, "{logged}");
            assert_eq!(request.uri().to_string(), uri, "{logged}");
            assert_eq!(client, "203.0.113.9");
            let field = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(field("x-forwarded-for"), "203.0.113.9");
            assert_eq!(field("referer"), "http://a/");
            assert_eq!(field("user-agent"), "Agent%07/1");
        }
    }

    #[test]
    fn a_list_of_hops_goes_out_as_a_list() {
        let planned = planned("203.0.113.9, 10.0.0.1", "GET / HTTP/1.1").unwrap();
        assert_eq!(planned.client, "203.0.113.9, 10.0.0.1");
    }

    #[test]
    fn what_names_no_client_or_asks_for_nothing_is_not_played() {
        let table = [
            ("host.example", "GET / HTTP/1.1", Unplayable::NoClient),
            ("-", "GET / HTTP/1.1", Unplayable::NoClient),
            ("203.0.113.9", "-", Unplayable::NoRequest),
            ("203.0.113.9", "\\x16\\x03\\x01", Unplayable::NoRequest),
            ("203.0.113.9", "CONNECT a.example:443 HTTP/1.1", Unplayable::NoRequest),
        ];
        for (client, request, why) in table {
            assert_eq!(planned(client, request).unwrap_err(), why, "{client} {request}");
        }
    }
}
