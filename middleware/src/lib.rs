//! A Tower layer that limits, throttles and blocks requests by the rules of one TOML file.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::convert::Infallible;
//!
//! use hotgate::{Gate, Peer, PeerAddr};
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! let rules = r#"
//!     app = "shop"
//!     [[rule]]
//!     name = "api"
//!     match = "/api/{*rest}"
//!     key = ["client"]
//!     over = "2/1m"
//!     throttle = {}
//! "#;
//! let gate = Gate::builder().rules(rules.parse()?).peer(PeerAddr::of).build()?;
//!
//! let service = ServiceBuilder::new()
//!     .layer(gate.layer())
//!     .service_fn(|_: Request<String>| async { Ok::<_, Infallible>(Response::new(Full::from("hello"))) });
//!
//! let mut statuses = Vec::new();
//! for _ in 0..3 {
//!     let mut request = Request::get("/api/orders").body(String::new())?;
//!     request.extensions_mut().insert(PeerAddr(Peer::Ip([203, 0, 113, 9].into())));
//!     statuses.push(service.clone().oneshot(request).await?.status());
//! }
//! assert_eq!(statuses, [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]);
//! # Ok(())
//! # }
//! ```
//!
//! # Axum
//!
//! With the feature `axum` the gate finds the peer by itself, where the server tells it, and knows
//! the matched route and the path that nested routers shorten.
//!
#![cfg_attr(feature = "axum", doc = "```no_run")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::net::SocketAddr;
//!
//! use axum::{Router, routing::get};
//!
//! let gate = hotgate::Gate::from_file("hotgate.toml")?;
//! let app = Router::new()
//!     .route("/api/orders", get(|| async { "none yet" }))
//!     .layer(gate.layer()); // the layer added last is outermost; only CORS belongs outside
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where the layer belongs
//!
//! Outermost, so that what it refuses costs nothing further in; but inside a CORS layer, or a
//! browser reports a refusal as a CORS error. It asks the inner service for readiness only once a
//! request is admitted, so a refusal holds no permit of a concurrency limit inside, and a refused
//! client is answered while the service is saturated. `docs/placement.md` has a place for all that
//! usually stands beside a gate.
//!
//! A request is counted once, however many times layers of the same gate stand in its way.
//!
//! # What only the service knows
//!
//! Rules can count by `user` and by `x:NAME` of the service's own making, and hand hot keys' requests over to
//! a handler: the service registers functions under these names. A rule that names one that is not
//! registered is an error when the gate is built. Where authentication is a layer, the gate gets a second
//! door inside it: once [`Gate::inner_layer`] was called, rules by `user` and `x:` are asked there, and all
//! others at the outermost layer still, so that a refusal costs no authentication.
//!
#![cfg_attr(feature = "axum", doc = "```")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use axum::{Router, body::Body, extract::Request, middleware, routing::get};
//! use tower::ServiceExt;
//!
//! #[derive(Clone)]
//! struct Claims {
//!     sub: String,
//! }
//!
//! let rules = r#"
//!     app = "shop"
//!     [[rule]]
//!     name = "api-per-user"
//!     match = "/api/{*rest}"
//!     key = ["user"]
//!     over = "2/1m"
//!     throttle = {}
//!
//!     [[rule]]
//!     name = "scrapers"
//!     key = ["x:tenant"]
//!     over = "1000/1m"
//!     handler = "maze"
//! "#;
//! let gate = hotgate::Gate::builder()
//!     .rules(rules.parse()?)
//!     .user(|parts| parts.extensions.get::<Claims>().map(|claims| claims.sub.as_str().into()))
//!     .extractor("tenant", |parts| parts.uri.host()?.split('.').next().map(Into::into))
//!     .handler("maze", |_parts, _finding| Some(http::Response::new("turn left".into())))
//!     .build()?;
//!
//! // In short: a real one checks what it is told.
//! let authenticate = async |mut request: Request, next: middleware::Next| {
//!     if let Some(name) = request.headers().get("x-user").and_then(|name| name.to_str().ok()) {
//!         let claims = Claims { sub: name.to_owned() };
//!         request.extensions_mut().insert(claims);
//!     }
//!     next.run(request).await
//! };
//! let app = Router::new()
//!     .route("/api/orders", get(|| async { "none yet" }))
//!     .layer(gate.inner_layer())
//!     .layer(middleware::from_fn(authenticate))
//!     .layer(gate.layer()); // the layer added last is outermost
//!
//! let of = |user: &str| Request::get("/api/orders").header("x-user", user).body(Body::empty());
//! for expected in [200, 200, 429] {
//!     assert_eq!(app.clone().oneshot(of("alice")?).await?.status(), expected);
//! }
//! assert_eq!(app.oneshot(of("bob")?).await?.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! What no layer can see, such as a name in the body of a login, the handler gives to [`Gate::check`].
//!
//! # Operators
//!
//! What a running gate knows can be asked ([`Gate::snapshot`], [`Gate::hot`], [`Gate::why`]), and it takes
//! commands that are in force at once: [`Gate::set_mode`], [`Gate::deny`], [`Gate::allow`], [`Gate::block`],
//! [`Gate::lift`]. With the feature `admin`, `Gate::admin_router` serves them over HTTP, for `hotgate --url`.
//!
//! # What it tells
//!
//! Refusals are RFC 9457 problem documents, or what the rule's `respond` says. With `fields = true` a rule
//! tells what is left of its quota on admitted answers too, in lines of its own: `RateLimit` and
//! `RateLimit-Policy` are lists, and what the service itself says there stays. (A cache that is shared would
//! tell one client's quota to another; such answers should not be cacheable.) `tag` marks a hot key's
//! requests with the rule's name in a header field, which is taken from every request that comes in with
//! it. A [`Decision`] stands in the response's extensions of a
//! refusal, and in the request's extensions where a rule has something to say (the key is hot, or an
//! observing rule would have refused). Verdicts, refusals (ten a second), what observing rules would have
//! refused (likewise), changes of the rules and warnings (each once) are `tracing` events of the target
//! `hotgate`; warnings go to stderr where no subscriber is set.
//!
//! Through the `metrics` facade come `hotgate_requests_total` by rule, action and outcome (`admitted`,
//! `refused`, `would_refuse`, `unkeyed`: what the rule alone says, whatever others say of the same
//! request); the gauge `hotgate_verdicts`, and what full tables cost
//! (`hotgate_evicted_live_total`, `hotgate_evicted_limited_total`, `hotgate_untracked_total`,
//! `hotgate_unstored_verdicts_total`, `hotgate_forgotten_blocks_total`, `hotgate_dropped_events_total`) by
//! rule and action; `hotgate_denied_total`, `hotgate_no_peer_total` and `hotgate_unusable_hops_total`; and
//! of the rule file `hotgate_reload_total` by outcome (`loaded`, `unchanged`, `refused`, `unreadable`), the
//! gauges `hotgate_reload_failing` (1 while the file cannot be taken), `hotgate_rules_version` (as a number)
//! and `hotgate_mode` by mode (1 for the one that holds). Keys are never labels. Install the recorder before
//! the gate is built: what is counted before is not told to it.

mod active;
#[cfg(feature = "admin")]
mod admin;
mod admission;
mod body;
mod builder;
mod check;
mod control;
mod counters;
mod error;
mod extracted;
mod facts;
mod fields;
mod future;
mod gate;
mod hooks;
mod layer;
mod log;
#[cfg(test)]
mod logged;
mod mark;
mod needs;
mod operator;
mod peer;
mod refusal;
mod reload;
mod respond;
mod service;
mod worker;

#[cfg(feature = "admin")]
pub use admin::{AdminError, AdminRouter};
pub use body::ResponseBody;
pub use builder::GateBuilder;
pub use check::Refused;
pub use error::BuildError;
pub use future::ResponseFuture;
pub use gate::Gate;
pub use layer::GateLayer;
pub use operator::{
    Blocked, By, CommandError, FailedReload, HotKey, HotKeys, KeyState, KeyStatus, Lifted, List,
    ListEntry, Losses, ModeChange, ModeStatus, Moment, Notice, RefusalStatus, ReloadStatus,
    Requests, RuleStatus, Snapshot, Why,
};
pub use peer::PeerAddr;
pub use service::GateService;

pub use hotgate_detector::VerdictError;
pub use hotgate_detector::{Cause, Decision, DecisionId, Finding, Refusal};
pub use hotgate_rules::{
    Disclose, KeyTextError, Mode, NetworkError, Peer, Problem, Problems, RuleSet,
};

/// The documents' examples, compiled.
#[cfg(all(doctest, feature = "axum"))]
mod documents {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/load-tests.md")]
    struct LoadTests;
    #[doc = include_str!("../../docs/operating.md")]
    struct Operating;
    #[doc = include_str!("../../docs/placement.md")]
    struct Placement;
    #[doc = include_str!("../../docs/rules.md")]
    struct Rules;
}
