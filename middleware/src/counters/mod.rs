//! Counters and gauges through the `metrics` facade, published by the tick: a label whose value is
//! known only at run time costs an allocation, which no request shall pay.
//!
//! Labels are rule, action and outcome, never a key. Gates of one process whose rules have the same
//! names add to the same counters.

mod described;
mod totals;

use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
};

use hotgate_rules::Mode;
use metrics::{Counter, counter, gauge};

use crate::{gate::Shared, operator::mode_name};
use totals::{LOSSES, Name, OUTCOMES, Row};

pub(crate) use totals::{Idle, Meaning, Totals, UNKEYED_TOLD_FROM, outcomes};

/// What was published, so that the next tick adds the rest.
#[derive(Debug, Default)]
pub(crate) struct Published {
    rules: HashMap<Name, Row>,
    gate: OfGate,
    is_described: bool,
}

/// What is counted of no single rule.
#[derive(Debug, Default)]
struct OfGate {
    no_peer: u64,
    unusable_hops: u64,
    denied: u64,
    reloads: [u64; 4],
}

impl Shared {
    pub(crate) fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Published {
    /// Publishes what has changed since the last call; with a fresh one, all there is.
    pub(crate) fn publish(&mut self, shared: &Shared) {
        if !self.is_described {
            described::describe();
            self.is_described = true;
        }
        self.publish_gate(shared);
        let rows: Vec<(Name, Row)> = {
            let mut totals = shared.totals();
            totals.gather(&shared.active.load());
            self.rules.retain(|name, _| totals.has(name));
            let differs = |(name, row): &(&Name, &Row)| self.rules.get(*name) != Some(*row);
            totals.rows().filter(differs).map(|(name, row)| (name.clone(), *row)).collect()
        };
        for (name, row) in rows {
            publish_rule(&name, &row, self.rules.entry(name.clone()).or_default());
        }
    }

    fn publish_gate(&mut self, shared: &Shared) {
        let active = shared.active.load();
        let rules = active.engine.rules();
        let OfGate { no_peer, unusable_hops, denied, reloads } = &mut self.gate;
        raise(&counter!("hotgate_no_peer_total"), no_peer, shared.notices.no_peer.load(Relaxed));
        let unusable_hops_now = shared.notices.unusable_hops.load(Relaxed);
        raise(&counter!("hotgate_unusable_hops_total"), unusable_hops, unusable_hops_now);
        raise(&counter!("hotgate_denied_total"), denied, active.engine.denied());
        for ((outcome, count), published) in shared.reloads.counts().into_iter().zip(reloads) {
            raise(&counter!("hotgate_reload_total", "outcome" => outcome), published, count);
        }
        gauge!("hotgate_reload_failing").set(flag(shared.reloads.failing.load(Relaxed)));
        gauge!("hotgate_rules_version").set(version(rules.version()));
        for mode in [Mode::Off, Mode::Observe, Mode::Enforce] {
            gauge!("hotgate_mode", "mode" => mode_name(mode)).set(flag(rules.mode() == mode));
        }
    }
}

fn publish_rule((name, action): &Name, row: &Row, published: &mut Row) {
    let rule = || Arc::clone(name);
    for (index, outcome) in OUTCOMES.into_iter().enumerate() {
        let counter = counter!(
            "hotgate_requests_total", "rule" => rule(), "action" => *action, "outcome" => outcome
        );
        raise(&counter, &mut published.outcomes[index], row.outcomes[index]);
    }
    for (index, loss) in LOSSES.into_iter().enumerate() {
        let counter = counter!(loss, "rule" => rule(), "action" => *action);
        raise(&counter, &mut published.losses[index], row.losses[index]);
    }
    #[expect(clippy::cast_precision_loss, reason = "a table holds far fewer than 2^52 verdicts")]
    let standing = row.verdicts as f64;
    gauge!("hotgate_verdicts", "rule" => rule(), "action" => *action).set(standing);
    *published = *row;
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// The version as a number: a label would leave one series behind for each version there ever was.
fn version(text: &str) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "twelve hexadecimal digits are 48 bits")]
    let number = u64::from_str_radix(text, 16).unwrap_or_default() as f64;
    number
}

/// Adds what a total has risen by; zero, too, so that it can be seen before it rises.
fn raise(counter: &Counter, published: &mut u64, now: u64) {
    counter.increment(now.saturating_sub(*published));
    *published = now;
}

#[cfg(test)]
mod tests;
