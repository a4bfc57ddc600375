//! Which rules a door of the gate judges by.

use hotgate_rules::{Mode, RuleSet};

/// Where in a stack of layers a request is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The gate has one door: all rules.
    Only,
    /// The outermost of two: all rules but those of the inner one.
    Outer,
    /// The one inside authentication: the rules whose key or `when` names `user` or `x:`.
    Inner,
}

/// A set of rules by their positions.
pub(crate) type RuleBits = [u64; 4];

/// The rules that are not off, by their door.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    outer: RuleBits,
    inner: RuleBits,
}

impl Doors {
    pub(crate) fn of(rules: &RuleSet) -> Self {
        let mut doors = Doors::default();
        for (index, rule) in rules.rules().iter().enumerate() {
            let on = |mode: Mode| rules.mode().min(rule.mode_max).min(mode) != Mode::Off;
            let overridden = rule.overrides.iter().filter_map(|terms| terms.mode).any(on);
            if on(rule.mode) || overridden {
                let bits =
                    if rules.needs_inner_door(index) { &mut doors.inner } else { &mut doors.outer };
                bits[index / 64] |= 1 << (index % 64);
            }
        }
        doors
    }

    pub(crate) fn at(&self, door: Door, matched: RuleBits) -> RuleBits {
        let mut bits = matched;
        for (at, word) in bits.iter_mut().enumerate() {
            *word &= match door {
                Door::Only => self.outer[at] | self.inner[at],
                Door::Outer => self.outer[at],
                Door::Inner => self.inner[at],
            };
        }
        bits
    }

    /// Those that are not off.
    pub(crate) fn live(&self, bits: RuleBits) -> RuleBits {
        self.at(Door::Only, bits)
    }
}

/// The positions in a set, rising.
pub(crate) fn positions(mut bits: RuleBits) -> impl Iterator<Item = usize> {
    let mut word = 0;
    std::iter::from_fn(move || {
        while *bits.get(word)? == 0 {
            word += 1;
        }
        let bit = bits[word].trailing_zeros() as usize;
        bits[word] &= bits[word] - 1;
        Some(word * 64 + bit)
    })
}
