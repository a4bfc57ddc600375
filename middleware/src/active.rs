//! One version of the rules, with all that requests need of it.

use hotgate_detector::{Cause, Door, Engine, Refusal};
use hotgate_rules::{Action, Mode, PartKind, Rule, RuleSet};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{counters::Meaning, needs::Bodies, respond::OwnAnswer};

/// The rules in force. Nothing in it changes: other rules are another one of these.
pub(crate) struct Active {
    pub(crate) engine: Engine,
    /// At the only door, the outer and the inner one.
    asks: [Asks; 3],
    /// The header fields that rules mark requests with.
    tags: Box<[HeaderName]>,
    rules: Box<[OfRule]>,
    meanings: Box<[Meaning]>,
}

/// What requests need of one rule.
struct OfRule {
    /// Its name, as tags have it.
    name: HeaderValue,
    respond: Option<OwnAnswer>,
}

/// Which facts the rules of a door ask for, beside what every request has: what no rule asks is not
/// looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks {
    pub(crate) client: bool,
    pub(crate) host: bool,
    pub(crate) route: bool,
    /// `user` and `x:`.
    pub(crate) extracted: bool,
}

impl Active {
    pub(crate) fn new(engine: Engine, bodies: &Bodies) -> Self {
        let rules = engine.rules();
        let asks = [Door::Only, Door::Outer, Door::Inner].map(|door| Asks::at(door, rules));
        let of_rule = |rule: &Rule| OfRule {
            name: HeaderValue::from_str(&rule.name)
                .expect("a name is of letters, digits and dashes"),
            respond: rule.respond.as_ref().map(|respond| OwnAnswer::new(respond, bodies)),
        };
        let meaning = |(index, rule): (usize, &Rule)| {
            (rules.identity(index), rule.action.name(), rule.missing_key)
        };
        let meanings = rules.rules().iter().enumerate().map(meaning).collect();
        let of_rules = rules.rules().iter().map(of_rule).collect();
        let mut tags: Vec<_> = rules.rules().iter().flat_map(tags).cloned().collect();
        tags.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        tags.dedup();
        Active { asks, tags: tags.into(), rules: of_rules, meanings, engine }
    }

    /// How the counts of each rule are to be read.
    pub(crate) fn meanings(&self) -> impl Iterator<Item = Meaning> {
        self.meanings.iter().copied()
    }

    pub(crate) fn asks(&self, door: Door) -> Asks {
        match door {
            Door::Only => self.asks[0],
            Door::Outer => self.asks[1],
            Door::Inner => self.asks[2],
        }
    }

    /// Takes away what a client may have sent as one of our marks, whatever becomes of the request.
    #[inline]
    pub(crate) fn strip_tags(&self, headers: &mut HeaderMap) {
        for name in &self.tags {
            headers.remove(name);
        }
    }

    /// A rule's name, as a tag's value.
    pub(crate) fn name(&self, index: usize) -> HeaderValue {
        self.rules[index].name.clone()
    }

    /// The own answer of the rule that refuses, instead of what it tells of a quota or a block. That a
    /// request lacks its key is another thing, and told as such.
    pub(crate) fn respond(&self, refusal: &Refusal) -> Option<&OwnAnswer> {
        let own = self.rules.get(refusal.index?)?.respond.as_ref();
        own.filter(|_| !matches!(refusal.cause, Cause::MissingKey { .. }))
    }
}

impl Asks {
    fn at(door: Door, rules: &RuleSet) -> Self {
        if rules.mode() == Mode::Off {
            return Asks::default();
        }
        let is_at = |index: usize| match door {
            Door::Only => true,
            Door::Outer => !rules.needs_inner_door(index),
            Door::Inner => rules.needs_inner_door(index),
        };
        let mut asks = Asks { client: !rules.lists().is_empty(), ..Asks::default() };
        for (_, rule) in rules.rules().iter().enumerate().filter(|(index, _)| is_at(*index)) {
            for kind in of_requests(rule) {
                match kind {
                    PartKind::Client { .. } => asks.client = true,
                    PartKind::Host => asks.host = true,
                    // Which of several patterns gives a parameter, the router's template says.
                    PartKind::Route | PartKind::Param(_) => asks.route = true,
                    PartKind::User | PartKind::Extra(_) => asks.extracted = true,
                    _ => {}
                }
            }
        }
        asks
    }
}

/// What a rule asks of the requests that it matches; nothing, where it matches none and waits for
/// [`Gate::check`](crate::Gate::check).
pub(crate) fn of_requests(rule: &Rule) -> impl Iterator<Item = &PartKind> {
    rule.kinds().filter(|_| !rule.is_for_checks())
}

/// The first thing in the rules that needs the client's address.
pub(crate) fn what_asks_for_the_client(rules: &RuleSet) -> Option<String> {
    let asks = |rule: &&Rule| of_requests(rule).any(|kind| matches!(kind, PartKind::Client { .. }));
    let rule = rules.rules().iter().find(asks);
    rule.map(|rule| format!("rule {:?}", rule.name))
        .or_else(|| (!rules.lists().is_empty()).then(|| "[[allow]] or [[deny]]".to_owned()))
}

/// The fields that a rule may mark requests with.
fn tags(rule: &Rule) -> impl Iterator<Item = &HeaderName> {
    let overrides = rule.overrides.iter().filter_map(|terms| terms.action.as_ref());
    std::iter::once(&rule.action).chain(overrides).filter_map(|action| match action {
        Action::Tag(header) => Some(header),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(rules: &str) -> [Asks; 3] {
        let rules: RuleSet = format!("app = \"test\"\n{rules}").parse().unwrap();
        [Door::Only, Door::Outer, Door::Inner].map(|door| Asks::at(door, &rules))
    }

    fn rule(key: &str, more: &str) -> String {
        format!(
            "[[rule]]\nname = \"{}\"\nkey = [{key}]\nover = \"9/1m\"\nthrottle = {{}}\n{more}\n",
            key.len()
        )
    }

    #[test]
    fn each_door_looks_up_what_its_own_rules_ask() {
        const NONE: Asks = Asks { client: false, host: false, route: false, extracted: false };
        let (host, user) = (Asks { host: true, ..NONE }, Asks { extracted: true, ..NONE });
        assert_eq!(asks(&rule("", "")), [NONE; 3]);
        assert_eq!(asks(&rule("\"host\"", "")), [host, host, NONE]);
        assert_eq!(asks(&rule("\"user\"", "")), [user, NONE, user]);
        let both = rule("\"host\"", "") + &rule("\"user|client\"", "");
        let (client, all) =
            (Asks { client: true, ..user }, Asks { client: true, host: true, ..user });
        assert_eq!(asks(&both), [all, host, client], "fallbacks go along");
        let id = "match = \"/a/{id}\"";
        assert!(asks(&rule("\"param:id\"", id))[0].route && asks(&rule("\"route\"", ""))[1].route);
        assert_eq!(asks(&rule("\"client\", \"user\"", "match = []")), [NONE; 3]);
        assert_eq!(asks(&format!("mode = \"off\"\n{both}")), [NONE; 3]);
        let denied = "[[deny]]\nclients = [\"203.0.113.0/24\"]\n";
        assert!(asks(denied).iter().all(|asks| asks.client), "lists are asked at both doors");
    }
}
