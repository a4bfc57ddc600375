//! What the engine says of a request.

use std::{sync::Arc, time::Duration};

use hotgate_rules::{Disclose, Key};
use http::StatusCode;
use smallvec::SmallVec;

use crate::{DecisionId, Time, id::Trace};

/// What the engine says of one request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Decision {
    /// Why the request must not pass; `None`: it passes.
    pub refusal: Option<Refusal>,
    /// The rules that have something to say: the key is hot, the action applies, or the rule refused or
    /// would have.
    pub findings: SmallVec<[Finding; 1]>,
    /// What is left of the quotas that rules with `fields = true` tell.
    pub quotas: Vec<QuotaLeft>,
    /// What [`crate::Engine::settle`] takes once the outcome is known. A clone holds none, so that
    /// nothing is settled twice.
    pub charges: Charges,
}

/// Why a request is refused.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The rule that answers: of all that refuse, the one with the longest wait. `None`: a deny list.
    pub rule: Option<Arc<str>>,
    /// Its position in the rule set.
    pub index: Option<usize>,
    /// Why.
    pub cause: Cause,
    /// The rule's action; `deny` for a deny list.
    pub action: &'static str,
    /// The status of an HTTP answer.
    pub status: StatusCode,
    /// How long until the rule would let the key pass.
    pub wait: Duration,
    /// The rule's limit and window, for rules that have one.
    pub quota: Option<(u32, Duration)>,
    /// What the answer may tell.
    pub disclose: Disclose,
    pub(crate) trace: Trace,
}

impl Refusal {
    /// For the client to quote and the operator to find.
    #[must_use]
    pub fn id(&self) -> DecisionId {
        self.trace.id()
    }
}

/// What is left of one rule's quota for one key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuotaLeft {
    /// The rule.
    pub rule: Arc<str>,
    /// N.
    pub limit: u32,
    /// W.
    pub window: Duration,
    /// How many more pass for certain.
    pub remaining: u32,
    /// How long until it is more than that, at most.
    pub reset: Duration,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// `[[deny]]`.
    Denied,
    /// N stand in the window.
    Quota,
    /// A block stands.
    Blocked,
    /// `always = true`.
    Always,
    /// As many requests of the key as `pending` allows are unresolved.
    Pending,
    /// A part of the key is missing and `missing_key = "reject"`.
    MissingKey {
        /// Whether the client should have supplied it: 400; otherwise we should have: 500.
        by_client: bool,
    },
}

/// What one rule says of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Arc<str>,
    /// Its position in the rule set.
    pub index: usize,
    /// Which of the rule's overrides holds for the key, by its place.
    pub terms: Option<usize>,
    /// Whether a verdict of the rule stands for the key.
    pub hot: bool,
    /// When that verdict ends, as far as is known.
    pub until: Option<Time>,
    /// Whether the rule's tag or handler applies to this request: it is in force, and the key is hot or
    /// the rule acts always.
    pub acts: bool,
    /// Why the rule refuses, if it does.
    pub refuses: Option<Cause>,
    /// Whether the rule is in force; one that observes only says what it would have done.
    pub enforced: bool,
}

/// How an admitted request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The response head came.
    Status(StatusCode),
    /// The request was dropped before its response head.
    Cancelled,
    /// The inner service failed.
    Error,
    /// It was answered by Hotgate after all, by a handler or at another door: that is never counted.
    Answered,
}

/// What is still open of an admitted request: the rules that count its response.
#[derive(Debug, Default)]
#[must_use = "settle them, or the key keeps a request pending for ever"]
pub struct Charges(pub(crate) SmallVec<[Charge; 1]>);

impl Charges {
    /// Whether there is nothing to settle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Clone for Charges {
    fn clone(&self) -> Self {
        Charges::default()
    }
}

/// One request that one rule holds pending.
#[derive(Debug)]
pub(crate) struct Charge {
    /// Where the rule stood in the rule set that held it, and which counts are its.
    pub(crate) rule: u16,
    pub(crate) lineage: u64,
    /// Which override held for the key, by its place in that rule set's rule.
    pub(crate) terms: Option<u16>,
    pub(crate) engine: u64,
    pub(crate) generation: u32,
    pub(crate) hash: u64,
    pub(crate) observed: bool,
    pub(crate) key: Key<'static>,
}
