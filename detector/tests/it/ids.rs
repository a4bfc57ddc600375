//! Decision ids: who reads them, and what they lead to.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use hotgate_detector::{Cause, Config, DecisionId, Engine};

use crate::harness::{Ask, CONFIG, engine, get, ms, post, rule_set, secs};

const EVERY_CAUSE: &str = r#"
    [[deny]]
    clients = ["198.51.100.0/24"]
    [[rule]]
    name = "quota"
    match = "/quota"
    key = ["client"]
    over = "1/1h"
    throttle = {}
    [[rule]]
    name = "blocked"
    match = "/blocked"
    key = ["client"]
    over = "1/1h"
    block = { for = "1h" }
    [[rule]]
    name = "always"
    match = "/always"
    key = []
    always = true
    block = {}
    [[rule]]
    name = "pending"
    match = "POST /login"
    key = ["client"]
    count = { status = [401], pending = 1 }
    over = "5/1h"
    throttle = {}
    [[rule]]
    name = "theirs"
    match = "/theirs"
    key = ["header:x-api-key"]
    missing_key = "reject"
    over = "5/1h"
    throttle = {}
    [[rule]]
    name = "ours"
    match = "/ours"
    key = ["client"]
    missing_key = "reject"
    over = "5/1h"
    throttle = {}
"#;

fn refused(engine: &Engine, ask: &Ask<'_>) -> DecisionId {
    let found = (0..3).find_map(|_| ask.decide(engine, secs(7)).refusal);
    found.expect("the third is refused at the latest").id()
}

/// What each cause's id leads to, by the rule that answered.
fn asked(engine: &Engine) -> Vec<(Option<&'static str>, Cause, DecisionId)> {
    let by = |rule, cause, ask: Ask<'_>| (rule, cause, refused(engine, &ask));
    vec![
        by(None, Cause::Denied, get("/").from("198.51.100.1")),
        by(Some("quota"), Cause::Quota, get("/quota")),
        by(Some("blocked"), Cause::Blocked, get("/blocked")),
        by(Some("always"), Cause::Always, get("/always")),
        by(Some("pending"), Cause::Pending, post("/login")),
        by(Some("theirs"), Cause::MissingKey { by_client: true }, get("/theirs")),
        by(Some("ours"), Cause::MissingKey { by_client: false }, get("/ours").from("none")),
    ]
}

#[test]
fn an_id_leads_to_its_refusal_whatever_the_cause() {
    let engine = engine(EVERY_CAUSE);
    for (rule, cause, id) in asked(&engine) {
        let id: DecisionId = id.to_string().parse().unwrap();
        let found = engine.refusal_of(id, secs(8)).expect("an id of this process");
        assert_eq!((found.at, found.cause), (secs(7), cause));
        let name = found.index.map(|index| &*engine.rules().rules()[index].name);
        assert_eq!(name, rule, "the rule that answered for {cause:?}");
        let counts = !matches!(cause, Cause::Denied | Cause::Always | Cause::MissingKey { .. });
        let state = found.rule;
        assert_eq!(state.is_some(), counts, "{cause:?} has a key that is counted, or none");
        if let Some(state) = state {
            assert_eq!(Some(&*state.rule), rule);
            assert_eq!(state.verdict.is_some(), !state.key.is_empty(), "a verdict tells the key");
        }
    }
}

#[test]
fn an_id_leads_to_the_rule_of_its_name_through_every_reload() {
    let first = engine(EVERY_CAUSE);
    let ids = asked(&first);
    let rules: Vec<&str> = EVERY_CAUSE.split("[[rule]]").collect();
    let with = |order: &[usize]| {
        let each = order.iter().map(|at| format!("[[rule]]{}", rules[*at]));
        rule_set(&each.collect::<String>())
    };
    let turned = first.succeed(with(&[6, 5, 4, 3, 2, 1]), secs(8));
    let fewer = turned.succeed(with(&[4, 2]), secs(8));
    let back = fewer.succeed(with(&[1, 2, 3, 4, 5, 6]), secs(8));
    for (rule, cause, id) in ids {
        let name = |engine: &Engine| {
            let found = engine.refusal_of(id, secs(9)).expect("still an id of this process");
            assert_eq!(found.cause, cause);
            let state = found.rule.map(|state| state.rule.to_string());
            let name = found.index.map(|index| engine.rules().rules()[index].name.to_string());
            assert!(state.is_none() || state == name, "{state:?} is of {name:?}");
            name
        };
        assert_eq!(name(&turned).as_deref(), rule, "the same rule at another place");
        let stayed = rule.filter(|rule| ["pending", "blocked"].contains(rule));
        assert_eq!(name(&fewer).as_deref(), stayed, "none where the rule has gone");
        assert_eq!(name(&back).as_deref(), stayed, "one that came back is another rule");
    }
}

#[test]
fn a_rules_mark_is_its_own_for_hundreds_of_reloads() {
    let set = |n: u64| {
        rule_set(&format!(
            "[[rule]]\nname = \"all\"\nkey = []\nalways = true\nblock = {{}}\n\
             [[rule]]\nname = \"r{n}\"\nkey = []\nalways = true\nthrottle = {{}}"
        ))
    };
    let mut engine = engine(EVERY_CAUSE).succeed(set(0), secs(1));
    let id = get("/").decide(&engine, secs(1)).refusal.unwrap().id();
    for n in 1..2_000 {
        engine = engine.succeed(set(n), secs(1));
        let found = engine.refusal_of(id, secs(2)).expect("an id of this process");
        assert_eq!(found.index, Some(0), "the rule of its name after {n} reloads");
    }
}

#[test]
fn a_million_ids_from_eight_threads_are_all_different() {
    let engine = engine("[[rule]]\nname = \"all\"\nkey = []\nalways = true\nblock = {}");
    let clock = AtomicU64::new(0);
    // A thousand of one key in each millisecond, from threads that lag behind now and then.
    let now = || ms(clock.fetch_add(1, Relaxed) / 1_000);
    let id = || get("/").decide(&engine, now()).refusal.unwrap().id().to_string();
    let ids = || (0..125_000).map(|_| id()).collect::<Vec<_>>();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ids)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let number = ids.len();
    assert_eq!(number, 1_000_000);
    assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), number, "each names one refusal");
}

#[test]
fn an_id_says_nothing_to_another_process_and_none_can_be_made_up() {
    let rules = "[[rule]]\nname = \"all\"\nkey = []\nalways = true\nblock = {}";
    let own = engine(rules);
    let day = secs(86_400);
    let other = Config { table_seed: [1, 2, 3, 5], ..CONFIG };
    let secret = Config { privacy_secret: [8; 16], ..CONFIG };
    let others = [other, secret].map(|config| Engine::new(rule_set(rules), config));
    let (mut opened, mut number) = (0_u32, 0_usize);
    for _ in 0..20_000 {
        let id = get("/").decide(&own, day).refusal.unwrap().id();
        assert!(own.refusal_of(id, day).is_some(), "its own process reads it");
        assert!(own.refusal_of(id, secs(86_390)).is_none(), "not before it was given");
        for other in &others {
            number += 1;
            opened += u32::from(other.refusal_of(id, day).is_some());
        }
        // Its every bit counts.
        let text = id.to_string();
        let at = [0, 7, 15, 20, 24, 35][number / 2 % 6];
        let digit = u32::from_str_radix(&text[at..=at], 16).unwrap();
        let changed = format!("{}{:x}{}", &text[..at], digit ^ 1, &text[at + 1..]);
        let changed: DecisionId = changed.parse().unwrap();
        number += 1;
        opened += u32::from(own.refusal_of(changed, day).is_some());
    }
    // One in 100,000 of all names is of a time that was, and of a cause and a rule that are.
    assert!(opened <= 4, "{opened} of {number} led anywhere");
}
