//! From TOML text to a [`RuleSet`](crate::RuleSet): every value with its place, every error at once.

use crate::{Problems, RuleSet};

pub(crate) fn rule_set(text: &str) -> Result<RuleSet, Problems> {
    let _ = text;
    todo!()
}
