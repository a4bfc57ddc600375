//! Counters and gauges through the `metrics` facade, published by the tick: a label whose value is
//! known only at run time costs an allocation, which no request shall pay.
//!
//! Labels are rule, action and outcome, never a key. Gates of one process whose rules have the same
//! names add to the same counters.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use hotgate_detector::RuleCounts;
use hotgate_rules::{MissingKey, Rule};
use metrics::{Counter, counter, gauge};

use crate::{gate::Shared, log};

/// From how many requests without a key on a rule that found none is told.
const UNKEYED_TOLD_FROM: u64 = 1_000;

/// What was published, so that the next tick adds the rest.
#[derive(Debug)]
pub(crate) struct Published {
    rules: Vec<Option<RuleCounts>>,
    told_unkeyed: Vec<bool>,
    no_peer: u64,
    unusable_hops: u64,
    denied: u64,
}

impl Published {
    pub(crate) fn new(rules: usize) -> Self {
        Published {
            rules: vec![None; rules],
            told_unkeyed: vec![false; rules],
            no_peer: 0,
            unusable_hops: 0,
            denied: 0,
        }
    }

    pub(crate) fn publish(&mut self, shared: &Shared) {
        let no_peer = shared.notices.no_peer.load(Relaxed);
        let unusable_hops = shared.notices.unusable_hops.load(Relaxed);
        raise(&counter!("hotgate_no_peer_total"), &mut self.no_peer, no_peer);
        raise(&counter!("hotgate_unusable_hops_total"), &mut self.unusable_hops, unusable_hops);
        raise(&counter!("hotgate_denied_total"), &mut self.denied, shared.engine.denied());

        let counts = shared.engine.counts();
        let rules = shared.engine.rules().rules().iter().zip(counts);
        for ((rule, now), (before, told)) in
            rules.zip(self.rules.iter_mut().zip(&mut self.told_unkeyed))
        {
            if *before != Some(now) {
                publish_rule(rule, before.unwrap_or_default(), now);
                *before = Some(now);
            }
            if now.unkeyed >= UNKEYED_TOLD_FROM && now.matched == 0 && !*told {
                *told = true;
                log::keyed_nothing(rule, now.unkeyed, no_peer);
            }
        }
    }
}

fn publish_rule(rule: &Rule, before: RuleCounts, now: RuleCounts) {
    let action = rule.action.name();
    let since = |count: fn(RuleCounts) -> u64| count(now).saturating_sub(count(before));

    let rejects = rule.missing_key == MissingKey::Reject;
    // Where a request without the key is rejected, it stands among the refused already.
    let (seen, unkeyed) = match since(|counts| counts.unkeyed) {
        unkeyed if rejects => (since(|counts| counts.matched) + unkeyed, 0),
        unkeyed => (since(|counts| counts.matched), unkeyed),
    };
    let (refused, would_refuse) =
        (since(|counts| counts.refused), since(|counts| counts.would_refuse));
    let outcomes = [
        ("admitted", seen.saturating_sub(refused + would_refuse)),
        ("refused", refused),
        ("would_refuse", would_refuse),
        ("unkeyed", unkeyed),
    ];
    for (outcome, requests) in outcomes {
        let rule = Arc::clone(&rule.name);
        counter!("hotgate_requests_total", "rule" => rule, "action" => action, "outcome" => outcome)
            .increment(requests);
    }

    let losses = [
        ("hotgate_evicted_live_total", since(|counts| counts.evicted_live)),
        ("hotgate_evicted_limited_total", since(|counts| counts.evicted_limited)),
        ("hotgate_untracked_total", since(|counts| counts.untracked)),
        ("hotgate_unstored_verdicts_total", since(|counts| counts.unstored_verdicts)),
        ("hotgate_dropped_events_total", since(|counts| counts.dropped_events)),
    ];
    for (name, lost) in losses {
        counter!(name, "rule" => Arc::clone(&rule.name), "action" => action).increment(lost);
    }

    #[expect(clippy::cast_precision_loss, reason = "a table holds far fewer than 2^52 verdicts")]
    let standing = now.standing_verdicts as f64;
    gauge!("hotgate_verdicts", "rule" => Arc::clone(&rule.name), "action" => action).set(standing);
}

fn raise(counter: &Counter, published: &mut u64, now: u64) {
    counter.increment(now.saturating_sub(*published));
    *published = now;
}
