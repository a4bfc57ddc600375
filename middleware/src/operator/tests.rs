use std::{fmt::Debug, net::IpAddr, sync::Arc, time::Duration};

use hotgate_rules::Peer;
use http::{Method, Request, StatusCode};
use quanta::Mock;
use serde_json::{Value, json};

use super::{error::LISTS_MAX, *};
use crate::{
    Decision, Gate, PeerAddr, admission::Admission, control::Control, mark::Place, worker::Worker,
};

const MINUTE: Duration = Duration::from_secs(60);

/// A limit of two a minute by client, a block after two, and one by a header that is not shown.
const RULES: &str = r#"
[[rule]]
name = "api"
match = "/api"
key = ["client"]
over = "2/1m"
throttle = {}
note = "the plan's quota"
[[rule]]
name = "login"
match = "POST /login"
key = ["client"]
over = "2/1m"
block = { for = "15m" }
[[rule]]
name = "keys"
match = "/keys"
key = ["header:x-key"]
missing_key = "skip"
over = "2/1m"
block = { for = "15m" }
"#;

struct Fixture {
    gate: Gate,
    clock: Arc<Mock>,
    _worker: Worker,
}

impl Fixture {
    fn new(more: &str) -> Self {
        let rules = format!("app = \"shop\"\n{more}{RULES}").parse().unwrap();
        let (clock, mock) = quanta::Clock::mock();
        let (gate, worker) = Gate::builder().rules(rules).peer(PeerAddr::of).pair(clock).unwrap();
        Fixture { gate, clock: mock, _worker: worker }
    }

    /// What the gate answers a request of 203.0.113.`client`: `None` if it passes.
    fn refused(&self, method: Method, path: &str, client: u8) -> Option<Decision> {
        let request = Request::builder().method(method).uri(path).header("x-key", "s3cret");
        let peer = PeerAddr(Peer::Ip(IpAddr::from([203, 0, 113, client])));
        let mut parts = request.extension(peer).body(()).unwrap().into_parts().0;
        match self.gate.admit(Place::Outer, &mut parts) {
            Admission::Answered(mut response) => response.extensions_mut().remove(),
            Admission::Admitted(_) => None,
        }
    }

    fn status(&self, client: u8) -> Option<StatusCode> {
        Some(self.refused(Method::GET, "/api", client)?.refusal?.status)
    }

    fn wait(&self, time: Duration) {
        self.clock.increment(time);
    }
}

fn as_json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn error<T: Debug>(result: Result<T, CommandError>) -> String {
    result.unwrap_err().to_string()
}

const FORBIDDEN: Option<StatusCode> = Some(StatusCode::FORBIDDEN);
const TOO_MANY: Option<StatusCode> = Some(StatusCode::TOO_MANY_REQUESTS);

#[test]
fn the_kill_switch_by_command_is_in_force_at_once_and_can_be_taken_back() {
    let it = Fixture::new("");
    assert_eq!([1, 1, 1].map(|client| it.status(client)), [None, None, TOO_MANY]);
    let change = it.gate.set_mode(None, Mode::Observe).unwrap();
    assert_eq!((change.mode, change.held_by), (Mode::Observe, None));
    assert_eq!(it.status(1), None, "observe refuses nobody, from the next request on");
    let snapshot = it.gate.snapshot();
    assert_eq!(snapshot.rules[0].requests.would_refuse, 1, "it still counts");
    assert_eq!(snapshot.mode.commanded, Some(Mode::Observe));
    assert!(it.gate.hot(None, 9).unwrap().keys[0].observed, "its verdict refuses nobody now");

    it.gate.set_mode(None, Mode::Enforce).unwrap();
    assert_eq!(it.status(1), TOO_MANY, "the counts went on meanwhile");
    it.gate.set_mode(Some("api"), Mode::Off).unwrap();
    assert_eq!(it.status(1), None, "one rule is off");
    assert_eq!(it.gate.snapshot().rules[0].mode, Mode::Off);
    assert_eq!(it.gate.snapshot().rules[1].mode, Mode::Enforce);
}

#[test]
fn a_command_raises_no_mode_above_the_files_and_says_what_holds_it() {
    let it = Fixture::new("mode = \"observe\"\n");
    let change = as_json(it.gate.set_mode(None, Mode::Enforce).unwrap());
    let expected = json!({
        "rule": null, "commanded": "enforce", "mode": "observe",
        "held_by": "mode = \"observe\" of the file",
    });
    assert_eq!(change, expected);
    it.gate.set_mode(None, Mode::Off).unwrap();
    let change = it.gate.set_mode(Some("api"), Mode::Observe).unwrap();
    assert_eq!(change.mode, Mode::Off);
    assert_eq!(change.held_by.as_deref(), Some("the command \"mode off\" for all rules"));
    assert_eq!(
        error(it.gate.set_mode(Some("apy"), Mode::Off)),
        "no rule is named \"apy\", expected one of api, login, keys"
    );
}

#[test]
fn a_denied_network_is_refused_at_once_and_until_its_end() {
    let it = Fixture::new("");
    let entry = it.gate.deny("203.0.113.0/24", MINUTE, Some("scraper")).unwrap();
    assert_eq!((entry.seconds_left, entry.outweighed_by), (Some(60), None));
    assert_eq!(it.status(1), FORBIDDEN);
    it.gate.allow("203.0.113.7", MINUTE, None).unwrap();
    assert_eq!([7, 7, 7, 8].map(|client| it.status(client)), [None, None, None, FORBIDDEN]);
    it.wait(MINUTE - Duration::from_millis(1));
    assert_eq!(it.status(1), FORBIDDEN, "it lasts to its end");
    it.wait(Duration::from_millis(1));
    assert_eq!(it.status(1), None, "and no longer");
    assert_eq!(it.gate.snapshot().lists.len(), 0, "what has ended is not shown");
}

#[test]
fn the_last_command_about_a_network_holds_and_a_tie_with_the_file_denies() {
    let it = Fixture::new("[[deny]]\nclients = [\"203.0.113.9\"]\nnote = \"the file\"\n");
    it.gate.deny("203.0.113.1", MINUTE, None).unwrap();
    it.gate.allow("::ffff:203.0.113.1", MINUTE, None).unwrap();
    assert_eq!(it.status(1), None);
    assert_eq!(it.gate.snapshot().lists.len(), 1, "the same network has one entry");

    let entry = it.gate.allow("203.0.113.9", MINUTE, None).unwrap();
    let outweighed = entry.outweighed_by.as_deref();
    assert_eq!(outweighed, Some("[[deny]] of 203.0.113.9/32 in the file"));
    assert_eq!(it.status(9), FORBIDDEN);
    let why = as_json(it.gate.why("203.0.113.9").unwrap());
    assert_eq!(why["lists"][0]["list"], "allow");
    assert_eq!(why["lists"][1]["list"], "deny");
    assert_eq!(why["lists"][1]["note"], "the file");
    assert_eq!(why["lists"][1]["since"], Value::Null, "it stands in the file");
}

#[test]
fn lists_by_command_are_bounded_and_those_that_ended_make_room() {
    let it = Fixture::new("[memory]\nkeys = 64\nverdicts = 64\n");
    let deny =
        |at: usize, lasts| it.gate.deny(&format!("10.0.{}.{}", at / 256, at % 256), lasts, None);
    for at in 0..LISTS_MAX {
        deny(at, MINUTE).unwrap();
    }
    assert_eq!(deny(LISTS_MAX, MINUTE).unwrap_err(), CommandError::ListsFull);
    assert_eq!(it.gate.snapshot().lists.len(), LISTS_MAX);
    deny(0, 2 * MINUTE).expect("a network that is listed already takes no room");
    it.wait(MINUTE);
    deny(LISTS_MAX, MINUTE).expect("those that have ended are forgotten");
    assert_eq!(it.gate.snapshot().lists.len(), 2);
    assert_eq!(it.gate.shared().control().record.lists.len(), 2, "forgotten, not only hidden");
}

#[test]
fn what_cannot_be_done_says_what_was_expected_and_changes_nothing() {
    let it = Fixture::new("");
    let before = it.gate.snapshot().rules.len();
    for (said, expected) in [
        (
            error(it.gate.deny("203.0.113.9/24", MINUTE, None)),
            "expected no bits beyond the prefix, such as 203.0.113.0/24, found \"203.0.113.9/24\"",
        ),
        (
            error(it.gate.deny("10.0.0.0/8", Duration::ZERO, None)),
            "expected a time from 1ms to 3650d, not 0s",
        ),
        (
            error(it.gate.allow("10.0.0.0/8", Duration::MAX, None)),
            "expected a time from 1ms to 3650d, not ",
        ),
        (
            error(it.gate.deny("10.0.0.0/8", MINUTE, Some(&"x".repeat(513)))),
            "expected a note of at most 512 bytes, not 513",
        ),
        (
            error(it.gate.block("nope", "203.0.113.9", MINUTE)),
            "no rule is named \"nope\", expected one of api, login, keys",
        ),
        (error(it.gate.block("api", "user=7", MINUTE)), "not a key of this rule"),
        (
            error(it.gate.lift_all_rules("user=7")),
            "no rule has such a key, expected the parts of one: client or header:x-key",
        ),
        (
            error(it.gate.why("user=7")),
            "no rule has such a key, expected the parts of one: client or header:x-key",
        ),
        (
            error(it.gate.why("1b4e28ba-2fa1-8a2e-883f-0016d3cca427")),
            "this process gave no refusal that id",
        ),
    ] {
        assert!(said.starts_with(expected), "{said}\nexpected {expected}");
    }
    let after = it.gate.snapshot();
    assert_eq!((after.rules.len(), after.lists.len()), (before, 0));
    assert_eq!(it.gate.hot(None, 9).unwrap().standing, 0);
}

#[test]
fn a_block_by_hand_stands_until_it_is_lifted() {
    let it = Fixture::new("");
    let blocked = it.gate.block("api", "203.0.113.1", MINUTE).unwrap();
    assert_eq!((&*blocked.key, blocked.observed), ("client=203.0.113.1", false));
    assert_eq!(it.status(1), FORBIDDEN);
    let verdict = it.gate.verdict("api", "client=203.0.113.1").unwrap().expect("it stands");
    assert_eq!((verdict.by, verdict.seconds_left), (By::Operator, 60));
    assert_eq!(it.gate.lift("api", "client=203.0.113.1").unwrap().lifted, 1);
    assert_eq!(
        [1, 1, 1].map(|client| it.status(client)),
        [None, None, TOO_MANY],
        "N pass after it"
    );
    assert!(it.gate.verdict("api", "203.0.113.2").unwrap().is_none());
}

#[test]
fn lifting_takes_one_key_under_all_rules_or_one_rule_for_all_keys() {
    let it = Fixture::new("");
    for client in [1, 2] {
        for rule in ["api", "login"] {
            it.gate.block(rule, &format!("203.0.113.{client}"), MINUTE).unwrap();
        }
    }
    let lifted = it.gate.lift_all_rules("203.0.113.1").unwrap();
    assert_eq!((lifted.rules, lifted.lifted), (vec!["api".to_owned(), "login".to_owned()], 2));
    assert_eq!((it.status(1), it.status(2)), (None, FORBIDDEN));
    let lifted = it.gate.lift_rule("api").unwrap();
    assert_eq!((lifted.key, lifted.lifted), (None, 1));
    assert_eq!(it.status(2), None);
    assert!(it.refused(Method::POST, "/login", 2).is_some(), "the other rule's block stands");
}

#[test]
fn the_newest_hot_key_comes_first_and_the_number_is_told_beyond_those_shown() {
    let it = Fixture::new("");
    for client in [1, 2, 3] {
        it.wait(Duration::from_secs(1));
        it.gate.block("api", &format!("203.0.113.{client}"), MINUTE).unwrap();
    }
    let hot = it.gate.hot(Some("api"), 2).unwrap();
    let keys: Vec<&str> = hot.keys.iter().map(|key| &*key.key).collect();
    assert_eq!((hot.standing, &*keys), (3, &["client=203.0.113.3", "client=203.0.113.2"][..]));
    assert_eq!(it.gate.hot(Some("login"), 2).unwrap().standing, 0);
    assert!(error(it.gate.hot(Some("nope"), 2)).starts_with("no rule is named"));
}

#[test]
fn why_tells_every_rules_state_for_a_key() {
    let it = Fixture::new("");
    assert_eq!([1, 1, 1].map(|client| it.status(client)), [None, None, TOO_MANY]);
    it.wait(Duration::from_secs(20));
    let why = as_json(it.gate.why("client=203.0.113.1").unwrap());
    assert_eq!(why["refusal"], Value::Null);
    let api = &why["rules"][0];
    assert_eq!(api["verdict"]["by"], "automatic");
    for (field, expected) in [
        ("rule", json!("api")),
        ("action", json!("throttle")),
        ("key", json!("client=203.0.113.1")),
        ("state", json!("hot")),
        ("counts", json!("admitted")),
        ("count", json!(2)),
        ("limit", json!(2)),
        ("window", json!("1m")),
        ("full_seconds_left", json!(40)),
        ("mode", json!("enforce")),
        ("note", json!("the plan's quota")),
    ] {
        assert_eq!(api[field], expected, "{field}");
    }
    assert_eq!(why["rules"][1]["state"], "quiet", "the login knows nothing of it");
    assert_eq!(why["rules"].as_array().unwrap().len(), 2, "a rule by another key has no say");
}

#[test]
fn a_decision_id_tells_the_refusal_and_the_state_of_its_key_now() {
    let it = Fixture::new("");
    let refusal = [1, 1, 1].map(|client| it.refused(Method::POST, "/login", client));
    let id = refusal[2].as_ref().unwrap().refusal.as_ref().unwrap().id();
    it.wait(MINUTE);
    for id in [id.to_string(), format!("urn:uuid:{id}")] {
        let why = as_json(it.gate.why(&id).unwrap());
        assert_eq!(why["refusal"]["cause"], "blocked");
        assert_eq!(why["refusal"]["rule"], "login");
        assert_eq!(why["refusal"]["rules_changed"], false);
        let login = why["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "login");
        assert_eq!(login.unwrap()["key"], "client=203.0.113.1");
        assert_eq!(login.unwrap()["verdict"]["seconds_left"], 840);
    }
    it.gate.lift_all_rules("203.0.113.1").unwrap();
    let why = it.gate.why(&id.to_string()).unwrap();
    assert_eq!(why.rules[0].state, KeyState::Quiet, "as it stands now");

    it.gate.deny("203.0.113.4", MINUTE, None).unwrap();
    let denied = it.refused(Method::GET, "/", 4).unwrap().refusal.unwrap().id();
    let why = as_json(it.gate.why(&denied.to_string()).unwrap());
    assert_eq!(
        (&why["refusal"]["cause"], &why["refusal"]["rule"]),
        (&json!("denied"), &Value::Null)
    );
}

#[test]
fn a_key_that_is_not_shown_is_shown_nowhere() {
    let it = Fixture::new("");
    let shows = |what: String| assert!(!what.contains("s3cret"), "{what}");
    let blocked = it.gate.block("keys", "header:x-key=s3cret", MINUTE).unwrap();
    assert!(blocked.key.starts_with("header:x-key=#"), "{}", blocked.key);
    shows(as_json(&blocked).to_string());
    assert!(it.refused(Method::GET, "/keys", 1).is_some(), "it is the key that was meant");
    shows(as_json(it.gate.hot(None, 9).unwrap()).to_string());
    shows(as_json(it.gate.why("header:x-key=s3cret").unwrap()).to_string());
    shows(format!("{:?}", it.gate.lift("keys", &blocked.key).unwrap()));
    assert!(it.refused(Method::GET, "/keys", 1).is_none(), "its printed form lifts it");
}

#[test]
fn the_modes_of_rules_that_went_do_not_pile_up() {
    let it = Fixture::new("");
    let mut control = it.gate.shared().control();
    let Control { commands, record, .. } = &mut *control;
    for at in 0..2_000 {
        let name = format!("rule-{at}");
        record.rule_mode(commands, &name, |_| false, hotgate_detector::Time::default());
        commands.rule_modes.insert(name.into(), Mode::Off);
    }
    assert!(record.rule_modes.len() <= 256 && commands.rule_modes.len() <= 256);
}

#[test]
fn the_fields_of_a_snapshot_are_stable() {
    let it = Fixture::new("");
    it.gate.deny("10.0.0.0/8", MINUTE, Some("why not")).unwrap();
    let snapshot = as_json(it.gate.snapshot());
    let names = |value: &Value| {
        let mut names: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(
        names(&snapshot),
        "app denied file lists mode notices reload rules since started version"
    );
    assert_eq!(names(&snapshot["mode"]), "commanded commanded_at environment file mode");
    assert_eq!(
        names(&snapshot["rules"][0]),
        "action commanded key losses mode name note over requests verdicts"
    );
    assert_eq!(names(&snapshot["rules"][0]["requests"]), "admitted refused unkeyed would_refuse");
    assert_eq!(names(&snapshot["lists"][0]), "clients list note seconds_left since until");
    assert_eq!(snapshot["version"], json!(it.gate.version()));
    assert_eq!(it.gate.version().len(), 12);
}
