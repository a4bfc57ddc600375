//! What a rule set asks of the service it runs in.

use std::collections::BTreeMap;

use http::HeaderName;

use crate::{Action, PartKind, RuleSet};

/// What the rules ask of a service: functions that must be registered, facts that must be gathered.
///
/// Each is told with the name of the first rule that asks for it, so that an error can say which. A
/// rule that is off asks too: it may be switched on at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uses<'a> {
    /// The client's address; `[[allow]]` and `[[deny]]` ask for it too, see [`RuleSet::lists`].
    pub client: Option<&'a str>,
    /// `user`, in a key or a `when`.
    pub user: Option<&'a str>,
    /// The NAMEs of `x:NAME`.
    pub extractors: BTreeMap<&'a str, &'a str>,
    /// The functions that `handler` names.
    pub handlers: BTreeMap<&'a str, &'a str>,
    /// The request header fields that `tag` sets.
    pub tag_headers: BTreeMap<&'a str, (&'a HeaderName, &'a str)>,
    /// The template that the router matched: by `route`, or by `param:NAME`, which takes it to know
    /// which of a rule's patterns is meant.
    pub route: Option<&'a str>,
}

impl RuleSet {
    /// What these rules ask of the service.
    #[must_use]
    pub fn uses(&self) -> Uses<'_> {
        let mut uses = Uses::default();
        for rule in &self.rules {
            let name = &*rule.name;
            for kind in rule.kinds() {
                match kind {
                    PartKind::Client { .. } => _ = uses.client.get_or_insert(name),
                    PartKind::User => _ = uses.user.get_or_insert(name),
                    PartKind::Route | PartKind::Param(_) => _ = uses.route.get_or_insert(name),
                    PartKind::Extra(extra) => _ = uses.extractors.entry(extra).or_insert(name),
                    _ => {}
                }
            }
            for action in rule.actions() {
                match action {
                    Action::Tag(header) => {
                        uses.tag_headers.entry(header.as_str()).or_insert((header, name));
                    }
                    Action::Handler(handler) => _ = uses.handlers.entry(handler).or_insert(name),
                    Action::Throttle(_) | Action::Block(_) => {}
                }
            }
        }
        uses
    }

    /// What of `other` differs from these rules and cannot change while the process runs, each as a
    /// sentence; none where a reload can put `other` in force.
    #[must_use]
    pub fn restart_reasons(&self, other: &RuleSet) -> Vec<String> {
        let secret = |set: &RuleSet| match set.secret_file() {
            Some(path) => format!("{:?}", path.display().to_string()),
            None => "none".to_owned(),
        };
        let fields = [
            ("app", format!("{:?}", self.app()), format!("{:?}", other.app())),
            ("keys in [memory]", self.memory.keys.to_string(), other.memory.keys.to_string()),
            (
                "verdicts in [memory]",
                self.memory.verdicts.to_string(),
                other.memory.verdicts.to_string(),
            ),
            ("secret_file in [privacy]", secret(self), secret(other)),
        ];
        let changed = fields.into_iter().filter(|(_, now, then)| now != then);
        let reason = |(field, now, then)| {
            format!("{field} is {now} and cannot become {then} without a restart")
        };
        changed.map(reason).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> RuleSet {
        text.parse().unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn what_rules_ask_for_is_told_with_the_first_rule_that_does() {
        let rules = set(r#"
            app = "shop"
            [[rule]]
            name = "a"
            key = ["x:tenant|client"]
            over = "10/1m"
            handler = "maze"
            mode = "off"
            [[rule.override]]
            when = { "x:plan" = "gold" }
            handler = "lounge"
            [[rule]]
            name = "b"
            match = "/b/{id}"
            when = { "user|x:plan" = "*", "param:id" = "7" }
            key = ["client"]
            over = "10/1m"
            tag = { header = "X-Hot" }
            [[rule]]
            name = "c"
            key = ["user", "route"]
            over = "10/1m"
            tag = { header = "x-hot" }
        "#);
        let uses = rules.uses();
        assert_eq!((uses.client, uses.user, uses.route), (Some("a"), Some("b"), Some("b")));
        assert_eq!(uses.extractors, BTreeMap::from([("tenant", "a"), ("plan", "a")]));
        assert_eq!(uses.handlers, BTreeMap::from([("maze", "a"), ("lounge", "a")]));
        let header = HeaderName::from_static("x-hot");
        assert_eq!(uses.tag_headers, BTreeMap::from([("x-hot", (&header, "b"))]));
        assert_eq!(set("app = \"shop\"").uses(), Uses::default());
    }

    #[test]
    fn what_needs_a_restart_is_said_and_nothing_else() {
        let old = set("app = \"shop\"\n[memory]\nkeys = 10\n[[deny]]\nclients = [\"10.0.0.1\"]");
        let new = set(
            "app = \"store\"\nmode = \"off\"\n[memory]\nverdicts = 5\n[privacy]\nsecret_file = \"s\"",
        );
        assert_eq!(old.restart_reasons(&old), [""; 0]);
        assert_eq!(
            old.restart_reasons(&new),
            [
                "app is \"shop\" and cannot become \"store\" without a restart",
                "keys in [memory] is 10 and cannot become 65536 without a restart",
                "verdicts in [memory] is 65536 and cannot become 5 without a restart",
                "secret_file in [privacy] is none and cannot become \"s\" without a restart",
            ]
        );
        let same = set("app = \"shop\"\nmode = \"observe\"\n[memory]\nkeys = 10");
        assert_eq!(old.restart_reasons(&same), [""; 0], "all else is a reload");
    }
}
