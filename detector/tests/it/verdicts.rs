//! Verdicts: when they begin and end, and what an operator can do.

use std::time::Duration;

use hotgate_detector::{Cause, Change};
use hotgate_rules::Disclose;
use http::StatusCode;

use crate::harness::{engine, get, ms, rule, secs, throttle};

const TEN_A_MINUTE: &str = r#"
    [[rule]]
    name = "all"
    key = ["client"]
    over = "10/1m"
    throttle = {}
"#;

const NOT_FOUND: &str = r#"
    [[rule]]
    name = "probing"
    key = ["client"]
    count = { status = [404] }
    over = "10/60s"
    block = { for = "10m" }
"#;

// C34
#[test]
fn a_block_outlasts_its_window_ends_on_time_and_starts_from_zero() {
    let engine = engine(NOT_FOUND);
    for n in 0..10 {
        assert!(get("/x").answered(&engine, 404, secs(n)));
    }
    assert!(!get("/x").passes(&engine, secs(69)), "blocked a minute later");
    assert!(!get("/x").passes(&engine, ms(608_999)), "blocked until its time is up");
    assert!(get("/x").answered(&engine, 404, secs(609)), "free after ten minutes");
    assert!(get("/x").passes(&engine, secs(610)), "and one more failure blocks nobody");
}

// C36
#[test]
fn a_suspended_machine_finds_everything_expired_at_once() {
    let engine = engine(NOT_FOUND);
    for _ in 0..10 {
        get("/x").answered(&engine, 404, secs(1));
    }
    let woken = secs(36_000);
    assert!(get("/x").passes(&engine, woken));
    let events = engine.tick(woken);
    let changes: Vec<_> = events.iter().map(|event| event.change).collect();
    assert_eq!(changes, [Change::Began, Change::Ended], "one event each, however long it slept");
}

#[test]
fn verdicts_begin_go_on_and_end() {
    let engine = throttle("10/1m");
    let mut said = Vec::new();
    // Ten a second for half a minute, then silence.
    for n in 0..2_400 {
        let now = ms(n * 100);
        if n < 300 {
            get("/").passes(&engine, now);
        }
        said.extend(engine.tick(now).into_iter().map(|event| (n / 10, event)));
    }
    let changes: Vec<_> = said.iter().map(|(second, event)| (*second, event.change)).collect();
    let expected = [
        (1, Change::Began),
        (11, Change::GoesOn),
        (21, Change::GoesOn),
        (31, Change::GoesOn),
        // The last eight attempts came from 29.2 s on: a window more, and another one to cool.
        (149, Change::Ended),
    ];
    assert_eq!(changes, expected);
    assert!(said.iter().all(|(_, event)| &*event.key == "client=203.0.113.9"));
    assert_eq!(said.last().unwrap().1.until, ms(149_200));
}

#[test]
fn blocks_of_a_repeat_offender_grow_to_their_maximum_and_are_forgotten() {
    let engine = rule("1/1s", r#"block = { for = "10s", grow = 3, max = "60s", forget = "5m" }"#);
    let mut now = 1_000;
    for expected in [10, 30, 60, 60] {
        assert!(get("/").passes(&engine, ms(now)), "free again");
        let refusal = get("/").decide(&engine, ms(now)).refusal.unwrap();
        assert_eq!(refusal.wait, Duration::from_secs(expected));
        assert!(!get("/").passes(&engine, ms(now + expected * 1_000 - 1)));
        now += expected * 1_000;
        engine.tick(ms(now));
    }
    now += 300_000;
    get("/").passes(&engine, ms(now));
    let refusal = get("/").decide(&engine, ms(now)).refusal.unwrap();
    assert_eq!(refusal.wait, Duration::from_secs(10), "five minutes of peace and it starts anew");
}

#[test]
fn an_operator_blocks_and_lifts_a_key_by_its_printed_form() {
    let engine = throttle("10/1m");
    let key = "client=203.0.113.9";
    engine.block("all", key, Duration::from_secs(60), secs(1)).unwrap();
    let refusal = get("/").decide(&engine, secs(2)).refusal.unwrap();
    assert_eq!((refusal.cause, refusal.status), (Cause::Blocked, StatusCode::FORBIDDEN));
    assert_eq!(refusal.disclose, Disclose::None, "it is a block, whatever the rule's own action");
    assert!(engine.lift("all", key, secs(3)).unwrap());
    assert_eq!(
        (0..20).filter(|_| get("/").passes(&engine, secs(3))).count(),
        10,
        "N pass after a lift"
    );
    assert!(engine.lift("all", key, secs(4)).unwrap(), "a throttle's verdict is lifted alike");
    assert_eq!((0..20).filter(|_| get("/").passes(&engine, secs(4))).count(), 10);
    let changes: Vec<_> =
        engine.tick(secs(5)).iter().map(|event| (event.change, event.manual)).collect();
    use Change::{Began, Lifted};
    assert_eq!(
        changes,
        [(Began, true), (Lifted, true), (Began, false), (Lifted, false), (Began, false)]
    );

    let said = |error: hotgate_detector::VerdictError| {
        std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string)
    };
    assert_eq!(said(engine.lift("al", key, secs(5)).unwrap_err()), "no rule is named \"al\"");
    let wrong = engine.lift("all", "path=/x", secs(5)).unwrap_err();
    assert_eq!(said(wrong), "expected a key of the parts client, each written as part=value");
}

#[test]
fn a_hidden_key_is_lifted_by_the_hash_it_is_printed_as() {
    let engine = engine(
        r#"
        [[rule]]
        name = "keys"
        key = ["header:x-api-key"]
        missing_key = "skip"
        over = "1/1h"
        block = { for = "1h" }
        "#,
    );
    let ask = || get("/").with("x-api-key", "S3cret");
    ask().passes(&engine, secs(1));
    assert!(!ask().passes(&engine, secs(1)));
    let key = engine.tick(secs(1))[0].key.to_string();
    assert!(key.starts_with("header:x-api-key=#") && !key.contains("S3cret"), "{key}");
    assert!(engine.lift("keys", &key, secs(2)).unwrap());
    assert!(ask().passes(&engine, secs(2)));
}

#[test]
fn a_full_verdict_table_still_refuses_by_the_window() {
    let engine = engine(
        r#"
        [memory]
        keys = 1000
        verdicts = 1
        [[rule]]
        name = "all"
        key = ["client"]
        over = "2/1m"
        block = { for = "1h" }
        "#,
    );
    let passed = |client, at| (0..4).filter(|_| get("/").from(client).passes(&engine, at)).count();
    assert_eq!(passed("192.0.2.1", secs(1)), 2);
    assert_eq!(passed("192.0.2.2", secs(1)), 2, "refused all the same");
    assert_eq!(passed("192.0.2.2", secs(30)), 0);
    assert!(engine.counts()[0].unstored_verdicts >= 1);
    assert_eq!(engine.counts()[0].standing_verdicts, 1);
    assert_eq!(passed("192.0.2.1", secs(200)), 0, "the one that is stored lasts its hour");
    assert_eq!(passed("192.0.2.2", secs(200)), 2, "the other its window");
}

#[test]
fn the_wait_of_a_block_that_extends_counts_the_refused_attempt() {
    let engine = rule("1/1s", r#"block = { for = "10s", extend = true }"#);
    assert!(get("/").passes(&engine, secs(1)));
    assert!(!get("/").passes(&engine, secs(1)));
    let refusal = get("/").decide(&engine, secs(6)).refusal.unwrap();
    assert_eq!(refusal.wait, Duration::from_secs(10), "the attempt moved the end out");
    assert!(get("/").passes(&engine, secs(16)), "who waits that long passes");
}

#[test]
fn the_wait_where_a_block_is_not_stored_counts_the_refused_attempt() {
    let engine = engine(
        r#"
        [memory]
        keys = 1000
        verdicts = 1
        [[rule]]
        name = "all"
        key = ["client"]
        over = "1/10s"
        block = { for = "1h" }
        "#,
    );
    for _ in 0..2 {
        get("/").from("192.0.2.1").passes(&engine, secs(1));
    }
    assert!(get("/").passes(&engine, secs(1)));
    let refusal = get("/").decide(&engine, secs(6)).refusal.unwrap();
    assert_eq!(refusal.wait, Duration::from_secs(10));
    assert!(get("/").passes(&engine, secs(16)), "who waits that long passes");
}

#[test]
fn a_block_by_hand_that_finds_no_room_frees_nobody() {
    let engine = engine(
        r#"
        [memory]
        keys = 1000
        verdicts = 1
        [[rule]]
        name = "all"
        key = ["client"]
        over = "2/1m"
        throttle = {}
        "#,
    );
    let (one, two) = ("client=192.0.2.1", "client=192.0.2.2");
    engine.block("all", one, Duration::from_secs(60), secs(1)).unwrap();
    let passed = || (0..4).filter(|_| get("/").from("192.0.2.2").passes(&engine, secs(1))).count();
    assert_eq!(passed(), 2);
    engine.block("all", two, Duration::from_secs(60), secs(1)).unwrap_err();
    assert_eq!(passed(), 0, "its window still stands");
    engine.block("all", one, Duration::from_secs(600), secs(2)).unwrap();
    assert!(!get("/").from("192.0.2.1").passes(&engine, secs(601)), "in place of what stood");
}

#[test]
fn a_block_by_hand_under_an_observing_rule_says_that_nobody_is_refused() {
    for (file, rule, observed) in
        [("enforce", "enforce", false), ("enforce", "observe", true), ("observe", "enforce", true)]
    {
        let engine = engine(&format!("mode = \"{file}\"\n{TEN_A_MINUTE}\nmode = \"{rule}\""));
        let minute = Duration::from_secs(60);
        engine.block("all", "client=203.0.113.9", minute, secs(1)).unwrap();
        assert_eq!(get("/").passes(&engine, secs(1)), observed);
        assert_eq!(engine.tick(secs(1))[0].observed, observed, "{rule} in {file}");
    }
}

#[test]
fn a_past_block_that_finds_no_room_is_counted_and_makes_the_next_no_longer() {
    let engine = engine(
        r#"
        [memory]
        keys = 1000
        verdicts = 1
        [[rule]]
        name = "all"
        key = ["client"]
        over = "1/1s"
        block = { for = "10s", grow = 2 }
        "#,
    );
    let trip = |client, at| {
        get("/").from(client).passes(&engine, secs(at));
        get("/").from(client).decide(&engine, secs(at)).refusal.unwrap().wait.as_secs()
    };
    for (client, at, expected) in
        [("192.0.2.1", 1, 10), ("192.0.2.2", 20, 10), ("192.0.2.2", 40, 10)]
    {
        assert_eq!(trip(client, at), expected, "{client} at {at} s");
        engine.tick(secs(at + 10));
    }
    assert_eq!(engine.counts()[0].forgotten_blocks, 2);
    assert_eq!(trip("192.0.2.1", 60), 20, "the one that had room grows");
}

#[test]
fn an_operators_block_ends_when_the_operator_said() {
    let engine = rule("1/1s", r#"block = { for = "1h", extend = true }"#);
    engine.block("all", "client=203.0.113.9", Duration::from_secs(60), secs(1)).unwrap();
    for second in 2..61 {
        assert!(!get("/").passes(&engine, secs(second)));
    }
    assert!(get("/").passes(&engine, secs(61)), "attempts did not push its end out");
}
