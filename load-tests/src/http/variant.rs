//! The same Axum handler behind different layers, and requests to it.

use std::{
    borrow::Cow,
    convert::Infallible,
    fmt,
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::{Router, body::Body, extract::ConnectInfo, http::request::Parts, routing::get};
use clap::ValueEnum;
use hotgate::Gate;
use http::{HeaderValue, Request, StatusCode};
use http_body::Body as _;
use tower::{Service, util::MapRequestLayer};
use tower_governor::{
    GovernorLayer, governor::GovernorConfigBuilder, key_extractor::SmartIpKeyExtractor,
};

/// Clients of whom requests come, in turn.
pub(super) const CLIENTS: u32 = 100_000;

/// What stands before the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// A layer that does nothing.
    Noop,
    /// A gate with one rule, by client.
    OneRule,
    /// A gate with three, by client, user and a header.
    ThreeRules,
    /// The published `tower_governor`, by the client's address.
    TowerGovernor,
    /// No layer; the handler answers 429 itself.
    Own429,
    /// A gate with a throttle whose one budget is spent.
    Throttled,
    /// A gate with a block that every client is under.
    Blocked,
}

/// Where the address of a client comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// The connection.
    Peers,
    /// `X-Forwarded-For`, of a load generator that is a trusted proxy.
    Forwarded,
}

impl Variant {
    /// The status that every request gets, after the first.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Variant::Own429 | Variant::Throttled => StatusCode::TOO_MANY_REQUESTS,
            Variant::Blocked => StatusCode::FORBIDDEN,
            _ => StatusCode::OK,
        }
    }

    /// The handler behind what the variant says.
    pub(super) fn service(self, clients: Clients) -> Router {
        let router = match self {
            Variant::Own429 => {
                let refuse = || async { (StatusCode::TOO_MANY_REQUESTS, "too many requests") };
                Router::new().route("/orders/{id}", get(refuse))
            }
            _ => Router::new().route("/orders/{id}", get(|| async { "an order" })),
        };
        let router = match self {
            Variant::Own429 => router,
            Variant::Noop => router.layer(MapRequestLayer::new(|request: Request<Body>| request)),
            Variant::TowerGovernor => {
                let mut limit = GovernorConfigBuilder::default();
                limit.period(Duration::from_millis(1)).burst_size(1_000);
                match clients {
                    Clients::Peers => {
                        let config = limit.finish().expect("neither is zero");
                        router.layer(GovernorLayer::new(config))
                    }
                    Clients::Forwarded => {
                        let config = limit.key_extractor(SmartIpKeyExtractor).finish();
                        router.layer(GovernorLayer::new(config.expect("neither is zero")))
                    }
                }
            }
            _ => router.layer(gate(&self.rules(clients)).layer()),
        };
        // As `axum::serve` does before the first connection.
        router.with_state(())
    }

    fn rules(self, clients: Clients) -> String {
        let mut rules = "app = \"load\"\n".to_owned();
        if clients == Clients::Forwarded {
            rules +=
                "[client]\nsource = \"x-forwarded-for\"\ntrusted_proxies = [\"127.0.0.0/8\"]\n";
        }
        match self {
            // One budget for all clients together, gone with the first request.
            Variant::Throttled => rules += &rule("all", "", "1/1h", "throttle = {}"),
            Variant::Blocked => rules += &rule("all", "", "1/1h", "block = { for = \"24h\" }"),
            // Nobody comes near these limits.
            _ => rules += &rule("client", "\"client\"", "1000/1s", "throttle = {}"),
        }
        if self == Variant::ThreeRules {
            rules += &rule("user", "\"user\"", "1000/1s", "throttle = {}");
            rules += &rule("key", "\"header:x-api-key\"", "1000/1s", "throttle = {}");
            rules += "missing_key = \"skip\"\n";
        }
        rules
    }
}

fn rule(name: &str, key: &str, over: &str, action: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nkey = [{key}]\nover = \"{over}\"\n{action}\n")
}

fn gate(rules: &str) -> Gate {
    let rules = rules.parse().unwrap_or_else(|problems| panic!("{problems}\n{rules}"));
    let gate = Gate::builder().rules(rules).user(user).build();
    gate.unwrap_or_else(|error| panic!("no gate: {error}"))
}

/// The user, where a service in production would ask its session.
fn user(parts: &Parts) -> Option<Cow<'_, str>> {
    parts.headers.get("x-user")?.to_str().ok().map(Cow::Borrowed)
}

/// A request of a client, of whom there are [`CLIENTS`].
pub(super) fn request(client: u32) -> Request<Body> {
    let address = 0x0a00_0000 + client;
    let peer = SocketAddr::from((std::net::Ipv4Addr::from_bits(address), 40_000));
    let text = |text: String| HeaderValue::try_from(text).expect("letters and digits");
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/orders/7");
    let headers = request.headers_mut();
    headers.insert("host", HeaderValue::from_static("shop.test"));
    headers.insert("x-user", text(format!("user-{client}")));
    headers.insert("x-api-key", text(format!("key-{client}")));
    request.extensions_mut().insert(ConnectInfo(peer));
    request
}

/// Sends a request and takes its whole answer. Nothing waits here, so no runtime is needed.
///
/// # Panics
///
/// When something waits.
pub(super) fn send(service: &mut Router, request: Request<Body>) -> StatusCode {
    let context = &mut Context::from_waker(Waker::noop());
    let called = pin!(service.call(request));
    let Poll::Ready(answered) = called.poll(context) else { panic!("the handler waits") };
    let (head, body) = answered.unwrap_or_else(|never: Infallible| match never {}).into_parts();
    let mut body = pin!(body);
    while let Poll::Ready(Some(frame)) = body.as_mut().poll_frame(context) {
        drop(frame);
    }
    head.status
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Variant::Noop => "layer that does nothing",
            Variant::OneRule => "hotgate, one rule",
            Variant::ThreeRules => "hotgate, three rules",
            Variant::TowerGovernor => "tower_governor",
            Variant::Own429 => "handler that answers 429",
            Variant::Throttled => "hotgate, throttled",
            Variant::Blocked => "hotgate, blocked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_answers_what_it_is_for() {
        for variant in Variant::value_variants() {
            let mut service = variant.service(Clients::Peers);
            send(&mut service, request(0));
            for client in 1..4 {
                assert_eq!(send(&mut service, request(client)), variant.status(), "{variant}");
            }
        }
    }
}
