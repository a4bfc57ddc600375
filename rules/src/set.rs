//! The validated rule set.

use std::{path::Path, str::FromStr};

use crate::{
    ClientConfig, ClientLists, Facts, Matched, Memory, Mode, Problem, Problems, Rule, RuleIdentity,
    matcher::Matcher, parse,
};

/// A validated rule file.
#[derive(Clone, Debug)]
pub struct RuleSet {
    pub(crate) app: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) mode: Mode,
    pub(crate) client: ClientConfig,
    pub(crate) memory: Memory,
    pub(crate) secret_file: Option<Box<Path>>,
    pub(crate) lists: ClientLists,
    pub(crate) rules: Vec<Rule>,
    pub(crate) matcher: Matcher,
    pub(crate) warnings: Vec<Problem>,
}

impl FromStr for RuleSet {
    type Err = Problems;

    /// Reads and validates a rule file; all errors at once.
    fn from_str(text: &str) -> Result<Self, Problems> {
        parse::rule_set(text)
    }
}

impl RuleSet {
    /// The largest rule file, in bytes; a larger one is an error: beyond it somebody took another
    /// file, or a device, for one.
    pub const FILE_BYTES_MAX: usize = 1024 * 1024;

    /// `app`.
    #[must_use]
    pub fn app(&self) -> &str {
        &self.app
    }

    /// Which text these rules were read from: the first twelve digits of its SHA-256.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// `mode`, the kill switch.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// `[client]`.
    #[must_use]
    pub fn client(&self) -> &ClientConfig {
        &self.client
    }

    /// `[memory]`.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// `[privacy].secret_file`, as it is written.
    #[must_use]
    pub fn secret_file(&self) -> Option<&Path> {
        self.secret_file.as_deref()
    }

    /// `[[allow]]` and `[[deny]]`.
    #[must_use]
    pub fn lists(&self) -> &ClientLists {
        &self.lists
    }

    /// The rules, in the order of the file.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The identity of the rule at a position.
    ///
    /// # Panics
    ///
    /// When there is no such rule.
    #[must_use]
    pub fn identity(&self, index: usize) -> RuleIdentity {
        RuleIdentity::of(&self.rules[index], &self.client)
    }

    /// Whether a rule belongs to the door inside authentication, where a gate has one: its key or `when`,
    /// or an override's, names `user` or `x:`.
    ///
    /// # Panics
    ///
    /// When there is no such rule.
    #[must_use]
    pub fn needs_inner_door(&self, index: usize) -> bool {
        self.rules[index].needs_inner_door()
    }

    /// The same rules with other capacities.
    #[must_use]
    pub fn with_memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// The same rules, those at these positions switched off: a log may not hold what they look at.
    #[must_use]
    pub fn with_rules_off(mut self, positions: &[usize]) -> Self {
        for position in positions {
            if let Some(rule) = self.rules.get_mut(*position) {
                rule.mode = Mode::Off;
                rule.overrides.clear();
            }
        }
        self
    }

    /// What is allowed but likely not meant.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The rules whose `match` covers the request and whose `except` does not.
    #[inline]
    #[must_use]
    pub fn matching(&self, facts: &Facts<'_>) -> Matched {
        self.matcher.matching(facts.method, &facts.path)
    }
}
