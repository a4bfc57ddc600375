//! Engines that follow one another: what lives on, what ends, and what is said of it.

mod conversion;
mod model;
mod parallel;
mod stragglers;
mod stream;

use std::time::Duration;

use hotgate_detector::{Cause, Change, Engine, Outcome};
use http::StatusCode;

use crate::harness::{engine, get, post, rule_set, secs};

const KEY: &str = "client=203.0.113.9";

fn rule(name: &str, over: &str, action: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nkey = [\"client\"]\nover = \"{over}\"\n{action}\n")
}

/// What is said of each verdict.
fn said(engine: &Engine, second: u64) -> Vec<(Change, bool)> {
    engine.tick(secs(second)).iter().map(|event| (event.change, event.manual)).collect()
}

// C56, C60
#[test]
fn a_lowered_limit_and_an_allow_act_at_once_and_other_rules_go_on() {
    let block = "match = \"/b\"\nblock = { for = \"1h\" }";
    let rules = |over: &str, lists: &str| {
        format!("{lists}\n{}{}", rule("a", over, "throttle = {}"), rule("b", "1/1m", block))
    };
    let first = engine(&rules("100/1m", ""));
    assert!((0..50).all(|_| get("/").passes(&first, secs(1))), "fifty of a hundred");
    for _ in 0..2 {
        get("/b").from("203.0.113.1").passes(&first, secs(1));
    }
    let lowered = first.succeed(rule_set(&rules("10/1m", "")), secs(2));
    assert!(!get("/").passes(&lowered, secs(2)), "fifty are more than ten");
    assert!(
        !get("/b").from("203.0.113.1").passes(&lowered, secs(2)),
        "the other rule's block stands"
    );
    let allow = "[[allow]]\nclients = [\"203.0.113.0/24\"]";
    let allowed = lowered.succeed(rule_set(&rules("10/1m", allow)), secs(3));
    assert!(get("/").passes(&allowed, secs(3)), "allowed after the ban");
    assert!(get("/b").from("203.0.113.1").passes(&allowed, secs(3)), "whatever stands");
    let closed = allowed.succeed(rule_set(&rules("10/1m", "")), secs(4));
    assert!(!get("/b").from("203.0.113.1").passes(&closed, secs(4)), "what stood stands again");
}

#[test]
fn an_operators_block_goes_on_under_its_rules_name_and_nothing_is_said_of_it() {
    let first = engine(&rule("a", "5/1m", "throttle = {}"));
    first.block("a", KEY, Duration::from_secs(600), secs(1)).unwrap();
    assert_eq!(said(&first, 1), [(Change::Began, true)]);
    let mut last = first;
    for (action, over) in [
        ("block = { for = \"1m\" }", "5/1m"),
        ("match = \"/\"\nthrottle = {}", "5/1m"),
        ("throttle = {}", "9/2m"),
        ("throttle = {}", "900/2m"),
    ] {
        last = last.succeed(rule_set(&rule("a", over, action)), secs(2));
        let refusal = get("/").decide(&last, secs(3)).refusal.expect("it still stands");
        assert_eq!(refusal.cause, Cause::Blocked, "{action}");
        assert_eq!(said(&last, 3), [], "{action}");
        let verdict = last.verdict("a", KEY, secs(3)).unwrap().unwrap();
        assert_eq!((verdict.since, verdict.until), (secs(1), secs(601)), "since it was set");
    }
    assert!(last.lift("a", KEY, secs(4)).unwrap(), "and is lifted as ever");
    assert_eq!(said(&last, 4), [(Change::Lifted, true)]);
}

#[test]
fn an_operators_block_ends_with_its_rules_name_or_key_and_that_is_said() {
    let header = "[[rule]]\nname = \"a\"\nkey = [\"method\"]\nover = \"5/1m\"\nthrottle = {}";
    let always = "[[rule]]\nname = \"a\"\nkey = [\"client\"]\nalways = true\nthrottle = {}";
    for (what, rules) in [("gone", ""), ("by another key", header), ("always", always)] {
        let first = engine(&rule("a", "1/1m", "throttle = {}"));
        first.block("a", KEY, Duration::from_secs(600), secs(1)).unwrap();
        for _ in 0..2 {
            get("/").from("203.0.113.1").passes(&first, secs(1));
        }
        let next = first.succeed(rule_set(rules), secs(2));
        let mut said = said(&next, 2);
        said.sort_by_key(|(change, manual)| (*change != Change::Began, *manual));
        use Change::{Began, Voided};
        assert_eq!(
            said,
            [(Began, false), (Began, true), (Voided, false), (Voided, true)],
            "the rule is {what}"
        );
        let back = next.succeed(rule_set(&rule("a", "1/1m", "throttle = {}")), secs(3));
        assert!(get("/").passes(&back, secs(3)), "who comes back is another rule");
    }
}

#[test]
fn an_operators_block_finds_its_key_in_a_wider_network() {
    let first = engine(&rule("a", "5/1m", "throttle = {}"));
    for (client, lasts) in [("203.0.113.9", 60), ("203.0.113.10", 600)] {
        let key = format!("client={client}");
        first.block("a", &key, Duration::from_secs(lasts), secs(1)).unwrap();
    }
    let wide = rule("a", "5/1m", "throttle = {}").replace("client", "client/24");
    let wider = first.succeed(rule_set(&wide), secs(2));
    let verdicts = wider.verdicts(secs(2));
    assert_eq!(verdicts.len(), 1, "both are one key now");
    assert_eq!(&*verdicts[0].key, "client=203.0.113.0/24");
    assert!(!get("/").from("203.0.113.77").passes(&wider, secs(3)));
    let changes: Vec<_> = said(&wider, 3).into_iter().map(|(change, _)| change).collect();
    assert_eq!(changes, [Change::Began, Change::Began, Change::Voided], "one gave way");
}

#[test]
fn an_operators_block_of_a_hidden_key_survives_a_change_of_action() {
    let rules = |action: &str| {
        rule("a", "1/1m", action).replace("\"client\"]", "\"bearer\"]\nmissing_key = \"skip\"")
    };
    let first = engine(&rules("throttle = {}"));
    let ask = || get("/").with("authorization", "Bearer S3cret");
    for _ in 0..2 {
        ask().passes(&first, secs(1));
    }
    let key = first.tick(secs(1))[0].key.to_string();
    first.block("a", &key, Duration::from_secs(600), secs(2)).unwrap();
    let next = first.succeed(rule_set(&rules("block = { for = \"1m\" }")), secs(100));
    assert!(!ask().passes(&next, secs(100)), "{key} is the same key");
    assert!(next.lift("a", &key, secs(101)).unwrap());
    assert!(ask().passes(&next, secs(101)));
}

#[test]
fn what_is_pending_at_a_reload_counts_by_the_terms_at_its_end() {
    let rules = |more: &str| {
        rule("login", "1/1m", &format!("count = {{ status = [401] }}\nthrottle = {{}}\n{more}"))
    };
    let exempt = "[[rule.override]]\nkey = [\"203.0.113.9\"]\nexempt = true";
    for (before, after, expected) in [
        ("", "mode = \"observe\"", Some(true)),
        ("mode = \"observe\"", "", Some(false)),
        ("", "mode = \"off\"", None),
        ("", exempt, None),
    ] {
        let first = engine(&rules(before));
        let decision = post("/").decide(&first, secs(1));
        let next = first.succeed(rule_set(&rules(after)), secs(2));
        next.settle(decision.charges, Outcome::Status(StatusCode::UNAUTHORIZED), secs(3));
        let began: Vec<_> = next.tick(secs(3)).iter().map(|event| event.observed).collect();
        assert_eq!(began, Vec::from_iter(expected), "from {before:?} to {after:?}");
        let back = next.succeed(rule_set(&rules("")), secs(4));
        let refusal = post("/").decide(&back, secs(4)).refusal;
        let cause = refusal.map(|refusal| refusal.cause);
        assert_eq!(cause, expected.map(|_| Cause::Quota), "and nothing is still pending");
    }
}

#[test]
fn totals_belong_to_the_name_whatever_the_rule_comes_to_mean() {
    let memory = "[memory]\nkeys = 1000\nverdicts = 1\n";
    let set = |action: &str| format!("{memory}{}", rule("a", "1/1m", action));
    let first = engine(&set("block = { for = \"1h\" }"));
    for client in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        for _ in 0..2 {
            get("/").from(client).passes(&first, secs(1));
        }
    }
    let before = first.counts()[0];
    assert_eq!((before.matched, before.refused, before.unstored_verdicts), (6, 3, 2));
    let always = "[[rule]]\nname = \"a\"\nkey = []\nalways = true\nthrottle = {}";
    let always = first.succeed(rule_set(always), secs(2));
    let other = always.succeed(rule_set(&set("match = \"/x\"\nthrottle = {}")), secs(3));
    for engine in [&always, &other] {
        let counts = engine.counts()[0];
        let totals = (counts.matched, counts.refused, counts.unstored_verdicts);
        assert_eq!(totals, (6, 3, 2), "they never go back");
        assert_eq!(counts.standing_verdicts, 0, "but what stands is void");
    }
}

#[test]
fn a_changed_pace_holds_at_once_for_keys_that_are_hot() {
    let paces = ["", "pace = \"1/10s\", burst = 1", "pace = \"1/1s\", burst = 1", ""];
    let mut engine = engine(&rule("a", "5/1m", "throttle = {}"));
    for _ in 0..9 {
        get("/").passes(&engine, secs(1));
    }
    // Ten in ten seconds from a key that stays hot.
    for (at, (pace, expected)) in paces.iter().zip([0, 1, 10, 0]).enumerate() {
        let text = rule("a", "5/1m", &format!("throttle = {{ {pace} }}"));
        let start = 2 + at as u64 * 10;
        engine = engine.succeed(rule_set(&text), secs(start));
        let seconds = start..start + 10;
        let passed = seconds.filter(|second| get("/").passes(&engine, secs(*second))).count();
        assert!(passed.abs_diff(expected) <= 1, "{passed} passed at {pace:?}");
    }
}
