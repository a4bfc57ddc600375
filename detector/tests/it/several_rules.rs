//! Several rules that match one request.

use crate::harness::{engine, get, secs};

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
