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
//! client is answered while the service is saturated.
//!
//! A request is counted once, however many times layers of the same gate stand in its way.
//!
//! # What it tells
//!
//! Refusals are RFC 9457 problem documents. A [`Decision`] stands in the response's extensions of a
//! refusal, and in the request's extensions where a rule has something to say (the key is hot, or an
//! observing rule would have refused). Verdicts, refusals (ten a second) and warnings (each once) are
//! `tracing` events of the target `hotgate`; warnings go to stderr where no subscriber is set.
//!
//! Through the `metrics` facade come `hotgate_requests_total` by rule, action and outcome (`admitted`,
//! `refused`, `would_refuse`, `unkeyed`: what the rule alone says, whatever others say of the same
//! request); the gauge `hotgate_verdicts`, and what full tables cost
//! (`hotgate_evicted_live_total`, `hotgate_evicted_limited_total`, `hotgate_untracked_total`,
//! `hotgate_unstored_verdicts_total`, `hotgate_dropped_events_total`) by rule and action; and
//! `hotgate_denied_total`, `hotgate_no_peer_total` and `hotgate_unusable_hops_total`. Keys are never
//! labels.

mod active;
#[cfg(feature = "admin")]
mod admin;
mod body;
mod builder;
mod control;
mod counters;
mod error;
mod facts;
mod fields;
mod future;
mod gate;
mod hooks;
mod layer;
mod log;
mod operator;
mod peer;
mod refusal;
mod service;
mod worker;

#[cfg(feature = "admin")]
pub use admin::{AdminError, AdminRouter};
pub use body::ResponseBody;
pub use builder::GateBuilder;
pub use error::BuildError;
pub use future::ResponseFuture;
pub use gate::Gate;
pub use layer::GateLayer;
pub use operator::{
    Blocked, By, CommandError, HotKey, HotKeys, KeyState, KeyStatus, Lifted, List, ListEntry,
    Losses, ModeChange, ModeStatus, Moment, Notice, RefusalStatus, Requests, RuleStatus, Snapshot,
    Why,
};
pub use peer::PeerAddr;
pub use service::GateService;

pub use hotgate_detector::VerdictError;
pub use hotgate_detector::{Cause, Decision, DecisionId, Finding, Refusal};
pub use hotgate_rules::{
    Disclose, KeyTextError, Mode, NetworkError, Peer, Problem, Problems, RuleSet,
};

/// The README's example, compiled.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../README.md")]
struct Readme;
