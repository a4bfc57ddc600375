//! Threads that a reload overtakes in mid-decision: they still hold the engine before.

use hotgate_detector::{Cause, Outcome};
use http::StatusCode;

use super::rule;
use crate::harness::{engine, get, post, rule_set, secs};

const FIRST: &str = "[[rule]]\nname = \"a\"\nkey = [\"client\"]\nover = \"5/1h\"\nthrottle = {}\n\
    [[rule.override]]\nkey = [\"192.0.2.1\"]\nover = \"64/1h\"\n";

#[test]
fn engines_used_side_by_side_count_as_one_whatever_their_limits() {
    for limits in [[30, 5, 60], [5, 6, 7], [64, 64, 64], [3_000, 40, 10_000], [2, 400, 20]] {
        let mut engines = vec![engine(FIRST)];
        for limit in limits {
            let last = engines.last().unwrap();
            let over = format!("{limit}/1h");
            let next = last.succeed(rule_set(&rule("a", &over, "throttle = {}")), secs(1));
            engines.push(next);
            let last = engines.last().unwrap();
            last.settle_memory();
        }
        let own: Vec<u32> = std::iter::once(5).chain(limits).collect();
        let mut passed = 0;
        for round in 0..100 {
            for (engine, limit) in engines.iter().zip(&own) {
                let passes = get("/").passes(engine, secs(10));
                assert!(passes || passed >= *limit, "{limit} refuses early in round {round}");
                passed += u32::from(passes);
            }
        }
        let state = &engines.last().unwrap().key_states("client=203.0.113.9", secs(11))[0];
        assert!(state.count > 0, "the last one knows what the others counted");
    }
}

#[test]
fn what_an_overtaken_thread_settles_is_pending_no_more() {
    let login =
        |over: &str| rule("a", over, "count = { status = [401], pending = 1 }\nthrottle = {}");
    let first = engine(&login("2/1h"));
    let decision = post("/").decide(&first, secs(1));
    let next = first.succeed(rule_set(&login("40/1h")), secs(2));
    next.settle_memory();
    let waits = post("/").decide(&next, secs(2)).refusal.map(|refusal| refusal.cause);
    assert_eq!(waits, Some(Cause::Pending));
    first.settle(decision.charges, Outcome::Status(StatusCode::UNAUTHORIZED), secs(3));
    let decision = post("/").decide(&next, secs(3));
    assert!(decision.refusal.is_none(), "the key is not locked out");
    next.settle(decision.charges, Outcome::Status(StatusCode::OK), secs(3));
    let state = &next.key_states("client=203.0.113.9", secs(3))[0];
    assert_eq!(state.count, 1, "and its failure was counted");
}

#[test]
fn an_overtaken_thread_hides_no_verdict_of_the_rules_in_force() {
    let first = engine(&rule("a", "5/1h", "throttle = {}"));
    for _ in 0..3 {
        get("/").passes(&first, secs(1));
    }
    let next = first.succeed(rule_set(&rule("a", "3/1h", "block = { for = \"1h\" }")), secs(2));
    assert!(!get("/").passes(&next, secs(2)), "the fourth: its block begins");
    assert!(get("/").passes(&first, secs(2)), "the old rules know of no block");
    assert!(!get("/").passes(&next, secs(3)), "which stands all the same");
}

#[test]
fn the_rules_before_hold_until_their_successors_are_in_force() {
    let first = engine(&rule("a", "1/1h", "block = { for = \"1h\" }"));
    for _ in 0..2 {
        get("/").passes(&first, secs(1));
    }
    let next = first.succeed(rule_set(&rule("a", "5/1h", "throttle = {}")), secs(2));
    assert!(!get("/").passes(&first, secs(2)), "blocked by the old rules");
    let changes: Vec<_> = next.tick(secs(2)).iter().map(|event| event.change).collect();
    use hotgate_detector::Change::{Began, Voided};
    assert_eq!(changes, [Began, Voided]);
    assert_eq!(first.tick(secs(8_000)), [], "what ends there now was said to end already");
    assert!(get("/").passes(&next, secs(2)), "free by the new ones");
}
