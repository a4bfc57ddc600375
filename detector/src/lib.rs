//! What is hot: windows, tables, verdicts, and the [`Engine`] that decides a request.
//!
//! Pure: no I/O, no clock, no task. Time is an argument.

mod decision;
mod engine;
mod event;
mod time;

pub use decision::{Cause, Charges, Decision, DecisionId, Finding, Outcome, Refusal};
pub use engine::{Config, Engine, RuleCounts, VerdictError};
pub use event::{Change, Event};
pub use time::Time;
