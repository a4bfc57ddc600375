//! An engine made from rule text, and requests in one line each.

use hotgate_detector::{Config, Decision, Engine, Outcome, Time};
use hotgate_rules::{Extract, Facts, RequestPath, RuleSet};
use http::{HeaderMap, Method, StatusCode};

pub(crate) const CONFIG: Config =
    Config { table_seed: [1, 2, 3, 4], privacy_secret: [7; 16], origin_unix_nanos: 0 };

pub(crate) fn rule_set(rules: &str) -> RuleSet {
    let text = format!("app = \"test\"\n{rules}");
    text.parse().unwrap_or_else(|problems| panic!("{problems}\nin\n{text}"))
}

pub(crate) fn engine(rules: &str) -> Engine {
    Engine::new(rule_set(rules), CONFIG)
}

/// One rule by client for all requests, with this limit and this action.
pub(crate) fn rule(over: &str, action: &str) -> Engine {
    engine(&format!("[[rule]]\nname = \"all\"\nkey = [\"client\"]\nover = \"{over}\"\n{action}"))
}

pub(crate) fn throttle(over: &str) -> Engine {
    rule(over, "throttle = {}")
}

pub(crate) fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

pub(crate) fn secs(secs: u64) -> Time {
    ms(secs * 1_000)
}

/// One request.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) client: &'a str,
    pub(crate) headers: HeaderMap,
}

pub(crate) fn get(path: &str) -> Ask<'_> {
    Ask { method: Method::GET, path, client: "203.0.113.9", headers: HeaderMap::new() }
}

pub(crate) fn post(path: &str) -> Ask<'_> {
    Ask { method: Method::POST, ..get(path) }
}

impl<'a> Ask<'a> {
    pub(crate) fn from(self, client: &'a str) -> Self {
        Ask { client, ..self }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.append(name, http::HeaderValue::from_static(value));
        self
    }

    pub(crate) fn decide(&self, engine: &Engine, now: Time) -> Decision {
        engine.decide(&self.facts(&()), now)
    }

    pub(crate) fn facts<'f>(&'f self, extracted: &'f dyn Extract) -> Facts<'f> {
        Facts {
            method: Some(&self.method),
            path: RequestPath::new(self.path),
            query: None,
            host: None,
            headers: &self.headers,
            route: None,
            client: self.client.parse().ok(),
            extracted,
        }
    }

    /// Decides, and settles with a status at once where the request is admitted; whether it was.
    pub(crate) fn answered(&self, engine: &Engine, status: u16, now: Time) -> bool {
        let decision = self.decide(engine, now);
        let outcome = Outcome::Status(StatusCode::from_u16(status).unwrap());
        engine.settle(decision.charges, outcome, now);
        decision.refusal.is_none()
    }

    pub(crate) fn passes(&self, engine: &Engine, now: Time) -> bool {
        self.answered(engine, 200, now)
    }
}
