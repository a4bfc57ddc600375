//! Counters and gauges through the `metrics` facade, published by the tick: a label whose value is
//! known only at run time costs an allocation, which no request shall pay.
//!
//! Labels are rule, action and outcome, never a key. Gates of one process whose rules have the same
//! names add to the same counters.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use hotgate_detector::RuleCounts;
use hotgate_rules::Rule;
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
}

impl Published {
    pub(crate) fn new(rules: usize) -> Self {
        Published {
            rules: vec![None; rules],
            told_unkeyed: vec![false; rules],
            no_peer: 0,
            unusable_hops: 0,
        }
    }

    pub(crate) fn publish(&mut self, shared: &Shared) {
        let no_peer = shared.notices.no_peer.load(Relaxed);
        let unusable_hops = shared.notices.unusable_hops.load(Relaxed);
        raise(&counter!("hotgate_no_peer_total"), &mut self.no_peer, no_peer);
        raise(&counter!("hotgate_unusable_hops_total"), &mut self.unusable_hops, unusable_hops);

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
    let requests = |outcome: &'static str, count: fn(RuleCounts) -> u64| {
        let counter = counter!("hotgate_requests_total", "rule" => Arc::clone(&rule.name), "action" => action, "outcome" => outcome);
        counter.increment(count(now).saturating_sub(count(before)));
    };
    requests("admitted", |counts| {
        counts.matched.saturating_sub(counts.refused + counts.would_refuse)
    });
    requests("refused", |counts| counts.refused);
    requests("would_refuse", |counts| counts.would_refuse);
    requests("unkeyed", |counts| counts.unkeyed);

    let losses = |name: &'static str, count: fn(RuleCounts) -> u64| {
        let counter = counter!(name, "rule" => Arc::clone(&rule.name), "action" => action);
        counter.increment(count(now).saturating_sub(count(before)));
    };
    losses("hotgate_evicted_live_total", |counts| counts.evicted_live);
    losses("hotgate_untracked_total", |counts| counts.untracked);
    losses("hotgate_unstored_verdicts_total", |counts| counts.unstored_verdicts);

    #[expect(clippy::cast_precision_loss, reason = "a table holds far fewer than 2^52 verdicts")]
    let standing = now.standing_verdicts as f64;
    gauge!("hotgate_verdicts", "rule" => Arc::clone(&rule.name), "action" => action).set(standing);
}

fn raise(counter: &Counter, published: &mut u64, now: u64) {
    counter.increment(now.saturating_sub(*published));
    *published = now;
}
