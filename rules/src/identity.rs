//! A rule's identity: what its counts mean.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{
    ClientConfig, ClientSource, Condition, Count, OverridePart, Rule, StatusClass, Trigger,
};

/// What a rule's counts mean: a hash of its `match`, `except`, `when`, `key`, `count` and window, and of
/// the `[client]` fields that say who a client is. While it stays the same under the same name, counts
/// and verdicts live on through a reload; limits, modes and actions may change.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleIdentity([u8; 8]);

impl fmt::Display for RuleIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RuleIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuleIdentity({self})")
    }
}

impl RuleIdentity {
    pub(crate) fn of(rule: &Rule, client: &ClientConfig) -> Self {
        let mut text = Text(Sha256::new());
        let patterns = rule.patterns.iter().flatten();
        text.section("match", sorted(patterns.map(ToString::to_string)));
        // Left out, it matches all; a list that is there matches some.
        text.section("every", [rule.patterns.is_none().to_string()]);
        text.section("except", sorted(rule.except.iter().map(ToString::to_string)));
        text.section("when", sorted(rule.when.iter().map(condition)));
        text.section("key", [rule.key.to_string()]);
        text.section("count", count(&rule.count));
        text.section("window", window(rule.trigger));
        text.section("ipv6_prefix", [client.ipv6_prefix.to_string()]);
        text.section("source", [source(&client.source)]);
        let digest = text.0.finalize();
        RuleIdentity(*digest.first_chunk().expect("a digest of 32 bytes"))
    }
}

/// A text of sections, each item with its length before it, so that no two rules write the same.
struct Text(Sha256);

impl Text {
    fn section<T: AsRef<[u8]>>(&mut self, name: &str, items: impl IntoIterator<Item = T>) {
        let items: Vec<T> = items.into_iter().collect();
        self.0.update(format!("{name} {}\n", items.len()));
        for item in &items {
            let item = item.as_ref();
            self.0.update(format!("{} ", item.len()));
            self.0.update(item);
            self.0.update("\n");
        }
    }
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items
}

fn condition(condition: &Condition) -> Vec<u8> {
    let mut kinds = condition.kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    kinds.push('=');
    let mut text = kinds.into_bytes();
    for value in sorted(condition.values.iter().map(part)) {
        text.extend(format!("{} ", value.len()).as_bytes());
        text.extend(value);
    }
    text
}

fn part(part: &OverridePart) -> Vec<u8> {
    let (form, value): (u8, &[u8]) = match part {
        OverridePart::Exact(value) => (b'=', value),
        OverridePart::Prefix(value) => (b'^', value),
        OverridePart::Any => (b'*', &[]),
        OverridePart::Net(net) => return format!("/{net}").into_bytes(),
    };
    [&[form], value].concat()
}

fn count(count: &Count) -> Vec<String> {
    let Count::Responses { statuses, pending } = count else { return Vec::new() };
    let status = |class: &StatusClass| match class {
        StatusClass::Code(code) => code.as_str().to_owned(),
        StatusClass::Hundred(digit) => format!("{digit}xx"),
        StatusClass::Cancelled => "cancelled".to_owned(),
        StatusClass::Error => "error".to_owned(),
    };
    let mut items = sorted(statuses.iter().map(status));
    items.extend(pending.map(|pending| format!("pending {pending}")));
    items
}

fn window(trigger: Trigger) -> Vec<String> {
    match trigger {
        Trigger::Over(rate) => vec![rate.window.as_nanos().to_string()],
        Trigger::Always => Vec::new(),
    }
}

fn source(source: &ClientSource) -> String {
    match source {
        ClientSource::Peer => "peer".to_owned(),
        ClientSource::XForwardedFor => "x-forwarded-for".to_owned(),
        ClientSource::Forwarded => "forwarded".to_owned(),
        ClientSource::Header(name) => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::RuleSet;

    fn identity(client: &str, rule: &str) -> String {
        let text = format!("app = \"shop\"\n[client]\n{client}\n[[rule]]\nname = \"a\"\n{rule}\n");
        let set: RuleSet = text.parse().unwrap_or_else(|problems| panic!("{problems}"));
        set.identity(0).to_string()
    }

    const RULE: &str = "match = [\"/a\", \"POST /b\"]\nexcept = \"/b/c\"\nkey = [\"client\"]\n\
        count = { status = [401, \"5xx\"] }\nover = \"10/1m\"\nblock = { for = \"15m\" }";

    #[test]
    fn what_counts_mean_is_the_identity_and_nothing_else() {
        let own = identity("ipv6_prefix = 64", RULE);
        let with = |from: &str, to: &str| {
            assert!(RULE.contains(from), "{from}");
            identity("ipv6_prefix = 64", &RULE.replace(from, to))
        };
        for (from, to) in [
            ("10/1m", "20/1m"),
            ("{ for = \"15m\" }", "{ for = \"1h\", grow = 2 }"),
            ("block = { for = \"15m\" }", "throttle = {}"),
            ("[\"/a\", \"POST /b\"]", "[\"POST /b\", \"/a\"]"),
            ("[401, \"5xx\"]", "[\"5xx\", 401]"),
            ("key = [", "mode = \"observe\"\nnote = \"why\"\nkey = ["),
        ] {
            assert_eq!(with(from, to), own, "{to} changes no meaning");
        }
        for (from, to) in [
            ("10/1m", "10/2m"),
            ("[\"/a\", \"POST /b\"]", "[\"/a\", \"/b\"]"),
            ("match = [\"/a\", \"POST /b\"]\n", ""),
            ("except = \"/b/c\"\n", ""),
            ("key = [\"client\"]", "key = [\"client/24\"]"),
            ("key = [\"client\"]", "key = []"),
            ("[401, \"5xx\"]", "[401]"),
            ("[401, \"5xx\"]", "[401, \"5xx\"], pending = 3"),
        ] {
            assert_ne!(with(from, to), own, "{to} changes the meaning");
        }
        assert_ne!(identity("ipv6_prefix = 56", RULE), own);
        let proxied = "source = \"forwarded\"\ntrusted_proxies = [\"10.0.0.0/8\"]";
        assert_ne!(identity(proxied, RULE), own);
    }

    #[test]
    fn an_identity_is_the_same_in_every_process_and_version() {
        // Gates and detectors of one fleet compare it.
        assert_eq!(identity("ipv6_prefix = 64", RULE), "cced86db64338eb1");
    }
}
