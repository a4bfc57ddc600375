use std::fmt::Write as _;

use hotgate_cli::Status;

use crate::{Run, arg, file, hotgate};

const RULE: &str =
    "app = \"t\"\n[[rule]]\nname = \"r\"\nkey = [\"client\"]\nover = \"2/10s\"\nthrottle = {}\n";

/// A Common line of `client` at `second` past ten.
fn line(client: &str, second: u32) -> String {
    format!("{client} - - [17/May/2015:10:00:{second:02} +0000] \"GET /x HTTP/1.1\" 200 1\n")
}

fn replay(rules: &str, logs: &[&str], flags: &[&str]) -> Run {
    let rules = file(rules);
    let logs: Vec<_> = logs.iter().map(file).collect();
    let paths = logs.iter().map(|log| arg(log.path()));
    hotgate(
        ["replay", "--rules", arg(rules.path())]
            .into_iter()
            .chain(flags.iter().copied())
            .chain(paths),
    )
}

#[test]
fn json_is_one_object_with_the_members_programs_rely_on() {
    let log: String = (0..4).map(|second| line("203.0.113.9", second)).collect();
    let run = replay(RULE, &[&log, &line("203.0.113.8", 9)], &["--json"]);
    assert_eq!(run.status, Status::Done, "also when it refused: {}", run.err);
    let json = run.json();
    for (member, expected) in [("lines", 5), ("parsed", 5), ("unparsed", 0), ("reordered", 0)] {
        assert_eq!(json[member], expected, "{member}");
    }
    assert_eq!(json["from"], "2015-05-17T10:00:00Z");
    assert_eq!(json["to"], "2015-05-17T10:00:09Z");
    let rule = &json["rules"][0];
    assert_eq!((rule["name"].as_str(), rule["action"].as_str()), (Some("r"), Some("throttle")));
    assert_eq!((rule["matched"].as_u64(), rule["refused"].as_u64()), (Some(5), Some(2)));
    let key = serde_json::json!([{
        "key": "client=203.0.113.9", "matched": 4, "refused": 2,
        "first": "2015-05-17T10:00:02Z", "last": "2015-05-17T10:00:03Z",
    }]);
    assert_eq!(rule["keys"], key, "only keys with a refusal");
    assert!(rule.get("not_in_log").is_none());
}

#[test]
fn keys_stand_most_refused_first_and_ties_by_their_text() {
    let clients = [("203.0.113.2", 3), ("203.0.113.1", 3), ("203.0.113.3", 5)];
    let log: String =
        clients.iter().flat_map(|(client, n)| (0..*n).map(|s| line(client, s))).collect();
    let json = replay(RULE, &[&log], &["--json"]).json();
    let keys = json["rules"][0]["keys"].as_array().unwrap();
    let keys: Vec<_> = keys.iter().map(|key| key["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["client=203.0.113.3", "client=203.0.113.1", "client=203.0.113.2"]);
}

/// C104
#[test]
fn logs_are_merged_by_time_and_backward_steps_are_counted() {
    let (first, second) =
        (line("203.0.113.9", 5) + &line("203.0.113.9", 1), line("203.0.113.9", 3));
    let json = replay(RULE, &[&first, &second], &["--json"]).json();
    assert_eq!(json["reordered"], 1, "a step between two logs is none");
    let second = line("203.0.113.9", 3).repeat(3);
    let same = replay(RULE, &[&second], &["--json"]).json();
    assert_eq!(same["reordered"], 0, "nor is a line of the same second");
    let key = &json["rules"][0]["keys"][0];
    assert_eq!(key["first"], "2015-05-17T10:00:05Z", "the third in time is the refused one");
}

#[test]
fn two_runs_print_the_same() {
    let mut rules = RULE.to_owned();
    rules.push_str("[[rule]]\nname = \"a\"\nkey = [\"agent\"]\nover = \"1/1m\"\nthrottle = {}\n");
    let agent = line("203.0.113.9", 0).trim_end().to_owned() + " \"-\" \"Agent/1\"\n";
    let log = agent.repeat(9);
    let (one, two) = (replay(&rules, &[&log], &["--json"]), replay(&rules, &[&log], &["--json"]));
    assert_eq!(one.out, two.out);
    assert!(one.out.contains("agent=#"), "a hidden key stays hidden: {}", one.out);
}

#[test]
fn a_key_part_the_log_does_not_hold_is_named_and_never_shown_as_zero() {
    let rules = "app = \"t\"\n[[rule]]\nname = \"k\"\nkey = [\"header:x-api-key\", \"client\"]\nmissing_key = \"reject\"\nover = \"1/1m\"\nthrottle = {}\n[[rule]]\nname = \"a\"\nkey = [\"agent\"]\nover = \"1/1m\"\nthrottle = {}\n[[rule]]\nname = \"f\"\nkey = [\"header:x-api-key|client\"]\nover = \"1/1m\"\nthrottle = {}\n";
    let log = line("203.0.113.9", 0).repeat(3);
    let run = replay(rules, &[&log], &["--json"]);
    let json = run.json();
    let rules_found = json["rules"].as_array().unwrap();
    assert_eq!(rules_found[0]["not_in_log"], serde_json::json!(["header:x-api-key"]));
    assert!(rules_found[0]["matched"].is_null() && rules_found[0]["refused"].is_null());
    assert_eq!(rules_found[0]["mode"], "off", "it was not evaluated");
    assert_eq!(rules_found[1]["not_in_log"], serde_json::json!(["agent"]), "a Common log has none");
    assert_eq!(rules_found[2]["not_in_log"], serde_json::json!(["header:x-api-key"]));
    assert_eq!(rules_found[2]["refused"], 2, "its fallback is held; the first rule refused nobody");

    let text = replay(rules, &[&log], &[]).out;
    let expected = "this log does not hold header:x-api-key; rule k was not replayed";
    assert!(text.contains(expected), "{text}");
}

/// No router has matched what a log holds, so only a rule's own pattern can stand for the route.
#[test]
fn a_route_is_held_where_the_rule_has_a_pattern() {
    let rules = RULE.replace("\"client\"", "\"route\"");
    let log = line("203.0.113.9", 0).repeat(3);
    let json = replay(&rules, &[&log], &["--json"]).json();
    assert_eq!(json["rules"][0]["not_in_log"], serde_json::json!(["route"]));
    let json = replay(&(rules + "match = \"/{x}\"\n"), &[&log], &["--json"]).json();
    assert_eq!(json["rules"][0]["keys"][0]["key"], "route=/{x}");
}

#[test]
fn a_key_is_matched_by_what_its_rule_is_asked_about_only() {
    let rules = RULE.to_owned()
        + "[exempt]\nmatch = \"/healthz\"\n[[allow]]\nclients = [\"203.0.113.9\"]\nrules = [\"r\"]\nuntil = 2015-05-17T10:00:05Z\n";
    let allowed = line("203.0.113.9", 0).repeat(5);
    let exempt = line("203.0.113.9", 6).replace("/x", "/healthz").repeat(5);
    let log = allowed + &exempt + &line("203.0.113.9", 6).repeat(3);
    let key = &replay(&rules, &[&log], &["--json"]).json()["rules"][0]["keys"][0];
    assert_eq!((key["matched"].as_u64(), key["refused"].as_u64()), (Some(3), Some(1)), "{key}");
}

#[test]
fn the_agent_and_the_referer_of_combined_logs_can_be_keys() {
    let rules = "app = \"t\"\n[[rule]]\nname = \"a\"\nkey = [\"agent\"]\nover = \"1/1m\"\nthrottle = {}\nshow_key = true\n[[rule]]\nname = \"r\"\nkey = [\"header:referer\"]\nmissing_key = \"skip\"\nover = \"1/1m\"\nthrottle = {}\nshow_key = true\n";
    let log = (line("203.0.113.9", 0).trim_end().to_owned() + " \"-\" \"Agent\\x0a1\"\n").repeat(3);
    let json = replay(rules, &[&log], &["--json"]).json();
    assert_eq!(json["rules"][0]["keys"][0]["key"], "agent=Agent%250A1");
    assert_eq!(json["rules"][0]["refused"], 2);
    assert_eq!(json["rules"][1]["refused"], 0);
    assert_eq!(json["rules"][1]["unkeyed"], 3, "the referer is -");
}

/// C102
#[test]
fn lines_without_a_client_are_reported() {
    let log = line("-", 0) + &line("198.51.100.1, 203.0.113.9", 0) + &line("203.0.113.9", 0);
    let json = replay(RULE, &[&log], &["--json"]).json();
    assert_eq!(json["no_client"], 2);
    assert_eq!(json["rules"][0]["unkeyed"], 2);
    let walk = "[client]\nsource = \"x-forwarded-for\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n";
    let json = replay(&format!("{RULE}{walk}"), &[&log], &["--json"]).json();
    assert_eq!(
        (json["no_client"].as_u64(), json["rules"][0]["unkeyed"].as_u64()),
        (Some(1), Some(1))
    );
    let json = replay(RULE, &[&line("-", 0)], &["--json"]).json();
    assert_eq!(json["rules"][0]["not_in_log"], serde_json::json!(["client"]));
}

/// C3, C5: live they are told apart by a field that the log does not hold.
#[test]
fn lines_of_trusted_proxies_are_reported() {
    let walk = "[client]\nsource = \"x-forwarded-for\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n";
    let rules = format!("{RULE}{walk}");
    let log = line("10.0.0.1", 0).repeat(3) + &line("203.0.113.9", 0);
    assert_eq!(replay(&rules, &[&log], &["--json"]).json()["of_proxies"], 3);
    let text = replay(&rules, &[&log], &[]).out;
    let expected = "of proxies: 3 lines by trusted_proxies; who was behind them is not held";
    assert!(text.contains(expected), "{text}");
    assert_eq!(replay(RULE, &[&log], &["--json"]).json()["of_proxies"], 0);
}

/// C106
#[test]
fn a_log_in_which_nothing_parses_is_status_1_with_three_lines_and_reasons() {
    let run = replay(RULE, &["one\ntwo\n\nfour\n"], &[]);
    assert_eq!(run.status, Status::Failed);
    assert!(run.out.is_empty());
    let lines: Vec<&str> = run.err.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[0], "nothing to replay: none of 4 lines could be parsed");
    for (number, line) in (1..).zip(&lines[1..]) {
        assert!(line.contains(&format!(":{number}: ")), "{line}");
    }
    assert!(lines[1].ends_with("and a quoted request: one"), "{}", lines[1]);
    assert!(lines[3].ends_with(":3: the line is empty"), "{}", lines[3]);
    assert_eq!(replay(RULE, &[""], &["--json"]).status, Status::Failed);
}

/// C106
#[test]
fn a_few_bad_lines_stop_nothing() {
    let log = "garbage\n".to_owned() + &line("203.0.113.9", 0).repeat(9) + "\x16\x03\n";
    let run = replay(RULE, &[&log], &[]);
    assert_eq!(run.status, Status::Done);
    assert!(run.out.contains("unparsed: 2 lines (18.2 %)"), "{}", run.out);
    assert!(run.out.contains(":11: expected [day/Mon/year"), "{}", run.out);
    assert!(run.out.contains("matched 9, refused 7, of 1 key"), "{}", run.out);
    let escape = format!("\x1b[2J{}\n{}", "x".repeat(99), line("203.0.113.9", 0));
    let json = replay(RULE, &[&escape], &["--json"]).json();
    let text = format!("\\x1b[2J{}…", "x".repeat(56));
    assert_eq!(json["bad_lines"][0]["text"], text, "short, and nothing that a terminal obeys");
}

#[test]
fn bad_rules_and_logs_that_cannot_be_opened_are_2() {
    let run = replay("app = 1", &[&line("203.0.113.9", 0)], &[]);
    assert_eq!(run.status, Status::Usage);
    assert!(run.err.contains(":1:"), "{}", run.err);
    let rules = file(RULE);
    for log in ["/nowhere/access.log", "/"] {
        let run = hotgate(["replay", "--rules", arg(rules.path()), log]);
        assert_eq!(run.status, Status::Usage, "{log}");
        assert!(run.err.starts_with(log), "{}", run.err);
    }
}

#[test]
fn observing_rules_show_what_enforcing_them_would_give() {
    let log = line("203.0.113.9", 0).repeat(5);
    let observe = RULE.to_owned() + "mode = \"observe\"\n";
    for rules in [&observe, &format!("mode = \"observe\"\n{RULE}")] {
        let json = replay(rules, &[&log], &["--json"]).json();
        assert_eq!(json["rules"][0]["refused"], 3, "{rules}");
        assert_eq!(json["rules"][0]["mode"], "observe");
        let text = replay(rules, &[&log], &[]).out;
        assert!(text.contains("matched 5, would have refused 3, of 1 key"), "{text}");
    }
    let text = replay(&format!("mode = \"off\"\n{RULE}"), &[&log], &[]).out;
    assert!(text.contains("mode = \"off\": no rule is evaluated"), "{text}");
    assert!(text.contains("off: not evaluated"), "{text}");
}

#[test]
fn denied_requests_are_counted_apart() {
    let rules = RULE.to_owned() + "[[deny]]\nclients = [\"192.0.2.0/24\"]\n";
    let log = line("192.0.2.1", 0).repeat(5) + &line("203.0.113.9", 0);
    let json = replay(&rules, &[&log], &["--json"]).json();
    assert_eq!(json["denied"], 5);
    assert_eq!(json["rules"][0]["refused"], 0);
    assert!(replay(&rules, &[&log], &[]).out.contains("5 requests are refused by [[deny]]"));

    let exempt = rules.clone() + "[exempt]\nmatch = \"/x\"\n";
    assert_eq!(replay(&exempt, &[&log], &["--json"]).json()["denied"], 0, "exempt goes first");

    let observe = format!("mode = \"observe\"\n{rules}");
    let run = replay(&observe, &[&log], &["--json"]);
    let json = run.json();
    assert_eq!(json["denied"], 5, "what enforcing would deny");
    let key = &json["rules"][0]["keys"][0];
    assert_eq!(
        (key["matched"].as_u64(), key["refused"].as_u64()),
        (Some(5), Some(3)),
        "{}",
        run.out
    );
}

#[test]
fn statuses_are_settled_as_logged() {
    let mut rules = RULE.replace("throttle", "count = { status = [401] }\nthrottle");
    let failure = line("203.0.113.9", 0).replace(" 200 ", " 401 ");
    let log = failure.repeat(2) + &line("203.0.113.8", 0).repeat(9) + &failure;
    assert_eq!(replay(&rules, &[&log], &["--json"]).json()["rules"][0]["refused"], 1);
    // A line without a status is a request that was dropped before its response head.
    rules = rules.replace("401", "\"cancelled\"");
    let log = line("203.0.113.9", 0).replace(" 200 ", " - ").repeat(5);
    assert_eq!(replay(&rules, &[&log], &["--json"]).json()["rules"][0]["refused"], 3);
}

#[test]
fn the_text_shows_the_top_keys_only() {
    let mut log = String::new();
    for client in 0..5 {
        let _ = write!(log, "{}", line(&format!("203.0.113.{client}"), 0).repeat(3 + client));
    }
    let text = replay(RULE, &[&log], &["--top", "2"]).out;
    let shown: Vec<&str> = text.lines().filter(|line| line.contains("client=")).collect();
    assert_eq!(shown.len(), 2, "{text}");
    assert!(shown[0].contains("client=203.0.113.4") && shown[1].contains("client=203.0.113.3"));
    assert!(text.contains("and 3 keys more"), "{text}");
}

#[test]
fn a_rule_for_a_time_is_replayed_by_the_time_of_the_log() {
    let rules = format!("{RULE}from = 2015-05-17T10:00:04Z\nuntil = 2015-05-17T10:00:08Z\n");
    let log: String = (0..10).map(|second| line("203.0.113.9", second)).collect();
    let json = replay(&rules, &[&log], &["--json"]).json();
    let rule = &json["rules"][0];
    assert_eq!((rule["matched"].as_u64(), rule["refused"].as_u64()), (Some(4), Some(2)), "{json}");
    let key = &rule["keys"][0];
    assert_eq!(key["matched"], 4, "of a key too, only what the rule saw");
    assert_eq!(key["first"], "2015-05-17T10:00:06Z");
}

#[test]
fn what_only_the_service_knows_is_not_in_a_log_and_said_to_be_missing() {
    let rule = |name: &str, lines: &str| {
        format!("[[rule]]\nname = \"{name}\"\nover = \"2/10s\"\nthrottle = {{}}\n{lines}\n")
    };
    let rules = [
        "app = \"t\"\n".to_owned(),
        rule("user", "key = [\"user\", \"x:tenant\"]"),
        rule("fallback", "key = [\"user|client\"]"),
        rule("when", "key = [\"client\"]\nwhen = { \"x:plan\" = \"free\", method = \"GET\" }"),
        rule(
            "override",
            "key = [\"client\"]\noverride = [{ when = { \"x:plan\" = \"gold\" }, over = \"9/10s\" }]",
        ),
        rule("get", "key = [\"client\"]\nwhen = { method = \"GET\" }"),
        rule("post", "key = [\"client\"]\nwhen = { method = \"POST\" }"),
    ]
    .concat();
    let log: String = (0..4).map(|second| line("203.0.113.9", second)).collect();
    let json = replay(&rules, &[&log], &["--json"]).json();
    let said: Vec<_> = json["rules"].as_array().unwrap().iter().collect();
    let refused: Vec<_> = said.iter().map(|rule| rule["refused"].as_u64()).collect();
    assert_eq!(refused, [None, Some(2), None, Some(2), Some(2), Some(0)], "{json}");
    assert_eq!(said[0]["not_in_log"], serde_json::json!(["user", "x:tenant"]));
    assert_eq!(said[1]["not_in_log"], serde_json::json!(["user"]));
    assert_eq!(said[2]["not_in_log"], serde_json::json!(["x:plan"]));
    assert_eq!(said[3]["overrides_not_in_log"], serde_json::json!(["x:plan"]));
    let text = replay(&rules, &[&log], &[]).out;
    for line in [
        "this log does not hold user, x:tenant; rule user was not replayed",
        "  this log does not hold user; replayed by what stands in for it",
        "this log does not hold x:plan; rule when was not replayed",
        "  this log does not hold x:plan; overrides by it were left out",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
    }
}

#[test]
fn what_tags_and_handlers_would_do_is_counted() {
    let tag = RULE.replace("throttle = {}", "tag = { header = \"x-hot\" }");
    let log: String = (0..6).map(|second| line("203.0.113.9", second)).collect();
    let run = replay(&tag, &[&log], &[]);
    assert!(run.out.contains("  matched 6, marked 4\n"), "{}", run.out);
    let handler = RULE.replace("throttle = {}", "handler = \"maze\"\nmode = \"observe\"");
    let run = replay(&handler, &[&log], &[]);
    assert!(run.out.contains("  matched 6, would have answered 4\n"), "{}", run.out);
    let json = replay(&tag, &[&log], &["--json"]).json();
    assert_eq!(
        (json["rules"][0]["acted"].as_u64(), json["rules"][0]["refused"].as_u64()),
        (Some(4), Some(0))
    );
}
