//! What other rules change, in short.

use hotgate_rules::{Mode, RuleSet};

/// What there is to say when other rules come into force.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Rules by their names, in the order of the file.
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// Rules whose counts mean something else now and begin anew.
    pub(crate) reset: Vec<String>,
    /// The file's mode, where it is another now.
    pub(crate) mode: Option<Mode>,
}

impl News {
    pub(crate) fn between(old: &RuleSet, new: &RuleSet) -> Self {
        let names = |rules: &RuleSet, keep: &dyn Fn(usize, &str) -> bool| {
            let names = rules.rules().iter().map(|rule| &*rule.name).enumerate();
            names
                .filter(|(index, name)| keep(*index, name))
                .map(|(_, name)| name.to_owned())
                .collect()
        };
        let position =
            |rules: &RuleSet, name: &str| rules.rules().iter().position(|rule| *rule.name == *name);
        let is_reset = |index: usize, name: &str| {
            position(old, name).is_some_and(|was| old.identity(was) != new.identity(index))
        };
        News {
            from: old.version().to_owned(),
            to: new.version().to_owned(),
            added: names(new, &|_, name| position(old, name).is_none()),
            removed: names(old, &|_, name| position(new, name).is_none()),
            reset: names(new, &is_reset),
            mode: (old.mode() != new.mode()).then_some(new.mode()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_went_and_begins_anew_is_named() {
        let rule = |name: &str, over: &str| {
            format!("[[rule]]\nname = \"{name}\"\nkey = []\nover = \"{over}\"\nthrottle = {{}}\n")
        };
        let rules = |mode: &str, rules: &[String]| -> RuleSet {
            format!("app = \"test\"\nmode = \"{mode}\"\n{}", rules.concat()).parse().unwrap()
        };
        let old = rules("enforce", &[rule("a", "1/1m"), rule("b", "1/1m"), rule("c", "1/1m")]);
        let new = rules("off", &[rule("d", "1/1m"), rule("c", "2/1m"), rule("b", "1/2m")]);
        let news = News::between(&old, &new);
        assert_eq!((news.added, news.removed), (vec!["d".to_owned()], vec!["a".to_owned()]));
        assert_eq!(news.reset, ["b"], "another window; another limit of \"c\" keeps its counts");
        assert_eq!(news.mode, Some(Mode::Off));
        assert_eq!((&*news.from, &*news.to), (old.version(), new.version()));
        assert_eq!(News::between(&old, &old).mode, None);
    }
}
