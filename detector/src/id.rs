//! Decision ids: opaque to whoever is refused, and yet they tell the operator of the gate which
//! refusal it was, without a word of it being kept.

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use siphasher::sip::SipHasher13;

use crate::{Cause, Time};

/// An opaque name of one refusal, printed as a UUID (version 8, RFC 9562).
///
/// Only the process that gave it can read it: see
/// [`Engine::refusal_of`](crate::Engine::refusal_of).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionId(u128);

/// What an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The mark of the rule that answered; `None`: a deny list.
    pub(crate) rule: Option<u16>,
    /// Why.
    pub(crate) cause: Cause,
    /// When, to the millisecond.
    pub(crate) at: Time,
    /// The hash of the key under that rule.
    pub(crate) hash: u64,
}

/// A refusal and the key to seal its id with, which is shown to nobody.
#[derive(Clone, Copy)]
pub(crate) struct Trace {
    pub(crate) refused: Refused,
    /// Its own among all refusals of the process: see [`Numbers`].
    pub(crate) number: u64,
    pub(crate) secret: IdSecret,
}

/// Keys decision ids. They are published, and the tables' hash may not withstand that.
#[derive(Clone, Copy)]
pub(crate) struct IdSecret(pub(crate) [u64; 2]);

impl fmt::Debug for IdSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdSecret(..)")
    }
}

/// Bits of a UUID that are not its version or variant; half of them on each side of the network.
const HALF_BITS: u32 = 61;
const HALF_MASK: u64 = (1 << HALF_BITS) - 1;

/// Rounds of the Feistel network. Four of a pseudo-random function make it one that nobody can tell
/// from random, whatever they know of other ids (Luby and Rackoff, 1988).
const ROUNDS: u8 = 4;

/// Milliseconds, and refusals within one. They wrap after 198 days: who asks after an id then is told
/// of the last time that it can be of.
const TIME_BITS: u32 = 34;
const SERIAL_BITS: u32 = 12;
const RULE_BITS: u32 = 9;
const CAUSE_BITS: u32 = 3;

const NUMBER_BITS: u32 = TIME_BITS + SERIAL_BITS;

const _: () =
    assert!(64 + NUMBER_BITS + RULE_BITS + CAUSE_BITS == 2 * HALF_BITS, "a refusal fills a UUID");

/// How many marks of rules there are: twice as many as a file has rules, so that the mark of one that
/// went is not soon another's.
pub(crate) const MARKS: u16 = (1 << RULE_BITS) - 1;

/// Stands for no rule.
const NO_RULE: u16 = MARKS;

/// How far numbers may run ahead of the clock, in milliseconds.
const AHEAD_MILLIS_MAX: u64 = 1_000;

/// Numbers refusals: by the millisecond and on from there, so that no two of a process are the same,
/// however many threads refuse at once. More than 4,096 in a millisecond run ahead of the clock.
#[derive(Debug, Default)]
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    pub(crate) fn next(&self, now: Time) -> u64 {
        let soonest = millis(now) << SERIAL_BITS;
        let after = |last: u64| (last + 1).max(soonest);
        let last = self.0.fetch_update(Relaxed, Relaxed, |last| Some(after(last)));
        after(last.unwrap_or_default())
    }
}

fn millis(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}

const CAUSES: [Cause; 7] = [
    Cause::Denied,
    Cause::Quota,
    Cause::Blocked,
    Cause::Always,
    Cause::Pending,
    Cause::MissingKey { by_client: false },
    Cause::MissingKey { by_client: true },
];

impl Trace {
    pub(crate) fn id(&self) -> DecisionId {
        let Refused { rule, cause, hash, .. } = self.refused;
        let cause = CAUSES.iter().position(|one| *one == cause).unwrap_or(0) as u64;
        let rule = rule.map_or(NO_RULE, |rule| rule % MARKS);
        let mut bits = u128::from(hash);
        for (value, width) in
            [(self.number, NUMBER_BITS), (u64::from(rule), RULE_BITS), (cause, CAUSE_BITS)]
        {
            bits = bits << width | u128::from(value & ((1 << width) - 1));
        }
        DecisionId::from_bits(mixed(bits, self.secret, 0..ROUNDS))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id())
    }
}

/// The low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "the high bits are another field's")]
fn low(bits: u128) -> u64 {
    bits as u64
}

impl DecisionId {
    /// What the id stands for under this secret; `None` if it cannot be one of ours, given by now.
    pub(crate) fn open(self, secret: IdSecret, now: Time) -> Option<Refused> {
        let bits = swapped(mixed(swapped(self.bits()), secret, (0..ROUNDS).rev()));
        let field = |shift: u32, width: u32| low(bits >> shift) & ((1 << width) - 1);
        let rule = u16::try_from(field(CAUSE_BITS, RULE_BITS)).ok()?;
        let written = field(CAUSE_BITS + RULE_BITS + SERIAL_BITS, TIME_BITS);
        let latest = millis(now) + AHEAD_MILLIS_MAX;
        let age = latest.wrapping_sub(written) & ((1 << TIME_BITS) - 1);
        let at = latest.checked_sub(age)?.saturating_mul(1_000_000);
        Some(Refused {
            rule: (rule != NO_RULE).then_some(rule),
            cause: *CAUSES.get(usize::try_from(field(0, CAUSE_BITS)).ok()?)?,
            at: Time::from_nanos(at).min(now),
            hash: low(bits >> (CAUSE_BITS + RULE_BITS + NUMBER_BITS)),
        })
    }

    /// 122 bits, around the six that say that this is a UUID of version 8.
    fn from_bits(bits: u128) -> Self {
        let (high, middle, low) = (bits >> 74, bits >> 62 & 0xfff, bits & ((1 << 62) - 1));
        DecisionId(high << 80 | 0x8 << 76 | middle << 64 | 0b10 << 62 | low)
    }

    fn bits(self) -> u128 {
        (self.0 >> 80) << 74 | (self.0 >> 64 & 0xfff) << 62 | self.0 & ((1 << 62) - 1)
    }
}

/// A Feistel network over 122 bits.
#[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
fn mixed(bits: u128, secret: IdSecret, rounds: impl Iterator<Item = u8>) -> u128 {
    let (mut left, mut right) = ((bits >> HALF_BITS) as u64, bits as u64 & HALF_MASK);
    for round in rounds {
        let mut input = [0; 9];
        input[..8].copy_from_slice(&right.to_le_bytes());
        input[8] = round;
        let hash = SipHasher13::new_with_keys(secret.0[0], secret.0[1]).hash(&input);
        (left, right) = (right, (left ^ hash) & HALF_MASK);
    }
    u128::from(left) << HALF_BITS | u128::from(right)
}

/// Left and right change places: so a network whose rounds run backwards undoes it.
fn swapped(bits: u128) -> u128 {
    (bits & u128::from(HALF_MASK)) << HALF_BITS | bits >> HALF_BITS
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            id >> 96,
            id >> 80 & 0xffff,
            id >> 64 & 0xffff,
            id >> 48 & 0xffff,
            id & 0xffff_ffff_ffff
        )
    }
}

/// Not a decision id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a decision id such as 1b4e28ba-2fa1-8a2e-883f-0016d3cca427")]
pub struct DecisionIdError;

impl FromStr for DecisionId {
    type Err = DecisionIdError;

    /// Reads the printed form, with or without `urn:uuid:` before it.
    fn from_str(text: &str) -> Result<Self, DecisionIdError> {
        let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
        let widths = text.split('-').map(str::len);
        let digits: String = text.split('-').collect();
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u128::from_str_radix(&digits, 16).map_err(|_| DecisionIdError)?;
        let is_ours = id >> 76 & 0xf == 8 && id >> 62 & 3 == 2;
        let fits = widths.eq([8, 4, 4, 4, 12]) && is_hex && is_ours;
        fits.then_some(DecisionId(id)).ok_or(DecisionIdError)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const SECRET: IdSecret = IdSecret([3, 4]);

    fn trace(rule: Option<u16>, cause: usize, millis: u64, hash: u64, serial: u64) -> Trace {
        let at = Time::from_nanos(millis * 1_000_000);
        let refused = Refused { rule, cause: CAUSES[cause], at, hash };
        Trace { refused, number: millis << SERIAL_BITS | serial, secret: SECRET }
    }

    proptest! {
        #[test]
        fn an_id_tells_its_own_process_what_it_stands_for(
            rule in prop::option::of(0..MARKS),
            cause in 0..CAUSES.len(),
            // Half a century.
            millis in 0..1u64 << 40,
            hash: u64,
            serial in 0..1u64 << SERIAL_BITS,
            later in 0..(1u64 << TIME_BITS) - AHEAD_MILLIS_MAX,
        ) {
            let trace = trace(rule, cause, millis, hash, serial);
            let id: DecisionId = trace.id().to_string().parse().unwrap();
            prop_assert_eq!(id, trace.id());
            let now = Time::from_nanos((millis + later) * 1_000_000);
            prop_assert_eq!(id.open(SECRET, now), Some(trace.refused));
            let other = id.open(IdSecret([3, 5]), now);
            prop_assert_ne!(other, Some(trace.refused), "to another it says nothing");
        }

        #[test]
        fn any_text_is_read_or_is_not(text in "(urn:uuid:)?[0-9a-fA-Fé-]{0,40}|\\PC{0,40}") {
            if let Ok(id) = text.parse::<DecisionId>() {
                let plain = text.strip_prefix("urn:uuid:").unwrap_or(&text).to_lowercase();
                prop_assert_eq!(id.to_string(), plain);
                let _ = id.open(SECRET, Time::MAX);
            }
        }

        #[test]
        fn every_uuid_of_our_kind_is_read_and_may_be_asked_after(id: u128, now: u64) {
            let id = DecisionId(id & !(0xf << 76 | 3 << 62) | 8 << 76 | 2 << 62);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            let now = Time::from_nanos(now);
            let opened = id.open(SECRET, now);
            prop_assert!(opened.is_none_or(|refused| refused.at <= now), "nothing is yet to come");
        }
    }

    #[test]
    fn numbers_go_on_from_the_clock_and_never_back() {
        let numbers = Numbers::default();
        let at = |millis: u64| numbers.next(Time::from_nanos(millis * 1_000_000));
        let first = at(5);
        assert_eq!(first, 5 << SERIAL_BITS);
        assert_eq!((at(5), at(4), at(6)), (first + 1, first + 2, 6 << SERIAL_BITS));
    }

    #[test]
    fn ids_of_one_key_have_nothing_in_common() {
        let ids: Vec<u128> = (0..64).map(|serial| trace(Some(1), 1, 5, 7, serial).id().0).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        let differing =
            ids.windows(2).map(|pair| (pair[0] ^ pair[1]).count_ones()).sum::<u32>() / 63;
        assert!((52..=70).contains(&differing), "{differing} of 122 bits differ");
    }

    #[test]
    fn what_is_no_id_is_not_read() {
        let id = trace(None, 0, 1, 2, 3).id().to_string();
        assert!(format!("urn:uuid:{id}").parse::<DecisionId>().is_ok());
        for text in
            ["", "x", "client=203.0.113.9", &id[1..], &format!("{id}0"), &id.replace('-', "")]
        {
            assert_eq!(text.parse::<DecisionId>(), Err(DecisionIdError), "{text}");
        }
        let version_4 = format!("{}4{}", &id[..14], &id[15..]);
        assert_eq!(version_4.parse::<DecisionId>(), Err(DecisionIdError));
    }
}
