use hotgate_cli::Status;
use serde_json::Value;

use crate::{arg, file, hotgate};

const RULES: &str = r#"
app = "shop"

[client]
source = "x-forwarded-for"
trusted_proxies = ["10.0.0.0/8"]

[exempt]
match = ["/healthz"]

[[allow]]
clients = ["198.51.100.0/24"]
rules = ["items"]

[[deny]]
clients = ["192.0.2.0/24"]

[[rule]]
name = "items"
match = "GET /items/{id}"
except = "/items/free"
key = ["client", "param:id"]
over = "10/1m"
throttle = {}

[[rule]]
name = "tokens"
key = ["header:x-token"]
missing_key = "reject"
over = "10/1m"
throttle = {}

[[rule]]
name = "agents"
key = ["agent"]
over = "10/1m"
throttle = {}

[[rule]]
name = "vip"
key = ["client"]
over = "10/1m"
throttle = {}
  [[rule.override]]
  key = ["203.0.113.0/28"]
  exempt = true
  [[rule.override]]
  key = ["203.0.113.0/24"]
  over = "3000/1m"

[[rule]]
name = "checked"
match = []
key = ["client"]
over = "10/1m"
throttle = {}

[[rule]]
name = "asleep"
key = ["client"]
over = "10/1m"
throttle = {}
mode = "off"
  [[rule.override]]
  key = ["203.0.113.77"]
  mode = "enforce"
"#;

fn explain(args: &[&str]) -> Value {
    let rules = file(RULES);
    let base = ["explain", "--json", "--rules", arg(rules.path())];
    let run = hotgate(base.iter().chain(args));
    assert_eq!(run.status, Status::Done, "{}", run.err);
    run.json()
}

/// What one rule says of the request: (applies, key, why).
fn judged(args: &[&str], rule: &str) -> (bool, Option<String>, String) {
    let json = explain(args);
    let rules = json["rules"].as_array().unwrap();
    let found = rules.iter().find(|found| found["name"] == rule).unwrap();
    let text = |member: &str| found[member].as_str().map(str::to_owned);
    (found["applies"].as_bool().unwrap(), text("key"), text("why").unwrap_or_default())
}

#[test]
fn a_rule_that_applies_is_said_with_its_key() {
    let (applies, key, why) = judged(&["GET /items/a%2Cb?x=1", "--peer", "203.0.114.9"], "items");
    assert!(applies, "{why}");
    assert_eq!(key.as_deref(), Some("client=203.0.114.9,param:id=a%2Cb"));
}

#[test]
fn a_rule_that_does_not_apply_says_why() {
    let peer = "203.0.114.9";
    let table = [
        (
            "POST /items/1",
            peer,
            "items",
            "the path matches \"GET /items/{id}\", the method does not",
        ),
        ("GET /other", peer, "items", "no pattern of match has this path"),
        ("GET /items/free", peer, "items", "except = \"/items/free\" matches"),
        ("GET /healthz", peer, "agents", "[exempt] matches"),
        ("GET /items/1", "192.0.2.1", "items", "[[deny]] refuses the client before all rules"),
        ("GET /items/1", "198.51.100.1", "items", "[[allow]] lets the client past this rule"),
        (
            "GET /",
            peer,
            "agents",
            "the request lacks a part of the key agent, and missing_key is \"skip\"",
        ),
        ("GET /", "203.0.113.1", "vip", "an override exempts the key"),
        ("GET /", peer, "checked", "match = []: only handlers ask it"),
        ("GET /", peer, "asleep", "mode = \"off\""),
    ];
    for (request, peer, rule, expected) in table {
        let (applies, _, why) = judged(&[request, "--peer", peer], rule);
        assert_eq!((applies, &*why), (false, expected), "{request} {peer} {rule}");
    }
}

#[test]
fn a_rule_that_is_off_applies_to_the_keys_it_is_enforced_for() {
    let (applies, key, why) = judged(&["GET /", "--peer", "203.0.113.77"], "asleep");
    assert!(applies);
    assert_eq!(key.as_deref(), Some("client=203.0.113.77"));
    assert_eq!(why, "an override gives the key other terms: mode enforce");
}

#[test]
fn a_rule_that_applies_on_other_terms_says_them() {
    let (applies, _, why) = judged(&["GET /", "--peer", "203.0.113.99"], "vip");
    assert!(applies);
    assert_eq!(why, "an override gives the key other terms: limit 3000");
    let (applies, key, why) = judged(&["GET /"], "tokens");
    assert!(applies, "missing_key = \"reject\" refuses, so the rule applies");
    assert_eq!(key, None);
    assert_eq!(
        why,
        "the request lacks a part of the key header:x-token, which is refused with 400"
    );
}

#[test]
fn in_a_file_that_observes_a_denied_request_goes_on_to_the_rules() {
    let rules = file(format!("mode = \"observe\"\n{RULES}"));
    let args = ["explain", "--json", "--rules", arg(rules.path()), "GET /", "--peer", "192.0.2.1"];
    let json = hotgate(args).json();
    let vip = json["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "vip");
    assert_eq!(vip.unwrap()["applies"], true, "{json}");
    assert_eq!(json["notes"][1], "[[deny]] would refuse the client before all rules");
}

#[test]
fn who_the_client_is_and_how_it_was_found() {
    let xff = "X-Forwarded-For: 198.51.100.7, 203.0.113.9";
    let table = [
        (
            &["GET /", "--peer", "10.0.0.1", "-H", xff][..],
            Some("203.0.113.9"),
            "named by x-forwarded-for",
        ),
        (
            &["GET /", "--peer", "192.0.2.1", "-H", xff],
            Some("192.0.2.1"),
            "the peer, which is not trusted",
        ),
        (&["GET /", "--peer", "10.0.0.1"], Some("10.0.0.1"), "the peer, which is trusted, but"),
        (&["GET /", "-H", xff], None, "as no --peer is given"),
        (&["GET /", "--peer", "unix", "-H", xff], None, "as the peer is a unix socket"),
        (
            &["GET /", "--peer", "10.0.0.1", "-H", "x-forwarded-for: 203.0.113.9, junk"],
            Some("10.0.0.1"),
            "the peer, which is trusted, but x-forwarded-for names no other client; a hop of it",
        ),
        (
            &["GET /", "--peer", "127.0.0.1", "-H", xff],
            Some("127.0.0.1"),
            "the peer, which is not trusted",
        ),
    ];
    for (args, client, how) in table {
        let json = explain(args);
        assert_eq!(json["client"].as_str(), client, "{args:?}");
        let found = json["client_how"].as_str().unwrap();
        assert!(found.starts_with(how), "{args:?}: {found}");
    }
}

#[test]
fn the_text_names_the_request_the_client_and_every_rule() {
    let rules = file(RULES);
    let run = hotgate([
        "explain",
        "--rules",
        arg(rules.path()),
        "GET /items//7",
        "--peer",
        "203.0.114.9",
    ]);
    assert_eq!(run.status, Status::Done);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines[0], "request: GET /items//7");
    assert_eq!(lines[1], "  its path is also matched as /items/7");
    assert!(lines[2].starts_with("client: 203.0.114.9, the peer"), "{}", lines[2]);
    let items = lines.iter().position(|line| line.starts_with("items: ")).unwrap();
    assert!(lines[items].ends_with("(sustained: 10 a minute), the rest 429"), "{}", lines[items]);
    assert_eq!(lines[items + 1], "  applies, key client=203.0.114.9,param:id=7");
}

#[test]
fn a_request_header_or_peer_that_cannot_be_read_is_bad_usage() {
    let rules = file(RULES);
    for args in [
        &["/items/1"][..],
        &["GET items"],
        &["GET /", "--peer", "10.0.0.1:80"],
        &["GET /", "-H", "x"],
    ] {
        let run = hotgate(["explain", "--rules", arg(rules.path())].iter().chain(args));
        assert_eq!(run.status, Status::Usage, "{args:?}");
        assert!(run.err.contains("expected"), "{args:?}: {}", run.err);
    }
}

const SERVICE: &str = r#"
app = "shop"

[[rule]]
name = "plan"
when = { "x:plan" = ["free", "trial"] }
key = ["user|client"]
over = "10/1m"
block = { for = "15m" }
show_key = true
  [[rule.override]]
  when = { user = "ada" }
  block.for = "1h"
  [[rule.override]]
  when = { "x:plan" = "trial" }
  exempt = true

[[rule]]
name = "sale"
key = ["client"]
over = "5/1m"
throttle = {}
from = 2026-11-27T00:00:00Z
until = 2026-11-30T00:00:00Z
"#;

fn judged_by(rules: &str, args: &[&str], rule: &str) -> (bool, Option<String>, String) {
    let rules = file(rules);
    let base =
        ["explain", "--json", "--rules", arg(rules.path()), "GET /", "--peer", "203.0.113.9"];
    let run = hotgate(base.iter().chain(args));
    assert_eq!(run.status, Status::Done, "{}", run.err);
    let json = run.json();
    let found = json["rules"].as_array().unwrap().iter().find(|found| found["name"] == rule);
    let found = found.unwrap();
    let text = |member: &str| found[member].as_str().map(str::to_owned);
    (found["applies"].as_bool().unwrap(), text("key"), text("why").unwrap_or_default())
}

#[test]
fn what_the_service_would_say_can_be_given() {
    let plan = |args: &[&str]| judged_by(SERVICE, args, "plan");
    let unmet = "it asks that x:plan is free or trial; --x plan=VALUE says what the service would";
    assert_eq!(plan(&[]), (false, None, unmet.to_owned()));
    assert_eq!(plan(&["--x", "plan=gold"]), (false, None, unmet.to_owned()));
    let (applies, key, why) = plan(&["--x", "plan=free"]);
    assert_eq!((applies, key.as_deref(), &*why), (true, Some("client=203.0.113.9"), ""));
    let (applies, key, why) = plan(&["--x", "plan=free", "--user", "ada"]);
    assert_eq!((applies, key.as_deref()), (true, Some("user=ada")));
    assert_eq!(why, "an override as user is ada: hot requests block for 1h with 403");
    let (applies, _, why) = plan(&["--x", "a=b", "--x", "plan=trial"]);
    assert_eq!((applies, &*why), (false, "an override exempts such requests"));
    let rules = file(SERVICE);
    let run = hotgate(["explain", "--rules", arg(rules.path()), "GET /", "--x", "plan"]);
    assert_eq!(run.status, Status::Usage);
    assert!(run.err.contains("expected NAME=VALUE"), "{}", run.err);
}

#[test]
fn a_rule_for_a_time_is_judged_at_the_time_that_is_given() {
    for (at, applies, expected) in [
        ("2026-11-26T23:59:59Z", false, "it is off until 2026-11-27T00:00:00Z"),
        ("2026-11-27T01:00:00+01:00", true, ""),
        ("2026-11-30T00:00:00Z", false, "it is off since 2026-11-30T00:00:00Z"),
    ] {
        let (on, _, why) = judged_by(SERVICE, &["--at", at], "sale");
        assert_eq!((on, &*why), (applies, expected), "{at}");
    }
}
