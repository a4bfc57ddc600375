//! What went wrong for users of other limiters, and what holds here.

use std::time::Duration;

use hotgate_detector::{Cause, Change, Outcome};
use hotgate_rules::Disclose;
use http::StatusCode;

use crate::harness::{engine, get, ms, post, secs, throttle};

const TEN_A_MINUTE: &str = r#"
    [[rule]]
    name = "all"
    key = ["client"]
    over = "10/1m"
    throttle = {}
"#;

// C25
#[test]
fn a_burst_on_either_side_of_a_minute_passes_once() {
    let engine = throttle("5/60s");
    for _ in 0..5 {
        assert!(get("/").passes(&engine, ms(43_259_900)));
    }
    for _ in 0..5 {
        assert!(!get("/").passes(&engine, ms(43_260_100)), "the five before still stand");
    }
    assert!(get("/").passes(&engine, ms(43_319_900)), "and have left a minute after they came");
}

// C32
#[test]
fn a_request_counts_for_one_window_from_its_own_time() {
    let engine = throttle("5/60s");
    assert!(get("/").passes(&engine, ms(43_258_700)));
    for _ in 0..4 {
        assert!(get("/").passes(&engine, ms(43_260_100)));
    }
    assert!(!get("/").passes(&engine, ms(43_318_699)), "the first still stands");
    assert!(get("/").passes(&engine, ms(43_318_700)), "for a minute, no longer");
    assert!(!get("/").passes(&engine, ms(43_320_099)), "the four stand on their own time");
}

// C27
#[test]
fn six_a_minute_may_come_at_once() {
    let engine = throttle("6/60s");
    assert_eq!((0..7).filter(|_| get("/").passes(&engine, secs(1))).count(), 6);
}

// C33
#[test]
fn refused_requests_do_not_use_up_a_throttles_window() {
    let engine = throttle("10/600s");
    let passed: Vec<bool> = (0..120).map(|n| get("/").passes(&engine, secs(1 + n * 30))).collect();
    for twenty in passed.chunks(20) {
        assert_eq!(twenty.iter().filter(|passed| **passed).count(), 10, "ten of each twenty");
    }
}

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

// C29
#[test]
fn a_month_of_idleness_leaves_a_limit_what_it_was() {
    let engine = throttle("1000000/1s");
    for start in [1, 30 * 86_400] {
        let passed = (0..1_030_000).filter(|_| get("/").passes(&engine, secs(start))).count();
        assert!((1_000_000..=1_020_000).contains(&passed), "{passed} passed at {start} s");
    }
}

// C31
#[test]
fn rates_that_do_not_divide_keep_their_long_run_mean() {
    for (over, seconds, expected) in [("7/1s", 60, 420), ("1/7s", 700, 100)] {
        let engine = throttle(over);
        let asked = (0..seconds * 100).filter(|n| get("/").passes(&engine, ms(n * 10))).count();
        assert_eq!(asked, expected, "{over} for {seconds} s");
    }
}

// C30
#[test]
fn the_wait_is_what_is_left_of_the_window() {
    let engine = throttle("1/1s");
    assert!(get("/").passes(&engine, secs(10)));
    let refusal = get("/").decide(&engine, ms(10_200)).refusal.expect("refused");
    assert_eq!(refusal.wait, Duration::from_millis(800));
    assert!(get("/").passes(&engine, secs(11)));
}

// C43
#[test]
fn a_request_that_one_rule_refuses_is_not_charged_to_another() {
    let engine = engine(
        r#"
        [[rule]]
        name = "group"
        match = "/group/{*rest}"
        key = ["client"]
        over = "10/1m"
        throttle = {}
        [[rule]]
        name = "special"
        match = "/group/special"
        key = ["client"]
        over = "3/1m"
        throttle = {}
        "#,
    );
    let special = (0..5).filter(|_| get("/group/special").passes(&engine, secs(1))).count();
    let group = (0..20).filter(|_| get("/group/other").passes(&engine, secs(2))).count();
    assert_eq!((special, group), (3, 7));
}

// C44
#[test]
fn the_answer_names_the_rule_with_the_longest_wait_whatever_the_order() {
    let hourly =
        "[[rule]]\nname = \"hourly\"\nkey = [\"client\"]\nover = \"5/1h\"\nthrottle = {}\n";
    let daily = "[[rule]]\nname = \"daily\"\nkey = [\"client\"]\nover = \"5/24h\"\nthrottle = {}\n";
    for rules in [format!("{hourly}{daily}"), format!("{daily}{hourly}")] {
        let engine = engine(&rules);
        for _ in 0..5 {
            assert!(get("/").passes(&engine, secs(1)));
        }
        let decision = get("/").decide(&engine, secs(2));
        assert_eq!(decision.refusal.unwrap().rule.as_deref(), Some("daily"));
        assert_eq!(decision.findings.len(), 2, "both are said to have refused");
    }
}

// C45
#[test]
fn equal_numbers_on_different_rules_are_different_counts() {
    let engine = engine(
        r#"
        [[rule]]
        name = "a"
        match = "/a"
        key = ["client"]
        over = "3/60s"
        throttle = {}
        [[rule]]
        name = "b"
        match = ["/b", "/c"]
        key = ["client"]
        over = "3/60s"
        throttle = {}
        "#,
    );
    let passed = |path| (0..5).filter(|_| get(path).passes(&engine, secs(1))).count();
    assert_eq!(
        (passed("/a"), passed("/b"), passed("/c")),
        (3, 3, 0),
        "one rule on two paths is one count"
    );
}

const LOGIN: &str = r#"
    [[rule]]
    name = "login"
    match = "POST /login"
    key = ["client"]
    count = { status = [401, 403] }
    over = "5/300s"
    throttle = {}
"#;

// C46
#[test]
fn only_failed_logins_count_and_the_next_guess_stops_before_the_handler() {
    let engine = engine(LOGIN);
    let login = |status| post("/login").answered(&engine, status, secs(10));
    assert!((0..4).all(|_| login(401)));
    assert!((0..50).all(|_| login(200)), "successes cost nothing");
    assert!(login(403), "the fifth failure is still answered by the handler");
    assert!(!login(200), "the next one is refused before it");
    assert!(post("/login").passes(&engine, secs(310)), "until the first failure leaves the window");
}

// C46
#[test]
fn parallel_guesses_are_bounded_by_what_may_be_pending() {
    let engine = engine(LOGIN);
    let waiting: Vec<_> = (0..30).map(|_| post("/login").decide(&engine, secs(1))).collect();
    let (admitted, refused): (Vec<_>, Vec<_>) =
        waiting.into_iter().partition(|decision| decision.refusal.is_none());
    assert_eq!(admitted.len(), 5, "pending is N where it is left out");
    for decision in &refused {
        let refusal = decision.refusal.as_ref().unwrap();
        assert_eq!(
            (refusal.cause, refusal.status),
            (Cause::Pending, StatusCode::TOO_MANY_REQUESTS)
        );
        assert_eq!(refusal.wait, Duration::from_secs(1));
    }
    for decision in admitted {
        engine.settle(decision.charges, Outcome::Cancelled, secs(2));
    }
    assert!(
        post("/login").passes(&engine, secs(2)),
        "a dropped request frees its place and counts for nothing"
    );
}

// C46
#[test]
fn at_most_n_and_pending_less_one_guesses_ever_reach_the_handler() {
    let engine = engine(LOGIN);
    let (mut reached, mut open) = (0, Vec::new());
    for round in 0..100 {
        let decision = post("/login").decide(&engine, ms(round));
        if decision.refusal.is_none() {
            reached += 1;
            open.push(decision.charges);
        }
        if open.len() == 5 {
            engine.settle(open.remove(0), Outcome::Status(StatusCode::UNAUTHORIZED), ms(round));
        }
    }
    assert_eq!(reached, 5 + 5 - 1);
}

// C47
#[test]
fn the_nth_passes_and_the_next_is_refused() {
    for action in ["throttle = {}", "block = { for = \"1m\" }"] {
        let engine = engine(&format!(
            "[[rule]]\nname = \"all\"\nkey = [\"client\"]\nover = \"3/1m\"\n{action}"
        ));
        let passed: Vec<_> = (0..5).map(|_| get("/").passes(&engine, secs(1))).collect();
        assert_eq!(passed, [true, true, true, false, false], "{action}");
    }
}

// C21
#[test]
fn preflights_are_not_charged_and_pass_all_but_deny_and_a_block() {
    let engine = engine(
        r#"
        [[deny]]
        clients = ["192.0.2.0/24"]
        [[rule]]
        name = "all"
        key = ["client"]
        over = "2/60s"
        block = { for = "10m" }
        "#,
    );
    let preflight = || {
        let mut ask = get("/api").with("origin", "https://shop.example");
        ask.method = http::Method::OPTIONS;
        ask.with("access-control-request-method", "POST")
    };
    let asked = [preflight(), post("/api"), preflight(), post("/api"), preflight()];
    assert!(asked.iter().all(|ask| ask.passes(&engine, secs(1))), "two requests were charged");
    assert!(!post("/api").passes(&engine, secs(1)));
    assert!(!preflight().passes(&engine, secs(2)), "a standing block");
    assert!(!preflight().from("192.0.2.1").passes(&engine, secs(2)), "a deny");
    assert!(preflight().from("198.51.100.1").passes(&engine, secs(2)));
}

// C59
#[test]
fn lists_act_before_rules_and_the_narrowest_prefix_wins() {
    let engine = engine(
        r#"
        [[allow]]
        clients = ["127.0.0.0/8", "203.0.113.7"]
        [[allow]]
        clients = ["198.51.100.0/24"]
        rules = ["all"]
        [[deny]]
        clients = ["203.0.113.0/24"]
        until = 1970-01-01T01:00:00Z
        [[rule]]
        name = "all"
        key = ["client"]
        over = "1/1h"
        throttle = {}
        [[rule]]
        name = "other"
        key = ["client"]
        over = "3/1h"
        throttle = {}
        "#,
    );
    let passed = |client| (0..5).filter(|_| get("/").from(client).passes(&engine, secs(1))).count();
    assert_eq!(passed("127.0.0.1"), 5, "allowed past all");
    assert_eq!(passed("203.0.113.7"), 5, "the narrower allow wins");
    assert_eq!(passed("203.0.113.8"), 0, "denied");
    assert_eq!(passed("198.51.100.1"), 3, "allowed past one rule only");
    assert_eq!(passed("192.0.2.1"), 1);
    assert!(get("/").from("203.0.113.8").passes(&engine, secs(3_600)), "the deny has run out");
    let denied = get("/").from("203.0.113.8").decide(&engine, secs(2)).refusal.unwrap();
    assert_eq!((denied.cause, denied.rule, denied.disclose), (Cause::Denied, None, Disclose::None));
    assert_eq!(engine.denied(), 6);
}

// C23
#[test]
fn exempt_paths_are_not_counted() {
    let engine = engine(&format!("[exempt]\nmatch = [\"/healthz\"]\n{TEN_A_MINUTE}"));
    assert!((0..100).all(|_| get("/healthz").passes(&engine, secs(1))));
    assert_eq!((0..20).filter(|_| get("/").passes(&engine, secs(1))).count(), 10);
    assert_eq!(engine.counts()[0].matched, 20);
}

#[test]
fn always_refuses_every_match_and_holds_no_verdict() {
    let engine = engine(
        r#"
        [[rule]]
        name = "trap"
        match = "/wp-login.php"
        key = ["client"]
        always = true
        block = { status = 404 }
        [[rule]]
        name = "closed"
        match = "/closed"
        key = []
        always = true
        throttle = {}
        "#,
    );
    let trap = get("/wp-login.php").decide(&engine, secs(1));
    let refusal = trap.refusal.unwrap();
    assert_eq!(
        (refusal.cause, refusal.status, refusal.quota),
        (Cause::Always, StatusCode::NOT_FOUND, None)
    );
    let closed = get("/closed").decide(&engine, secs(1)).refusal.unwrap();
    assert_eq!(
        (closed.status, closed.wait),
        (StatusCode::TOO_MANY_REQUESTS, Duration::from_secs(1))
    );
    assert!(engine.tick(secs(2)).is_empty());
}

#[test]
fn overrides_give_some_keys_other_terms() {
    let engine = engine(
        r#"
        [[rule]]
        name = "all"
        key = ["client"]
        over = "2/1m"
        throttle = {}
          [[rule.override]]
          key = ["198.51.100.0/24"]
          over = "100/1m"
          [[rule.override]]
          key = ["198.51.100.7"]
          exempt = true
          [[rule.override]]
          key = ["192.0.2.1"]
          mode = "observe"
        "#,
    );
    let passed =
        |client| (0..200).filter(|_| get("/").from(client).passes(&engine, secs(1))).count();
    assert_eq!(passed("203.0.113.9"), 2);
    assert!((100..=102).contains(&passed("198.51.100.1")), "a hundred, to two per cent");
    assert_eq!(passed("198.51.100.7"), 200);
    assert_eq!(passed("192.0.2.1"), 200, "only observed");
    assert_eq!(engine.counts()[0].would_refuse, 198);
}

#[test]
fn an_overrides_mode_stands_for_the_rules_own_under_the_files() {
    let passed = |file: &str, rule: &str| {
        let engine = engine(&format!(
            r#"
            mode = "{file}"
            [[rule]]
            name = "all"
            key = ["client"]
            over = "2/1m"
            throttle = {{}}
            mode = "{rule}"
              [[rule.override]]
              key = ["198.51.100.0/24"]
              mode = "enforce"
            "#
        ));
        ["203.0.113.9", "198.51.100.1"]
            .map(|client| (0..5).filter(|_| get("/").from(client).passes(&engine, secs(1))).count())
    };
    assert_eq!(passed("enforce", "enforce"), [2, 2]);
    assert_eq!(passed("enforce", "observe"), [5, 2], "enforced for some first");
    assert_eq!(passed("enforce", "off"), [5, 2]);
    assert_eq!(passed("observe", "enforce"), [5, 5], "the kill switch holds for all");
}

#[test]
fn a_file_that_observes_refuses_nobody_and_says_what_it_would_have() {
    for mode in ["observe", "off"] {
        let engine = engine(&format!("mode = \"{mode}\"\n{TEN_A_MINUTE}"));
        assert!((0..25).all(|_| get("/").passes(&engine, secs(1))));
        let expected = if mode == "off" { (0, 0) } else { (25, 15) };
        let counts = engine.counts()[0];
        assert_eq!(
            (counts.matched, counts.would_refuse, counts.refused),
            (expected.0, expected.1, 0)
        );
    }
}

#[test]
fn missing_keys_are_skipped_shared_or_rejected() {
    let decide = |missing: &str, key: &str| {
        let engine = engine(&format!(
            "[[rule]]\nname = \"all\"\nkey = [\"{key}\"]\nmissing_key = \"{missing}\"\nover = \"1/1m\"\nthrottle = {{}}"
        ));
        let mut last = None;
        for _ in 0..3 {
            last = Some(get("/").from("none").decide(&engine, secs(1)));
        }
        let counts = engine.counts()[0];
        (
            last.and_then(|decision| decision.refusal).map(|refusal| refusal.status.as_u16()),
            counts.unkeyed,
        )
    };
    assert_eq!(decide("skip", "client"), (None, 3), "the rule does not apply");
    assert_eq!(decide("share", "client"), (Some(429), 0), "one key for all");
    assert_eq!(decide("reject", "client"), (Some(500), 3), "ours to know");
    assert_eq!(decide("reject", "header:x-api-key"), (Some(400), 3), "the client's to send");
}

#[test]
fn verdicts_begin_go_on_and_end() {
    let engine = engine(TEN_A_MINUTE);
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
    let engine = engine(
        r#"
        [[rule]]
        name = "all"
        key = ["client"]
        over = "1/1s"
        block = { for = "10s", grow = 3, max = "60s", forget = "5m" }
        "#,
    );
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
    let engine = engine(TEN_A_MINUTE);
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
    let engine = engine(
        r#"
        [[rule]]
        name = "all"
        key = ["client"]
        over = "1/1s"
        block = { for = "10s", extend = true }
        "#,
    );
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
fn a_preflight_without_the_key_counts_as_unkeyed_only() {
    let engine = engine(
        r#"
        [[rule]]
        name = "all"
        key = ["header:x-api-key"]
        missing_key = "reject"
        over = "2/60s"
        throttle = {}
        "#,
    );
    let mut preflight = get("/api").with("origin", "https://shop.example");
    preflight.method = http::Method::OPTIONS;
    let preflight = preflight.with("access-control-request-method", "POST");
    assert!(preflight.passes(&engine, secs(1)), "a browser cannot send the key with it");
    let counts = engine.counts()[0];
    assert_eq!((counts.matched, counts.unkeyed), (0, 1));
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
