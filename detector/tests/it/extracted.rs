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
