//! Who may come in.
//!
//! A request must bring the token in a header field, which no page of a foreign site can make a
//! browser send, whatever name its address goes by: so neither a forged request nor a rebound DNS name
//! comes in. Nothing here goes by a cookie, by `Origin` or by `Host`.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use hotgate_rules::Peer;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{Admin, HEADER, problem};
use crate::{log, peer};

/// Fields that a proxy adds. `X-Forwarded-…` are told by their beginning.
const FORWARDING: &[&str] = &[
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-envoy-external-address",
    "true-client-ip",
    "client-ip",
    "cf-connecting-ip",
    "cf-ray",
    "fastly-client-ip",
    "cdn-loop",
];

/// The other end of a request that came in, for the log.
#[derive(Clone)]
pub(super) struct Caller(pub(super) String);

/// Lets a request in, or answers it: from elsewhere as if nothing were here, without the token with 401.
pub(super) async fn guard(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let peer = peer::find(admin.gate.shared().hooks.peer.as_deref(), &parts);
    let caller = match peer {
        Some(Peer::Ip(addr)) => addr.to_canonical().to_string(),
        Some(Peer::Unix) => "unix".to_owned(),
        None => "unknown".to_owned(),
    };
    if let Some(why) = (!admin.from_anywhere).then(|| outside(peer, &parts.headers)).flatten() {
        admin.refused.say(&admin, &caller, why);
        return StatusCode::NOT_FOUND.into_response();
    }
    if !admin.token.is_in(&parts.headers) {
        admin.refused.say(&admin, &caller, "it brings no valid token");
        return unauthorised();
    }
    parts.extensions.insert(Caller(caller));
    let mut response = next.run(Request::from_parts(parts, body)).await;
    mark(response.headers_mut());
    response
}

/// Why a request does not come from this machine.
fn outside(peer: Option<Peer>, headers: &HeaderMap) -> Option<&'static str> {
    match peer {
        None => {
            return Some(
                "its peer is not known; serve with into_make_service_with_connect_info::<SocketAddr>()",
            );
        }
        Some(Peer::Ip(addr)) if is_loopback(addr) => {}
        Some(_) => return Some("its peer is not on loopback; see AdminRouter::from_anywhere"),
    }
    let forwarded = headers.keys().any(|name| {
        FORWARDING.contains(&name.as_str()) || name.as_str().starts_with("x-forwarded-")
    });
    forwarded.then_some("a proxy forwarded it; see AdminRouter::from_anywhere")
}

fn is_loopback(addr: IpAddr) -> bool {
    addr.to_canonical().is_loopback()
}

fn unauthorised() -> Response {
    let detail = "expected the field Authorization: Bearer with the admin token";
    let mut response = problem::answer(StatusCode::UNAUTHORIZED, detail);
    mark(response.headers_mut());
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// No answer is kept by anybody, nor taken for another thing than it says it is.
fn mark(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HEADER, HeaderValue::from_static("1"));
}

/// Says who was refused, once a second at most.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// The second after the last that was said.
    next: AtomicU64,
    unsaid: AtomicU64,
}

impl Refused {
    fn say(&self, admin: &Admin, caller: &str, why: &str) {
        let second = admin.gate.shared().clock.now().as_nanos() / 1_000_000_000;
        let is_due = |next| (next <= second).then_some(second + 1);
        if self.next.fetch_update(Relaxed, Relaxed, is_due).is_err() {
            self.unsaid.fetch_add(1, Relaxed);
            return;
        }
        let more = self.unsaid.swap(0, Relaxed);
        log::warn(format_args!(
            "the admin router refused a request of {caller}: {why} ({more} more before)"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_loopback_peer_without_a_forwarding_field_is_inside() {
        let is_inside = |peer: &str, fields: &[&'static str]| {
            let peer = peer.parse().ok().map(Peer::Ip);
            let field = |name: &&'static str| (name.parse().unwrap(), HeaderValue::from_static(""));
            outside(peer, &fields.iter().map(field).collect()).is_none()
        };
        for peer in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(is_inside(peer, &["user-agent", "accept", "authorization"]), "{peer}");
        }
        for peer in ["203.0.113.9", "10.0.0.1", "0.0.0.0", "::", "::ffff:203.0.113.9", "nobody"] {
            assert!(!is_inside(peer, &[]), "{peer}");
        }
        assert!(outside(Some(Peer::Unix), &HeaderMap::new()).is_some());
        for field in
            FORWARDING.iter().chain(&["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"])
        {
            assert!(!is_inside("127.0.0.1", &[field]), "{field}, even empty");
        }
    }
}
