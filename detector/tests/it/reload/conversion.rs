//! Limits that change under living counts, across the limit to which windows are exact.

use std::collections::VecDeque;

use hotgate_detector::Engine;
use proptest::prelude::*;

use super::rule;
use crate::harness::{engine, get, ms, rule_set};

const LIMITS: [u64; 10] = [1, 3, 5, 20, 63, 64, 65, 100, 300, 1_000];
const WINDOW_MS: u64 = 1_000;

/// Events that share a stamp.
fn block(limit: u64) -> u64 {
    if limit <= 64 { 1 } else { limit / 50 + 1 }
}

#[derive(Clone, Debug)]
enum Step {
    Ask { times: u64, gap: u64 },
    Reload(usize),
}

fn check(steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut limit, mut now) = (LIMITS[5], 10_000);
    let set = |limit: u64| {
        format!("[memory]\nkeys = 4\n{}", rule("a", &format!("{limit}/1s"), "throttle = {}"))
    };
    let mut engine: Engine = engine(&set(limit));
    let mut admitted: VecDeque<u64> = VecDeque::new();
    // Those of them that are still to be known: a window of N remembers N.
    let mut known: VecDeque<u64> = VecDeque::new();
    // When the key was first seen by another limit, and what that may have lost.
    let (mut changes, mut seen): (VecDeque<(u64, u64)>, u64) = (VecDeque::new(), limit);
    for step in steps {
        match *step {
            Step::Reload(which) => {
                limit = LIMITS[which];
                engine = engine.succeed(rule_set(&set(limit)), ms(now));
                if which % 2 == 0 {
                    engine.settle_memory();
                }
            }
            Step::Ask { times, gap } => {
                for _ in 0..times {
                    now += gap;
                    if seen != limit {
                        changes.push_back((now, block(seen).max(block(limit))));
                        let kept = usize::try_from(limit).unwrap();
                        known.drain(..known.len().saturating_sub(kept));
                        seen = limit;
                    }
                    let is_inside = |at: &u64| at + WINDOW_MS > now;
                    admitted.retain(is_inside);
                    known.retain(is_inside);
                    changes.retain(|(at, _)| is_inside(at));
                    let inside = admitted.len() as u64;
                    if get("/").passes(&engine, ms(now)) {
                        let lost: u64 = changes.iter().map(|(_, lost)| lost).sum();
                        let most = limit + block(limit) - 1 + lost;
                        prop_assert!(
                            (known.len() as u64) < most,
                            "{} stand at {now} ms, of {limit}, after {changes:?}",
                            known.len()
                        );
                        admitted.push_back(now);
                        known.push_back(now);
                    } else {
                        prop_assert!(
                            inside >= limit,
                            "refused early at {now} ms: {inside} of {limit} stand"
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..80u64, prop_oneof![4 => Just(0), 4 => 1..4u64, 1 => 4..60u64])
            .prop_map(|(times, gap)| Step::Ask { times, gap }),
        1 => (80..1_200u64).prop_map(|times| Step::Ask { times, gap: 0 }),
        2 => (0..LIMITS.len()).prop_map(Step::Reload),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(500)))]

    #[test]
    fn a_changed_limit_refuses_nobody_early_and_loses_no_more_than_a_block(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        check(&steps)?;
    }
}

#[test]
fn a_limit_that_grows_past_the_exact_ones_forgets_nothing() {
    for (from, to) in [(64, 100), (64, 65), (20, 1_000), (63, 300)] {
        let set = |limit: u64| rule_set(&rule("a", &format!("{limit}/1h"), "throttle = {}"));
        let first = engine(&rule("a", &format!("{from}/1h"), "throttle = {}"));
        let before = (0..from + 9).filter(|_| get("/").passes(&first, ms(1_000))).count();
        let next = first.succeed(set(to), ms(2_000));
        let after = (0..2 * to).filter(|_| get("/").passes(&next, ms(2_000))).count();
        let most = to + block(to) - 1;
        let all = (before + after) as u64;
        assert!((to..=most).contains(&all), "{all} passed of {to}, {before} of them before");
    }
}
