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
    both: RuleBits,
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
                doors.both[index / 64] |= 1 << (index % 64);
            }
        }
        doors
    }

    #[inline]
    pub(crate) fn at(&self, door: Door, mut matched: RuleBits) -> RuleBits {
        let judging = match door {
            Door::Only => &self.both,
            Door::Outer => &self.outer,
            Door::Inner => &self.inner,
        };
        matched.iter_mut().zip(judging).for_each(|(word, judging)| *word &= judging);
        matched
    }
}

/// How many rules a set holds.
pub(crate) enum Number {
    None,
    /// This one.
    One(usize),
    More,
}

/// How many rules a set holds.
#[inline]
pub(crate) fn number_of(bits: RuleBits) -> Number {
    let [first, second, third, fourth] = bits;
    if second | third | fourth == 0 {
        return one_of(first, 0);
    }
    let mut held = (0..).zip(bits).filter(|(_, word)| *word != 0);
    match (held.next(), held.next()) {
        (Some((at, word)), None) => one_of(word, at * 64),
        _ => Number::More,
    }
}

fn one_of(word: u64, first: usize) -> Number {
    if word == 0 {
        Number::None
    } else if word & (word - 1) == 0 {
        Number::One(first + word.trailing_zeros() as usize)
    } else {
        Number::More
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
