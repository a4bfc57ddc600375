//! What is hot: windows, tables, verdicts, and the [`Engine`] that decides a request.
//!
//! Pure: no I/O, no clock, no task. Time is an argument.

mod config;
mod counters;
mod counting;
mod decision;
mod engine;
mod event;
mod probe;
mod table;
mod time;
mod verdict;
mod window;

pub use config::Config;
pub use counters::RuleCounts;
pub use decision::{Cause, Charges, Decision, DecisionId, Finding, Outcome, Refusal};
pub use engine::{Engine, VerdictError};
pub use event::{Change, Event};
pub use time::Time;
