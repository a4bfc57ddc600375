//! Which rules a request matches: all patterns of a file in one tree.

use http::Method;

use crate::{Pattern, RequestPath};

/// Rules a file can have.
pub(crate) const RULES_MAX: usize = 256;

/// The rules a request matches, as positions in [`crate::RuleSet::rules`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    bits: [u64; RULES_MAX / 64],
    exempt: bool,
}

impl Matched {
    /// Whether `[exempt]` matched: then no rule applies.
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.exempt
    }

    /// The positions of the rules, rising.
    pub fn rules(&self) -> impl Iterator<Item = usize> + use<> {
        let bits = self.bits;
        (0..RULES_MAX).filter(move |index| bits[index / 64] >> (index % 64) & 1 == 1)
    }
}

/// All patterns of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matcher {}

impl Matcher {
    /// `exempt` are the patterns of `[exempt]`; `rules` are (match, except) of each rule in order.
    pub(crate) fn new<'p>(
        exempt: &[Pattern],
        rules: impl Iterator<Item = (Option<&'p [Pattern]>, &'p [Pattern])>,
    ) -> Self {
        let _ = (exempt, rules.count());
        todo!()
    }

    pub(crate) fn matching(&self, method: Option<&Method>, path: &RequestPath<'_>) -> Matched {
        let _ = (method, path);
        todo!()
    }
}
