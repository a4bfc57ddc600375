//! What a rule may look at in a request.

use std::{borrow::Cow, fmt, net::IpAddr};

use http::{HeaderMap, Method, header};

use crate::RequestPath;

/// The facts of one request, borrowed from wherever it stands: an `http::Request`, a log line.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The method; `None` where a log line holds none.
    pub method: Option<&'a Method>,
    /// The path, as it came and normalised.
    pub path: RequestPath<'a>,
    /// The query, without its `?`.
    pub query: Option<&'a str>,
    /// The host of the request target or the `Host` field, without its port.
    pub host: Option<&'a str>,
    /// The request's header fields.
    pub headers: &'a HeaderMap,
    /// The template the router matched, where it is known.
    pub route: Option<&'a str>,
    /// The client's canonical address, where it is known: see [`crate::ClientConfig::resolve`].
    pub client: Option<IpAddr>,
    /// What functions of the service know of the request: `user` and `x:NAME`.
    pub extracted: &'a dyn Extract,
}

/// What only the service itself can tell of a request. Asked only where a rule wants to know.
pub trait Extract: fmt::Debug {
    /// `user`.
    fn user(&self) -> Option<Cow<'_, str>>;

    /// `x:NAME`.
    fn extra(&self, name: &str) -> Option<Cow<'_, str>>;
}

/// The service tells nothing.
impl Extract for () {
    fn user(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn extra(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }
}

impl Facts<'_> {
    /// Whether this is a CORS preflight: `OPTIONS` with `Origin` and
    /// `Access-Control-Request-Method` (Fetch standard, 4.8).
    #[must_use]
    pub fn is_preflight(&self) -> bool {
        self.method == Some(&Method::OPTIONS)
            && self.headers.contains_key(header::ORIGIN)
            && self.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preflight_is_options_with_an_origin_and_a_requested_method() {
        let origin = (header::ORIGIN, "https://a.example".parse().unwrap());
        let method = (header::ACCESS_CONTROL_REQUEST_METHOD, "POST".parse().unwrap());
        let both = HeaderMap::from_iter([origin.clone(), method.clone()]);
        let is_preflight = |method, headers: HeaderMap| {
            let path = RequestPath::new("/");
            let facts = Facts {
                method,
                path,
                query: None,
                host: None,
                headers: &headers,
                route: None,
                client: None,
                extracted: &(),
            };
            facts.is_preflight()
        };
        assert!(is_preflight(Some(&Method::OPTIONS), both.clone()));
        assert!(!is_preflight(Some(&Method::GET), both.clone()));
        assert!(!is_preflight(None, both.clone()));
        assert!(!is_preflight(Some(&Method::OPTIONS), HeaderMap::from_iter([origin])));
        assert!(!is_preflight(Some(&Method::OPTIONS), HeaderMap::from_iter([method])));
    }
}
