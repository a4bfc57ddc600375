//! The facts of an `http` request.

use std::net::IpAddr;

use hotgate_rules::{Extract, Facts, RequestPath};
use http::{Uri, header, request::Parts};

use crate::active::Asks;

/// What rules may look at in a request of `client`, as far as they ask.
pub(crate) fn of<'a>(
    parts: &'a Parts,
    asks: Asks,
    client: Option<IpAddr>,
    extracted: &'a dyn Extract,
) -> Facts<'a> {
    let uri = uri(parts);
    Facts {
        method: Some(&parts.method),
        path: RequestPath::new(uri.path()),
        query: uri.query(),
        host: if asks.host { host(parts, uri) } else { None },
        headers: &parts.headers,
        route: if asks.route { route(parts) } else { None },
        client,
        extracted,
    }
}

/// The request target as it came: a nested router shortens the one it passes on.
#[cfg(feature = "axum")]
fn uri(parts: &Parts) -> &Uri {
    parts.extensions.get::<axum::extract::OriginalUri>().map_or(&parts.uri, |original| &original.0)
}

#[cfg(not(feature = "axum"))]
fn uri(parts: &Parts) -> &Uri {
    &parts.uri
}

#[cfg(feature = "axum")]
fn route(parts: &Parts) -> Option<&str> {
    parts.extensions.get::<axum::extract::MatchedPath>().map(axum::extract::MatchedPath::as_str)
}

#[cfg(not(feature = "axum"))]
fn route(_: &Parts) -> Option<&str> {
    None
}

/// The target's authority goes before the `Host` field (RFC 9112, 3.2.2).
fn host<'a>(parts: &'a Parts, uri: &'a Uri) -> Option<&'a str> {
    let field = || parts.headers.get(header::HOST)?.to_str().ok();
    uri.host().or_else(|| field().map(without_port)).filter(|host| !host.is_empty())
}

fn without_port(authority: &str) -> &str {
    let address_end = if authority.starts_with('[') { authority.find(']') } else { None };
    let name_start = address_end.unwrap_or(0);
    match authority[name_start..].find(':') {
        Some(colon) => &authority[..name_start + colon],
        None => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_loses_its_port_and_keeps_its_brackets() {
        let cases = [
            ("shop.example", Some("shop.example")),
            ("shop.example:8080", Some("shop.example")),
            ("[2001:db8::1]", Some("[2001:db8::1]")),
            ("[2001:db8::1]:8080", Some("[2001:db8::1]")),
            ("[2001:db8::1", Some("[2001")),
            ("", None),
            (":80", None),
        ];
        for (field, expected) in cases {
            let request = http::Request::get("/").header(header::HOST, field).body(()).unwrap();
            let parts = request.into_parts().0;
            assert_eq!(host(&parts, &parts.uri), expected, "Host: {field}");
        }
    }

    #[test]
    fn the_targets_authority_goes_before_the_field() {
        for (target, expected) in
            [("http://a.example:81/x", "a.example"), ("http://[::1]:81/x", "[::1]")]
        {
            let request =
                http::Request::get(target).header(header::HOST, "b.example").body(()).unwrap();
            let parts = request.into_parts().0;
            assert_eq!(host(&parts, &parts.uri), Some(expected));
        }
    }

    #[cfg(feature = "axum")]
    #[test]
    fn a_nested_routers_path_is_seen_as_it_came() {
        let mut parts = http::Request::get("/orders?page=2").body(()).unwrap().into_parts().0;
        let original = axum::extract::OriginalUri(Uri::from_static("/api/orders?page=2"));
        parts.extensions.insert(original);
        assert_eq!(uri(&parts).path(), "/api/orders");
    }
}
