//! Which requests a rule and its overrides are for: `when`, dates, what only the service knows.

use std::time::Duration;

use http::{HeaderMap, Method};

use super::{errors, read_rule, rule};
use crate::{Action, Extract, Facts, Mode, OverridePart, PartKind, Period, RequestPath, Rule};

/// What is wrong with a rule of these lines, which stand from line 3 on.
fn in_rule(lines: &str, expected: &str) {
    assert_eq!(errors(&rule(lines)), expected, "in\n{}", rule(lines));
}

/// A service that says `ada` has the plan `gold`.
#[derive(Debug)]
struct Ada;

impl Extract for Ada {
    fn user(&self) -> Option<std::borrow::Cow<'_, str>> {
        Some("ada".into())
    }

    fn extra(&self, name: &str) -> Option<std::borrow::Cow<'_, str>> {
        (name == "plan").then(|| "gold".into())
    }
}

fn with_facts<T>(extracted: &dyn Extract, check: impl FnOnce(&Facts<'_>) -> T) -> T {
    let mut headers = HeaderMap::new();
    headers.insert("x-tier", "beta-2".parse().unwrap());
    check(&Facts {
        method: Some(&Method::POST),
        path: RequestPath::new("/a/7"),
        query: Some("q=1&q=2"),
        host: Some("Shop.Example"),
        headers: &headers,
        route: None,
        client: Some("2001:db8::9".parse().unwrap()),
        extracted,
    })
}

fn holds(when: &str, extracted: &dyn Extract) -> bool {
    let rule = read_rule(&format!("match = \"/a/{{id}}\"\nwhen = {{ {when} }}"));
    with_facts(extracted, |facts| rule.holds(facts))
}

#[test]
fn a_condition_holds_for_what_it_names() {
    for (when, expected) in [
        ("\"x:plan\" = \"gold\"", true),
        ("\"x:plan\" = [\"free\", \"gold\"]", true),
        ("\"x:plan\" = \"free\"", false),
        ("\"x:plan\" = \"*\"", true),
        ("\"x:tenant\" = \"*\"", false),
        ("user = \"a*\", \"x:plan\" = \"gold\"", true),
        ("user = \"a*\", \"x:plan\" = \"free\"", false),
        ("\"x:tenant|user\" = \"ada\"", true),
        ("client = \"2001:db8::9\"", true),
        ("client = \"2001:db8::8\"", false),
        ("client = [\"203.0.113.0/24\", \"2001:db8::/32\"]", true),
        ("method = \"post\"", true),
        ("host = \"shop.EXAMPLE\"", true),
        ("\"param:id\" = \"7\"", true),
        ("\"query:q\" = \"2\"", true),
        ("\"header:X-Tier\" = \"beta-*\"", true),
        ("bearer = \"*\"", false),
        ("path = \"/a/*\"", true),
    ] {
        assert_eq!(holds(when, &Ada), expected, "{when}");
    }
    assert!(!holds("user = \"*\"", &()), "nobody is no user");
}

#[test]
fn good_bots_are_let_past_by_path_and_by_what_they_accept() {
    // C63.
    let rule = read_rule(
        "match = \"/{*rest}\"\nexcept = [\"/feed.xml\", \"/robots.txt\"]\nblock = { for = \"1h\" }\n[[rule.override]]\nwhen = { \"header:accept\" = [\"application/atom+xml*\", \"application/rss+xml*\"] }\nexempt = true",
    );
    let mut headers = HeaderMap::new();
    headers.insert("accept", "application/rss+xml, */*".parse().unwrap());
    with_facts(&(), |plain| {
        let reader = Facts { headers: &headers, path: RequestPath::new("/news"), ..*plain };
        let exempt = |facts: &Facts<'_>| rule.override_for(facts, &rule.key(facts).unwrap());
        assert!(exempt(&reader).is_some_and(|(_, terms)| terms.exempt));
        assert!(exempt(plain).is_none());
    });
    assert_eq!(rule.except.len(), 2);
}

#[test]
fn conditions_are_checked_where_they_stand() {
    // C57, C58: one that cannot be read is an error, never a rule without it.
    in_rule(
        r#"when = { ip = "10.0.0.1", plan = "x", "x:" = "y", client = ["10.0.0.1/8", 3], host = [] }"#,
        r#"3:10: when: unknown part "ip", did you mean "client"?
3:27: when: unknown part "plan", did you mean "x:NAME"?
3:39: when: expected x:NAME with the name of an extractor, found "x:"
3:61: when: expected no bits beyond the prefix of /8, found "10.0.0.1/8", did you mean "10.0.0.0/8"?
3:75: when: expected text, found 3
3:86: when: expected 1 to 256 values, found 0"#,
    );
    in_rule(r#"when = { agent = "curl*" }"#, r#"3:10: when: "agent" is not available yet"#);
    in_rule(
        r#"when = {}"#,
        r#"3:8: when: expected 1 to 8 entries, such as { "x:plan" = ["free"] }, found 0"#,
    );
    in_rule(
        r#"when = "x:plan=free""#,
        r#"3:8: when: expected a table such as { "x:plan" = ["free"] }, found "x:plan=free""#,
    );
    in_rule(
        r#"when = { "param:id" = "7", client = "ada" }"#,
        r#"3:10: when: param:id needs a match whose patterns capture "{id}"
3:37: when: expected an address, a network such as "203.0.113.0/24", or "*", found "ada""#,
    );
    in_rule(
        r#"when = { "client/24" = "203.0.113.9" }"#,
        r#"3:24: when: expected a network of /24 or wider, as the key counts no narrower, found "203.0.113.9", did you mean "203.0.113.0/24"?"#,
    );
}

#[test]
fn what_only_the_service_knows_can_be_a_key() {
    let rule = read_rule("key = [\"user|client\", \"x:plan\"]");
    assert_eq!(rule.key.to_string(), "user|client,x:plan");
    let kinds: Vec<_> = rule.kinds().collect();
    assert_eq!(kinds[0], &PartKind::User);
    assert_eq!(kinds[2], &PartKind::Extra("plan".into()));
    let text = with_facts(&Ada, |facts| rule.key(facts).unwrap().text(&rule.show(&[0; 16])));
    assert!(text.starts_with("user=#"), "{text}: a user is shown as a hash");
    in_rule(
        "key = [\"x:\", \"x:a b\", \"usr\", \"tenant\"]",
        r#"3:8: key: expected x:NAME with the name of an extractor, found "x:"
3:14: key: expected x:NAME with the name of an extractor, found "x:a b"
3:23: key: unknown part "usr", did you mean "user"?
3:30: key: unknown part "tenant", did you mean "x:NAME"?"#,
    );
}

#[test]
fn a_rule_can_be_on_for_a_time() {
    let rule = read_rule("from = 2026-11-27T00:00:00+01:00\nuntil = 2026-11-30T00:00:00Z");
    let period = Period { from: Some(1_795_734_000), until: Some(1_795_996_800) };
    assert_eq!(rule.period, period);
    assert_eq!(read_rule("until = 2026-11-30T00:00:00Z").period.from, None);
    in_rule(
        "from = \"2026-11-27\"\nuntil = 2026-11-30",
        "3:8: from: expected a date-time with an offset, such as 2027-01-01T00:00:00Z, found \"2026-11-27\"\n\
         4:9: until: expected a date-time with an offset, such as 2027-01-01T00:00:00Z, found 2026-11-30, did you mean 2026-11-30T00:00:00Z?",
    );
}

fn block(rule: &Rule, at: usize) -> crate::Block {
    let Some(Action::Block(block)) = rule.overrides[at].action else { panic!("a block") };
    block
}

#[test]
fn an_override_replaces_fields_of_the_action_and_keeps_the_others() {
    let rule = read_rule(
        "block = { for = \"15m\", status = 429, grow = 2 }\n[[rule.override]]\nkey = [\"10.0.0.1\"]\nblock.for = \"2d\"\n[[rule.override]]\nkey = [\"10.0.0.2\"]\nblock = { status = 404, extend = true }\nmode = \"off\"",
    );
    let long = block(&rule, 0);
    let day = Duration::from_secs(86_400);
    assert_eq!((long.lasts, long.max, long.grow.get()), (day * 2, day * 2, 2));
    assert_eq!(long.status.as_u16(), 429);
    let other = block(&rule, 1);
    assert_eq!((other.lasts, other.status.as_u16()), (Duration::from_secs(900), 404));
    assert!(other.extend);
    assert_eq!(rule.overrides[1].mode, Some(Mode::Off));

    let rule = read_rule(
        "throttle = { pace = \"2/1s\", burst = 10 }\noverride = [{ key = [\"*\"], throttle.pace = \"5/1s\" }]",
    );
    let Some(Action::Throttle(Some(pace))) = rule.overrides[0].action else { panic!("a pace") };
    assert_eq!((pace.rate.limit.get(), pace.burst.get()), (5, 10));

    let rule = read_rule(
        "handler = \"maze\"\n[[rule.override]]\nwhen = { user = \"ada\" }\nhandler = \"lounge\"",
    );
    assert_eq!(rule.overrides[0].action, Some(Action::Handler("lounge".into())));
}

#[test]
fn an_override_replaces_fields_of_the_rules_own_action_only() {
    in_rule(
        "block = { for = \"1h\", max = \"2h\", grow = 2 }\n[[rule.override]]\nkey = [\"10.0.0.1\"]\nthrottle = {}\n[[rule.override]]\nkey = [\"10.0.0.2\"]\nblock = {}\n[[rule.override]]\nkey = [\"10.0.0.3\"]\nblock.for = \"3h\"",
        r#"9:12: throttle: the rule's action is block, expected fields of it
12:9: block: replaces nothing, expected fields of the rule's action
15:13: for: expected at most the 2h of the rule's max, found "3h""#,
    );
    in_rule(
        "throttle = {}\n[[rule.override]]\nkey = [\"10.0.0.1\"]\nthrottle.pace = \"1/1s\"",
        "9:17: pace: replaces the pace of the rule, which has none",
    );
    in_rule(
        "always = true\nblock = {}\n[[rule.override]]\nkey = [\"10.0.0.1\"]\nblock = { status = 404, for = \"1h\" }",
        "9:25: for in block has no meaning beside always = true, which blocks each request anew",
    );
    in_rule(
        "block = { for = \"1h\" }\n[[rule.override]]\nkey = [\"10.0.0.1\"]\nrespond = { status = 503 }\nexempt = true\nblock.status = 404",
        r#"7:1: [[rule.override]] with exempt = true, expected nothing else to change
9:1: unknown field "respond" in [[rule.override]], expected key, when, over, exempt, mode, block, throttle, tag or handler"#,
    );
}

#[test]
fn an_override_is_for_a_key_or_for_what_holds() {
    in_rule(
        "[[rule.override]]\nkey = [\"10.0.0.1\"]\nwhen = { user = \"ada\" }\nmode = \"off\"",
        "9:1: when stands beside key, expected one of them",
    );
    in_rule(
        "[[rule.override]]\nwhen = { user = [\"ada\"] }\nmode = \"off\"\n[[rule.override]]\nwhen = { user = \"ada\" }\nover = \"20/1m\"",
        "10:1: [[rule.override]] with the when of an override before it",
    );
    assert_eq!(
        errors(&rule("key = []\n[[rule.override]]\nwhen = { user = \"ada\" }\nmode = \"off\"")),
        "no error",
        "one budget can have other terms for some requests"
    );
}

#[test]
fn overrides_by_key_stand_before_those_by_when_and_these_in_their_order() {
    let rule = read_rule(
        "[[rule.override]]\nwhen = { user = \"b\" }\nmode = \"off\"\n[[rule.override]]\nwhen = { user = \"a*\" }\nmode = \"observe\"\n[[rule.override]]\nkey = [\"*\"]\nover = \"20/1m\"\n[[rule.override]]\nwhen = { user = \"*\" }\nexempt = true",
    );
    let by: Vec<_> = rule
        .overrides
        .iter()
        .map(|terms| terms.when.first().map(|condition| condition.values[0].clone()))
        .collect();
    let exact = OverridePart::Exact(b"b"[..].into());
    let prefix = OverridePart::Prefix(b"a"[..].into());
    assert_eq!(by, [None, Some(exact), Some(prefix), Some(OverridePart::Any)]);
    let first = |rule: &Rule| {
        with_facts(&Ada, |facts| {
            rule.override_for(facts, &rule.key(facts).unwrap()).map(|(at, _)| at)
        })
    };
    assert_eq!(first(&rule), Some(0), "by key, whatever holds");
}
