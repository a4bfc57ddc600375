//! Who the peer is, and what happens where nobody says.

use std::net::IpAddr;

use hotgate::{Gate, GateService, Peer, PeerAddr};
use http::{Request, StatusCode};
use tower::Layer as _;

use crate::support::{Logged, answered, gate, get, limit, ok, status};

fn anonymous() -> Request<()> {
    Request::new(())
}

fn of(peer: Peer) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(PeerAddr(peer));
    request
}

fn ip(text: &str) -> Request<()> {
    of(Peer::Ip(text.parse().unwrap()))
}

#[tokio::test]
async fn requests_without_a_peer_pass_with_one_warning() {
    // C11: neither an outage nor one bucket for everybody.
    let logged = Logged::start();
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(ok());
    for _ in 0..50 {
        assert_eq!(status(&service, anonymous()).await, StatusCode::OK);
    }
    let warnings = logged.lines_with("into_make_service_with_connect_info::<SocketAddr>()");
    assert_eq!(warnings.len(), 1, "said once: {warnings:?}");
    assert!(warnings[0].contains("WARN"));
}

#[tokio::test]
async fn a_missing_key_is_shared_or_rejected_where_the_rule_says_so() {
    let rules = limit("2/1m", "throttle = {}\nmissing_key = \"share\"");
    let service = gate(&rules).layer().layer(ok());
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(status(&service, anonymous()).await.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(status(&service, ip("203.0.113.1")).await, StatusCode::OK, "a key of its own");

    let rules = limit("2/1m", "throttle = {}\nmissing_key = \"reject\"");
    let service = gate(&rules).layer().layer(ok());
    let (code, headers, body) = answered(&service, anonymous()).await;
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(headers["content-type"], "application/problem+json");
    assert!(!headers.contains_key("retry-after"));
    assert!(String::from_utf8(body.to_vec()).unwrap().contains("about:blank"));
}

#[tokio::test]
async fn a_key_part_that_the_client_leaves_out_is_its_own_fault() {
    let rules = "[[rule]]\nname = \"by-key\"\nkey = [\"header:x-key\"]\nover = \"2/1m\"\nthrottle = {}\nmissing_key = \"reject\"\n";
    let service = gate(rules).layer().layer(ok());
    assert_eq!(status(&service, anonymous()).await, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn mapped_addresses_are_the_addresses_they_map() {
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(ok());
    assert_eq!(status(&service, ip("::ffff:203.0.113.1")).await, StatusCode::OK);
    assert_eq!(status(&service, ip("203.0.113.1")).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(&service, ip("::ffff:203.0.113.2")).await, StatusCode::OK);
}

#[tokio::test]
async fn an_allowed_client_is_known_in_every_form_of_its_address() {
    // C59
    let rules =
        "[[allow]]\nclients = [\"127.0.0.0/8\"]\n".to_owned() + &limit("1/1m", "throttle = {}");
    let service = gate(&rules).layer().layer(ok());
    for _ in 0..5 {
        assert_eq!(status(&service, ip("::ffff:127.0.0.1")).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_unix_sockets_proxy_speaks_for_its_clients() {
    let rules = "[client]\nsource = \"x-forwarded-for\"\ntrusted_proxies = [\"unix\"]\n".to_owned()
        + &limit("1/1m", "throttle = {}");
    let service = gate(&rules).layer().layer(ok());
    let via_unix = |client: &str| {
        let mut request = of(Peer::Unix);
        request.headers_mut().insert("x-forwarded-for", client.parse().unwrap());
        request
    };
    assert_eq!(status(&service, via_unix("203.0.113.1")).await, StatusCode::OK);
    assert_eq!(status(&service, via_unix("203.0.113.1")).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(&service, via_unix("203.0.113.2")).await, StatusCode::OK);
}

#[tokio::test]
async fn requests_over_a_unix_socket_that_name_no_client_pass_with_one_warning() {
    // C11
    let logged = Logged::start();
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(ok());
    for _ in 0..50 {
        assert_eq!(status(&service, of(Peer::Unix)).await, StatusCode::OK);
    }
    let warnings = logged.lines_with("WARN");
    assert_eq!(warnings.len(), 1, "said once: {warnings:?}");
    assert!(warnings[0].contains("trusted_proxies"), "{}", warnings[0]);
}

#[tokio::test]
async fn a_proxy_that_is_not_trusted_is_told_once() {
    // C5: behind a proxy that the rules do not name, all clients are one.
    let logged = Logged::start();
    let service = gate(&limit("100/1m", "throttle = {}")).layer().layer(ok());
    for _ in 0..20 {
        let mut request = ip("10.0.0.1");
        request.headers_mut().insert("x-forwarded-for", "203.0.113.1".parse().unwrap());
        assert_eq!(status(&service, request).await, StatusCode::OK);
    }
    assert_eq!(logged.lines_with("trusted_proxies").len(), 1);
}

#[tokio::test]
async fn a_flood_of_refusals_is_no_flood_of_lines() {
    let logged = Logged::start();
    let service: GateService<_> = gate(&limit("1/1h", "throttle = {}")).layer().layer(ok());
    for _ in 0..500 {
        status(&service, ip("203.0.113.77")).await;
    }
    let refused = logged.lines_with("refused");
    assert!((10..=100).contains(&refused.len()), "ten a second, not {}", refused.len());
    assert!(
        refused[0].contains("rule=\"limit\"") && refused[0].contains("status=429"),
        "{}",
        refused[0]
    );
    assert!(logged.lines_with("203.0.113.77").is_empty(), "no key in clear");
}

#[tokio::test]
async fn a_registered_function_finds_the_peer() {
    let rules = format!("app = \"test\"\n{}", limit("1/1m", "throttle = {}"));
    let find =
        |parts: &http::request::Parts| parts.extensions.get::<IpAddr>().copied().map(Peer::Ip);
    let gate = Gate::builder().rules(rules.parse().unwrap()).peer(find).build().unwrap();
    let service = gate.layer().layer(ok());
    let from = |last: u8| {
        let mut request = Request::new(());
        request.extensions_mut().insert(IpAddr::from([203, 0, 113, last]));
        request
    };
    assert_eq!(status(&service, from(1)).await, StatusCode::OK);
    assert_eq!(status(&service, from(1)).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(&service, from(2)).await, StatusCode::OK);
}

#[tokio::test]
async fn targets_without_a_path_are_counted_like_others() {
    let service = gate(&limit("2/1m", "throttle = {}")).layer().layer(ok());
    for (method, target, expected) in
        [("OPTIONS", "*", 200), ("CONNECT", "shop.example:443", 200), ("OPTIONS", "*", 429)]
    {
        let mut request = ip("203.0.113.1");
        *request.method_mut() = method.parse().unwrap();
        *request.uri_mut() = target.parse().unwrap();
        assert_eq!(status(&service, request).await.as_u16(), expected, "{method} {target}");
    }
}

#[test]
fn a_handler_can_ask_who_the_client_is() {
    let rules = "[client]\nsource = \"x-forwarded-for\"\ntrusted_proxies = [\"203.0.113.1\"]\n";
    let mut request = get("/");
    request.headers_mut().insert("x-forwarded-for", "198.51.100.7".parse().unwrap());
    let client = gate(rules).client(&request.into_parts().0);
    assert_eq!(client, Some([198, 51, 100, 7].into()));
}
