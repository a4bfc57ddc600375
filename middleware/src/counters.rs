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
pub(crate) const UNKEYED_TOLD_FROM: u64 = 1_000;

/// What was published, so that the next tick adds the rest.
#[derive(Debug)]
pub(crate) struct Published {
    rules: Vec<PublishedRule>,
    no_peer: u64,
    unusable_hops: u64,
    denied: u64,
}

#[derive(Debug, Default)]
struct PublishedRule {
    /// As they were at the last tick; `None`: never told, so that even zeros are.
    counts: Option<RuleCounts>,
    outcomes: [u64; 4],
    losses: [u64; 6],
    told_unkeyed: bool,
}

impl Published {
    pub(crate) fn new(rules: usize) -> Self {
        let rules = std::iter::repeat_with(PublishedRule::default).take(rules).collect();
        Published { rules, no_peer: 0, unusable_hops: 0, denied: 0 }
    }

    /// One that publishes all there is, for a look beside the ticks, and leaves warnings to them.
    #[cfg(feature = "admin")]
    pub(crate) fn beside(rules: usize) -> Self {
        let mut published = Published::new(rules);
        published.rules.iter_mut().for_each(|rule| rule.told_unkeyed = true);
        published
    }

    pub(crate) fn publish(&mut self, shared: &Shared) {
        let no_peer = shared.notices.no_peer.load(Relaxed);
        let unusable_hops = shared.notices.unusable_hops.load(Relaxed);
        raise(&counter!("hotgate_no_peer_total"), &mut self.no_peer, no_peer);
        raise(&counter!("hotgate_unusable_hops_total"), &mut self.unusable_hops, unusable_hops);
        raise(
            &counter!("hotgate_denied_total"),
            &mut self.denied,
            shared.active.load().engine.denied(),
        );

        let active = shared.active.load();
        let counts = active.engine.counts();
        let rules = active.engine.rules().rules().iter().zip(counts);
        for ((rule, now), published) in rules.zip(&mut self.rules) {
            published.publish(rule, now);
            if now.unkeyed >= UNKEYED_TOLD_FROM && now.matched == 0 && !published.told_unkeyed {
                published.told_unkeyed = true;
                log::keyed_nothing(rule, now.unkeyed, no_peer);
            }
        }
    }
}

impl PublishedRule {
    fn publish(&mut self, rule: &Rule, now: RuleCounts) {
        if self.counts == Some(now) {
            return;
        }
        let (name, action) = (&rule.name, rule.action.name());
        for ((outcome, requests), published) in
            outcomes(rule, now).into_iter().zip(&mut self.outcomes)
        {
            let rule = Arc::clone(name);
            let counter = counter!(
                "hotgate_requests_total", "rule" => rule, "action" => action, "outcome" => outcome
            );
            raise(&counter, published, requests);
        }
        for ((loss, lost), published) in losses(now).into_iter().zip(&mut self.losses) {
            let counter = counter!(loss, "rule" => Arc::clone(name), "action" => action);
            raise(&counter, published, lost);
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "a table holds far fewer than 2^52 verdicts"
        )]
        let standing = now.standing_verdicts as f64;
        gauge!("hotgate_verdicts", "rule" => Arc::clone(name), "action" => action).set(standing);
        self.counts = Some(now);
    }
}

/// What became of a rule's requests so far, as the rule alone would have it.
pub(crate) fn outcomes(rule: &Rule, counts: RuleCounts) -> [(&'static str, u64); 4] {
    let RuleCounts { matched, refused, would_refuse, unkeyed, .. } = counts;
    // Where a request without the key is rejected, it stands among the refused already.
    let (seen, unkeyed) = match rule.missing_key {
        MissingKey::Reject => (matched + unkeyed, 0),
        _ => (matched, unkeyed),
    };
    [
        ("admitted", seen.saturating_sub(refused + would_refuse)),
        ("refused", refused),
        ("would_refuse", would_refuse),
        ("unkeyed", unkeyed),
    ]
}

fn losses(counts: RuleCounts) -> [(&'static str, u64); 6] {
    [
        ("hotgate_evicted_live_total", counts.evicted_live),
        ("hotgate_evicted_limited_total", counts.evicted_limited),
        ("hotgate_untracked_total", counts.untracked),
        ("hotgate_unstored_verdicts_total", counts.unstored_verdicts),
        ("hotgate_forgotten_blocks_total", counts.forgotten_blocks),
        ("hotgate_dropped_events_total", counts.dropped_events),
    ]
}

/// Adds what a total has risen by. One that is a difference of counts read while they rise may seem
/// to fall for a tick: what was published stands until the total has passed it.
fn raise(counter: &Counter, published: &mut u64, now: u64) {
    counter.increment(now.saturating_sub(*published));
    *published = now.max(*published);
}

#[cfg(test)]
mod tests {
    use hotgate_rules::RuleSet;
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    #[test]
    fn a_total_read_while_its_parts_rise_is_published_once() {
        let rules: RuleSet = "app = \"test\"\n[[rule]]\nname = \"api\"\nkey = []\nover = \"2/1m\"\nblock = { for = \"1m\" }\n"
            .parse()
            .unwrap();
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::with_local_recorder(&recorder, || {
            let mut published = PublishedRule::default();
            // Each time but the last, some refusals were read whose requests were not yet.
            for (matched, refused) in [(2, 0), (100, 99), (200, 200), (300, 299), (400, 398)] {
                let mut counts = RuleCounts::default();
                (counts.matched, counts.refused) = (matched, refused);
                published.publish(&rules.rules()[0], counts);
            }
        });
        let admitted =
            snapshotter.snapshot().into_vec().into_iter().find_map(|(key, .., value)| {
                let admitted = key.key().labels().any(|label| label.value() == "admitted");
                admitted.then_some(value)
            });
        assert_eq!(admitted, Some(DebugValue::Counter(2)), "no tick makes requests up");
    }
}
