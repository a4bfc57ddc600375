//! Verdicts that begin, go on and end.

use std::{sync::Arc, time::Duration};

use crate::Time;

/// A change of one verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The rule.
    pub rule: Arc<str>,
    /// The rule's action: `throttle`, `block`, `tag` or `handler`.
    pub action: &'static str,
    /// The key as it is printed.
    pub key: Arc<str>,
    /// What happened.
    pub change: Change,
    /// When the verdict began.
    pub since: Time,
    /// When it ends, as far as is known; for one that ended, when it did.
    pub until: Time,
    /// The rule observes: nobody was refused.
    pub observed: bool,
    /// Set by an operator.
    pub manual: bool,
    /// Which block in a row this is, from 1, where the rule lets them grow.
    pub repeat: u32,
}

impl Event {
    /// From its beginning to its end.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.until.since(self.since)
    }
}

/// What happened to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It began.
    Began,
    /// It goes on: its end moved out. At most every ten seconds.
    GoesOn,
    /// Its time is up, or its key has cooled.
    Ended,
    /// An operator ended it.
    Lifted,
    /// The rule came to mean something else, or went.
    Voided,
}
