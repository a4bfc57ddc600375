//! What each rule did, counted without a line that all threads share.

use std::sync::{
    Arc,
    atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// What one rule did since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// Requests that matched and had a key.
    pub matched: u64,
    /// Requests the rule refused, being in force.
    pub refused: u64,
    /// Requests the rule would have refused, were it in force.
    pub would_refuse: u64,
    /// Requests that matched but lacked the key.
    pub unkeyed: u64,
    /// Requests that matched at the outer door and went on towards the rule's own, the inner one.
    /// Counted up to [`RuleCounts::SENT_ON_MAX`]: enough to tell a door that none reaches.
    pub sent_on: u64,
    /// Keys that lost a count in use because the table was full.
    pub evicted_live: u64,
    /// Keys at their limit or under a verdict that lost their count, all places being protected.
    pub evicted_limited: u64,
    /// Events not counted because no place could be had.
    pub untracked: u64,
    /// Refusals whose verdict was not stored because the verdict table was full.
    pub unstored_verdicts: u64,
    /// Blocks that ended and will not make the next one longer, because their table was full.
    pub forgotten_blocks: u64,
    /// Verdict events dropped because no tick took them.
    pub dropped_events: u64,
    /// Verdicts that stand.
    pub standing_verdicts: u64,
}

impl RuleCounts {
    /// Where [`sent_on`](Self::sent_on) stops, give or take what threads count at the same time: from
    /// there on it costs a request no write.
    pub const SENT_ON_MAX: u64 = 1_000;
}

/// Stripes a counter has: a request takes the one its key's hash names, so that threads with
/// different keys rarely meet.
const STRIPES: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    stripes: [Stripe; STRIPES],
    pub(crate) losses: Arc<VerdictLosses>,
}

/// What a rule's verdicts lost for want of room: seldom enough for one line.
#[derive(Debug, Default)]
pub(crate) struct VerdictLosses {
    pub(crate) unstored: AtomicU64,
    pub(crate) forgotten_blocks: AtomicU64,
    pub(crate) dropped_events: AtomicU64,
}

/// The counters of some keys, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Stripe {
    pub(crate) matched: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) would_refuse: AtomicU64,
    pub(crate) unkeyed: AtomicU64,
    pub(crate) sent_on: AtomicU64,
    pub(crate) evicted_live: AtomicU64,
    pub(crate) evicted_limited: AtomicU64,
    pub(crate) untracked: AtomicU64,
}

impl Counters {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits name the stripe")]
    pub(crate) fn stripe(&self, hash: u64) -> &Stripe {
        &self.stripes[hash as usize % STRIPES]
    }

    pub(crate) fn total(&self) -> RuleCounts {
        let sum = |counter: fn(&Stripe) -> &AtomicU64| {
            self.stripes.iter().map(|stripe| counter(stripe).load(Acquire)).sum()
        };
        // Matched and unkeyed first: a request is counted there last.
        RuleCounts {
            matched: sum(|stripe| &stripe.matched),
            unkeyed: sum(|stripe| &stripe.unkeyed),
            refused: sum(|stripe| &stripe.refused),
            would_refuse: sum(|stripe| &stripe.would_refuse),
            sent_on: sum(|stripe| &stripe.sent_on),
            evicted_live: sum(|stripe| &stripe.evicted_live),
            evicted_limited: sum(|stripe| &stripe.evicted_limited),
            untracked: sum(|stripe| &stripe.untracked),
            unstored_verdicts: self.losses.unstored.load(Relaxed),
            forgotten_blocks: self.losses.forgotten_blocks.load(Relaxed),
            dropped_events: self.losses.dropped_events.load(Relaxed),
            ..RuleCounts::default()
        }
    }
}

/// Adds one, as long as there are fewer than `max`.
pub(crate) fn count_up_to(max: u64, counter: &AtomicU64) {
    if counter.load(Relaxed) < max {
        counter.fetch_add(1, Relaxed);
    }
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Release);
}
