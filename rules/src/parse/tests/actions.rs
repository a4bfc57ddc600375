//! What happens to a hot key's requests, and what a refused client is told.

use std::{num::NonZeroU32, time::Duration};

use http::StatusCode;

use super::{errors, read_rule, rule};
use crate::{Action, Disclose, Pace, Rate};

/// What is wrong with a rule of these lines, which stand from line 3 on.
fn in_rule(lines: &str, expected: &str) {
    assert_eq!(errors(&rule(lines)), expected, "in\n{}", rule(lines));
}

fn pace(limit: u32, millis: u64, burst: u32) -> Action {
    let number = |number| NonZeroU32::new(number).unwrap();
    let rate = Rate { limit: number(limit), window: Duration::from_millis(millis) };
    Action::Throttle(Some(Pace { rate, burst: number(burst) }))
}

#[test]
fn a_pace_is_read_and_its_burst_is_its_n_where_none_is_written() {
    for (throttle, expected) in [
        ("{ pace = \"2/1s\", burst = 10 }", pace(2, 1_000, 10)),
        ("{ pace = \"5/s\" }", pace(5, 1_000, 5)),
        ("{ pace = \"10000000/1s\" }", pace(10_000_000, 1_000, 10_000_000)),
        ("{}", Action::Throttle(None)),
    ] {
        assert_eq!(read_rule(&format!("throttle = {throttle}")).action, expected, "{throttle}");
    }
}

#[test]
fn a_pace_that_time_cannot_keep_is_an_error() {
    // C28, C31: never silently none or unlimited, and no burst beyond what time can hold.
    in_rule(
        "throttle = { pace = \"10000000/1ms\" }",
        r#"3:21: pace: expected at most 10000000 a second, found "10000000/1ms""#,
    );
    in_rule(
        "throttle = { pace = \"1/7d\", burst = 10000000 }",
        "3:37: burst: a burst of 10000000 at one in 7d takes more than 3650d to come back",
    );
    in_rule(
        "throttle = { pace = \"1/7d\", burst = 4_000_000_000 }",
        "3:37: burst: expected a whole number from 1 to 10000000, found 4000000000",
    );
    in_rule(
        "throttle = { pace = 2, burst = 0 }",
        "3:21: pace: expected a rate such as \"10/1m\", found 2, did you mean \"2/1m\"?\n\
         3:32: burst: expected a whole number from 1 to 10000000, found 0",
    );
    in_rule(
        "throttle = { burst = 2 }",
        "3:22: burst: needs pace beside it, such as pace = \"2/1s\"",
    );
}

#[test]
fn a_pace_stands_beside_attempts_only() {
    in_rule(
        "always = true\nthrottle = { pace = \"2/1s\" }",
        "4:14: pace in throttle has no meaning beside always = true, which refuses every request",
    );
    in_rule(
        "count = { status = [401] }\nthrottle = { pace = \"2/1s\", burst = 2 }",
        "4:14: pace in throttle has no meaning beside count, which refuses every request while N responses stand",
    );
}

#[test]
fn tags_and_handlers_are_read() {
    let Action::Tag(header) = read_rule("tag = { header = \"X-Hot\" }").action else {
        panic!("a tag")
    };
    assert_eq!(header, "x-hot");
    let rule = read_rule("always = true\nhandler = \"maze\"");
    assert_eq!(rule.action, Action::Handler("maze".into()));
    assert!(!rule.action.refuses());
}

#[test]
fn a_tag_takes_no_field_that_requests_need() {
    // It is stripped from every request.
    for name in ["Authorization", "cookie", "Host", "sec-websocket-key", "x-forwarded-for", "te"] {
        in_rule(
            &format!("tag = {{ header = \"{name}\" }}"),
            &format!(
                "3:18: header: \"{name}\" is needed as requests have it, and a tag's field is stripped from each of them; expected a field name of your own such as \"x-hot\""
            ),
        );
    }
    in_rule("tag = {}", "3:7: tag needs header, such as header = \"x-hot\"");
    in_rule(
        "tag = { header = \"x hot\" }",
        "3:18: header: expected a field name of your own such as \"x-hot\", found \"x hot\"",
    );
    in_rule("tag = \"x-hot\"", "3:7: tag: expected a table, found \"x-hot\"");
}

#[test]
fn a_handler_is_a_name() {
    in_rule(
        "handler = \"The Maze\"",
        r#"3:11: handler: expected 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, found "The Maze", did you mean "the-maze"?"#,
    );
    in_rule(
        "handler = \"maze\"\ntag = { header = \"x\" }",
        "4:1: tag stands beside handler, expected one action in a rule",
    );
}

#[test]
fn what_refuses_nothing_has_no_bound_on_what_is_pending() {
    in_rule(
        "count = { status = [404], pending = 3 }\ntag = { header = \"x-hot\" }",
        "3:37: pending: has no meaning beside tag, which refuses nothing",
    );
    assert_eq!(
        errors(&rule("count = { status = [404] }\nhandler = \"maze\"")),
        "no error",
        "responses can make a key hot whatever the action"
    );
}

#[test]
fn an_answer_of_the_rules_own_is_read() {
    let rule = read_rule(
        "fields = true\nrespond = { status = 503, content_type = \"text/html; charset=utf-8\", body_file = \"sorry.html\", headers = { X-Degraded = \"1\", link = \"</status>\" } }",
    );
    assert!(rule.fields);
    assert_eq!(rule.disclose, Disclose::Full);
    let respond = rule.respond.expect("an answer");
    assert_eq!(respond.status, Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(respond.content_type.unwrap(), "text/html; charset=utf-8");
    assert_eq!(respond.body_file.as_deref().and_then(|path| path.to_str()), Some("sorry.html"));
    let headers: Vec<_> = respond
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(headers, [("x-degraded", "1"), ("link", "</status>")]);
}

#[test]
fn an_answer_stands_beside_a_refusal_and_says_something() {
    in_rule(
        "tag = { header = \"x-hot\" }\nrespond = { status = 503 }",
        "4:11: respond: has no meaning beside tag, which refuses nothing",
    );
    in_rule(
        "block = { for = \"1h\", status = 404 }\nrespond = { status = 503 }",
        "4:11: respond: status stands in block already, expected one of them",
    );
    in_rule(
        "respond = {}",
        "3:11: respond: says nothing, expected fields such as { status = 503 }",
    );
    in_rule(
        "respond = { statsu = 503 }",
        r#"3:13: unknown field "statsu" in respond, did you mean "status"?"#,
    );
    in_rule(
        "respond = { status = 199, content_type = \"html\", body_file = \"\" }",
        "3:22: status: expected a whole number from 200 to 599, found 199\n\
         3:42: content_type: expected a media type such as \"text/html; charset=utf-8\", found \"html\"\n\
         3:62: body_file: expected the path of a file, found \"\"",
    );
}

#[test]
fn a_body_has_a_status_for_it_and_a_type_a_body() {
    in_rule(
        "respond = { status = 204, body_file = \"x\" }",
        "3:39: body_file: an answer of status 204 has no body",
    );
    in_rule(
        "respond = { content_type = \"text/html\" }",
        "3:28: content_type: needs body_file beside it",
    );
}

#[test]
fn fields_that_are_hotgates_are_not_set_by_a_rule() {
    let is = |name: &str, instead: &str| {
        in_rule(
            &format!("respond.headers = {{ {name} = \"x\" }}"),
            &format!("3:21: headers: \"{}\" is Hotgate's to set, {instead}", name.to_lowercase()),
        );
    };
    is("Content-Type", "expected content_type in respond");
    is("retry-after", "expected disclose = \"full\" or \"none\" in the rule");
    is("cache-control", "expected it left out");
    is("transfer-encoding", "expected it left out");
    in_rule(
        "respond.headers = { \"a b\" = \"x\", x-a = 3, x-b = \"\\n\", x-c = \"1\", X-C = \"2\" }",
        "3:21: headers: expected the name of a field such as \"x-degraded\", found \"a b\"\n\
         3:40: headers: expected text of visible ASCII, found 3\n\
         3:49: headers: expected text of visible ASCII, found \"\\n\"\n\
         3:66: headers: x-c stands here already",
    );
    in_rule(
        "respond.headers = {}",
        "3:19: headers: expected 1 to 32 entries, such as { x-degraded = \"1\" }, found 0",
    );
}

#[test]
fn always_tells_no_quota() {
    in_rule(
        "always = true\nfields = true",
        "4:10: fields: has no meaning beside always = true, which counts nothing",
    );
}
