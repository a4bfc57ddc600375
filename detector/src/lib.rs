//! What is hot: windows, tables, verdicts, and the [`Engine`] that decides a request.
//!
//! Pure: no I/O, no clock, no task. Time is an argument.
//!
//! ```
//! use hotgate_detector::{Cause, Config, Engine, Outcome, Time};
//! use hotgate_rules::{Facts, RequestPath, RuleSet};
//! use http::{HeaderMap, Method, StatusCode};
//!
//! let rules: RuleSet = r#"
//!     app = "shop"
//!     [[rule]]
//!     name = "api"
//!     key = ["client"]
//!     over = "2/1m"
//!     throttle = {}
//! "#
//! .parse()
//! .expect("a valid rule file");
//! let config = Config { table_seed: [1, 2, 3, 4], privacy_secret: [0; 16], origin_unix_nanos: 0 };
//! let engine = Engine::new(rules, config);
//!
//! let headers = HeaderMap::new();
//! let facts = Facts {
//!     method: Some(&Method::GET),
//!     path: RequestPath::new("/api"),
//!     query: None,
//!     host: None,
//!     headers: &headers,
//!     route: None,
//!     client: Some("203.0.113.9".parse().expect("an address")),
//!     extracted: &(),
//! };
//! for second in 0..2 {
//!     let now = Time::from_nanos(second * 1_000_000_000);
//!     let decision = engine.decide(&facts, now);
//!     assert!(decision.refusal.is_none());
//!     engine.settle(decision.charges, Outcome::Status(StatusCode::OK), now);
//! }
//! let now = Time::from_nanos(20_000_000_000);
//! let refusal = engine.decide(&facts, now).refusal.expect("two stand in the minute");
//! assert_eq!((refusal.cause, refusal.wait.as_secs()), (Cause::Quota, 40));
//! ```

mod config;
mod counters;
mod counting;
mod decision;
mod door;
mod engine;
mod event;
mod id;
mod operator;
mod probe;
mod table;
mod time;
mod verdict;
mod window;

pub use config::Config;
pub use counters::RuleCounts;
pub use decision::{Cause, Charges, Decision, Finding, Outcome, QuotaLeft, Refusal};
pub use door::Door;
pub use engine::{CheckError, Engine};
pub use event::{Change, Event};
pub use id::{DecisionId, DecisionIdError};
pub use operator::{FoundRefusal, KeyState, VerdictError};
pub use time::Time;
pub use verdict::StandingVerdict;
