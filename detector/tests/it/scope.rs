//! Which requests a rule acts on, and on which terms.

use std::time::Duration;

use hotgate_detector::Cause;
use hotgate_rules::Disclose;
use http::StatusCode;

use crate::harness::{engine, get, post, secs};

const TEN_A_MINUTE: &str = r#"
    [[rule]]
    name = "all"
    key = ["client"]
    over = "10/1m"
    throttle = {}
"#;

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
