//! What the service tells of a request: asked before anything is locked.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    fmt,
};

use hotgate_detector::{Engine, Outcome, Time};
use hotgate_rules::{Extract, Facts};
use http::StatusCode;

use crate::harness::{engine, get, secs};

/// Tells the client's header as the user, and asks the engine about the same key on the way. As the
/// gate does, it asks the service once and keeps the answer.
struct Reentrant<'a> {
    engine: &'a Engine,
    now: Time,
    said: OnceCell<Option<String>>,
    asked: Cell<u32>,
}

impl fmt::Debug for Reentrant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reentrant")
    }
}

/// Tells the same without asking anybody.
#[derive(Debug)]
struct Plain;

impl Extract for Plain {
    fn user(&self) -> Option<Cow<'_, str>> {
        Some("ada".into())
    }

    fn extra(&self, _: &str) -> Option<Cow<'_, str>> {
        Some("gold".into())
    }
}

impl Reentrant<'_> {
    fn service(&self) -> Option<String> {
        self.asked.set(self.asked.get() + 1);
        let ask = get("/");
        let facts: Facts<'_> = ask.facts(&Plain);
        let decision = self.engine.decide(&facts, self.now);
        self.engine.settle(decision.charges, Outcome::Status(StatusCode::UNAUTHORIZED), self.now);
        let _ = self.engine.check("handler", &facts, self.now);
        let _ = self.engine.verdicts(self.now);
        let _ = self.engine.tick(self.now);
        Some("ada".into())
    }
}

impl Extract for Reentrant<'_> {
    fn user(&self) -> Option<Cow<'_, str>> {
        self.said.get_or_init(|| self.service()).as_deref().map(Cow::Borrowed)
    }

    fn extra(&self, _: &str) -> Option<Cow<'_, str>> {
        self.user()
    }
}

/// The key's own lines are locked while its verdict begins and while it is printed.
#[test]
fn functions_of_the_service_may_ask_the_engine_about_the_very_key_they_tell() {
    let rule = |name: &str, more: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nkey = [\"user\"]\nmissing_key = \"skip\"\nover = \"3/1m\"\n{more}\n"
        )
    };
    let rules = [
        rule("throttle", "throttle = {}"),
        rule("paced", "throttle = { pace = \"1/1s\" }\nfields = true"),
        rule(
            "block",
            "block = { for = \"1s\", extend = true }\nwhen = { \"x:plan\" = [\"gold\", \"ada\"] }",
        ),
        rule("login", "count = { status = [401] }\nblock = { for = \"1s\" }"),
        rule(
            "overridden",
            "throttle = {}\n[[rule.override]]\nwhen = { \"x:plan\" = \"gold\" }\nover = \"5/1m\"",
        ),
        rule("handler", "match = []\nthrottle = {}"),
    ];
    let memory = "[memory]\nkeys = 1\n";
    for alone in rules[..5].iter().map(String::as_str).chain([rules.concat().as_str()]) {
        let checked = if alone.contains("\"handler\"") { "" } else { &rules[5] };
        let engine = engine(&format!("{memory}{alone}{checked}"));
        for second in 0..40 {
            let now = secs(second / 4);
            let said = OnceCell::new();
            let extracted = Reentrant { engine: &engine, now, said, asked: Cell::new(0) };
            let ask = get("/");
            let decision = engine.decide(&ask.facts(&extracted), now);
            engine.settle(decision.charges, Outcome::Status(StatusCode::OK), now);
            assert!(extracted.asked.get() <= 1, "asked once at most");
        }
        let matched: u64 = engine.counts().iter().map(|counts| counts.matched).sum();
        assert!(matched >= 40, "each request asked once more: {matched} in {alone}");
    }
}
