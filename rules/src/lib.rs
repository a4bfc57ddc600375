//! The rule file: TOML text in, a validated [`RuleSet`] out; which rules a request matches, which
//! key each of them counts by, and who the client is.
//!
//! Everything here is pure: no I/O, no clock, no task.
//!
//! ```
//! use hotgate_rules::{Facts, RequestPath, RuleSet};
//!
//! let rules: RuleSet = r#"
//!     app = "shop"
//!     [[rule]]
//!     name = "login-stuffing"
//!     match = "POST /login"
//!     key = ["client"]
//!     over = "10/1m"
//!     block = { for = "15m" }
//! "#
//! .parse()
//! .expect("a valid rule file");
//!
//! let headers = http::HeaderMap::new();
//! let facts = Facts {
//!     method: Some(&http::Method::POST),
//!     path: RequestPath::new("/login/"),
//!     query: None,
//!     host: None,
//!     headers: &headers,
//!     route: None,
//!     client: Some("203.0.113.9".parse().expect("an address")),
//!     extracted: &(),
//! };
//! let matched = rules.matching(&facts);
//! let rule = &rules.rules()[matched.rules().next().expect("the login rule")];
//! let key = rule.key(&facts).expect("the client is known");
//! assert_eq!(key.text(&rule.show(&[0; 16])), "client=203.0.113.9");
//! ```

mod client;
mod commands;
mod facts;
mod identity;
mod key;
mod lists;
mod matcher;
mod mode;
mod parse;
mod path;
mod pattern;
mod problem;
mod rule;
mod set;
mod units;
mod uses;

pub use client::{ClientConfig, ClientSource, Peer, Resolved};
pub use commands::{Commands, ListCommand, NetworkError, network};
pub use facts::{Extract, Facts};
pub use identity::RuleIdentity;
pub use key::{ClientPrefix, Key, KeySpec, KeyTextError, MissingPart, Part, PartKind, Show, Value};
pub use lists::{ClientLists, ListEntry, Standing};
pub use matcher::Matched;
pub use mode::{Mode, ModeError};
pub use path::RequestPath;
pub use pattern::Pattern;
pub use problem::{Problem, Problems};
pub use rule::{
    Action, Block, Condition, Count, Disclose, Memory, MissingKey, Override, OverrideKey,
    OverridePart, Pace, Period, Rate, Respond, Rule, StatusClass, Trigger,
};
pub use set::RuleSet;
pub use units::{Spoken, UnitError};
pub use uses::Uses;
