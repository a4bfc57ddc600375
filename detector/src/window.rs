//! The sliding window: a stamp for every q-th event of a key.
//!
//! Number a key's counted events from 1. After every q-th the time is kept, in a ring. When n events
//! have been counted, `part` of them since the newest stamp, the next one is the (N+1)st in its
//! window if event n − N + 1 is still inside. The nearest stamp at or before that event lies
//! ⌈(N − 1 − part) / q⌉ steps back from the newest; while it is inside the window, so are the N
//! events, for certain. So nobody is refused early, for any arrivals, and at most N + q − 1 pass:
//! exactly N where q = 1, at most 1.02 N beyond. One stamp decides, and it is known when an event is
//! counted; until the next event only its age changes.
//!
//! Time slots, weighted pairs of slots and GCRA with a burst of N pass 1.5 N to 2.9 N when arrivals
//! are aligned with them, or refuse early.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use crate::Time;

/// Up to this limit a window is an exact log, with a stamp for each event: 256 bytes a key.
const EXACT_LIMIT_MAX: u32 = 64;

/// Beyond it one stamp stands for 2 % of the limit, so that at most 1.02 N pass.
const BLOCKS_PER_LIMIT: u32 = 50;

/// N, and how many events share a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) n: u32,
    pub(crate) q: u32,
    /// ⌈(N − 1) / q⌉: how far back the deciding stamp lies where `part` is zero.
    back: u32,
    /// By how much `back` stamps are more than N − 1 events.
    slack: u32,
}

impl Limit {
    /// The smallest.
    pub(crate) const ONE: Limit = Limit { n: 1, q: 1, back: 0, slack: 0 };

    pub(crate) fn new(n: NonZeroU32) -> Self {
        let n = n.get();
        Self::with_q(n, if n <= EXACT_LIMIT_MAX { 1 } else { n / BLOCKS_PER_LIMIT + 1 })
    }

    /// The limit of this N, if it is one.
    pub(crate) fn of(n: u32) -> Option<Self> {
        NonZeroU32::new(n).map(Self::new)
    }

    fn with_q(n: u32, q: u32) -> Self {
        let back = (n - 1).div_ceil(q);
        Limit { n, q, back, slack: back * q - (n - 1) }
    }

    /// The limit that attempts stay below while a key cools: 0.8 N, in stamps of the same size, so
    /// that one window can go on where the other stands.
    pub(crate) fn cooling(self) -> Self {
        Self::with_q(self.n - self.n / 5, self.q)
    }

    /// Stamps a ring needs.
    pub(crate) fn ring_len(self) -> u32 {
        self.back + 1
    }

    /// ⌈(N − 1 − part) / q⌉, without dividing.
    fn back(self, part: u32) -> u32 {
        self.back - u32::from(part + self.slack >= self.q)
    }
}

/// Time in ticks of at most W/2²⁸, as 32 bits that wrap after at least eight windows; and in epochs,
/// which tell whether a key was idle for so long that its stamps mean nothing any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    shift: u32,
    epoch_shift: u32,
    /// W in ticks, rounded down: an event is inside while it is younger.
    window: u32,
    /// From this many epochs on, every event is outside.
    idle_epochs: u32,
}

/// Ticks to a window: between 2²⁸ and 2²⁹, so that ages of up to four windows compare as signed.
const WINDOW_TICKS_BITS: u32 = 28;

/// The shortest epoch, 2²⁸ ns: then 32 bits of epochs last for 36 years of uptime.
const EPOCH_NANOS_BITS_MIN: u32 = 28;

impl Ticks {
    pub(crate) fn new(window: Duration) -> Self {
        let nanos = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
        let shift = nanos.ilog2().saturating_sub(WINDOW_TICKS_BITS);
        // An epoch is W/16 to W/32, which is as long as an idle key's place stays taken too long.
        let epoch_shift = (shift + 24).max(EPOCH_NANOS_BITS_MIN);
        Ticks {
            shift,
            epoch_shift,
            window: low(nanos >> shift),
            idle_epochs: low(nanos >> epoch_shift) + 2,
        }
    }

    pub(crate) fn tick(&self, now: Time) -> u32 {
        low(now.as_nanos() >> self.shift)
    }

    pub(crate) fn epoch(&self, now: Time) -> u32 {
        low(now.as_nanos() >> self.epoch_shift)
    }

    /// Whether all events up to an epoch are outside the window.
    pub(crate) fn is_idle(&self, last_epoch: u32, now: Time) -> bool {
        let epochs = self.epoch(now).wrapping_sub(last_epoch).cast_signed();
        epochs >= self.idle_epochs.cast_signed()
    }

    /// Whether an event stamped so is inside the window. A clock that was read before another
    /// thread's newer stamp was written counts as that stamp.
    pub(crate) fn is_inside(&self, stamp: u32, now: Time) -> bool {
        self.age(stamp, now) < self.window
    }

    /// How many ticks ago; zero for a stamp that is newer than `now`.
    pub(crate) fn age(&self, stamp: u32, now: Time) -> u32 {
        self.tick(now).wrapping_sub(stamp).cast_signed().max(0).cast_unsigned()
    }

    /// When an event stamped so leaves the window.
    pub(crate) fn leaves(&self, stamp: u32, now: Time) -> Time {
        let ticks = now.as_nanos() >> self.shift;
        let age = self.tick(now).wrapping_sub(stamp).cast_signed();
        let leaves =
            ticks.saturating_add(u64::from(self.window)).saturating_add_signed(-i64::from(age));
        Time::from_nanos(leaves.saturating_mul(1 << self.shift))
    }
}

/// The low 32 bits: ticks and epochs wrap on purpose.
#[expect(clippy::cast_possible_truncation, reason = "ticks and epochs wrap")]
fn low(value: u64) -> u32 {
    value as u32
}

/// What a window holds beside its ring, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Where in the ring the newest stamp is.
    head: u32,
    /// Stamps in the ring.
    len: u32,
    /// Events since the newest stamp.
    part: u32,
    /// Whether N events stood in the window when the last was counted.
    pub(crate) reached: bool,
}

const HEAD_BITS: u32 = 6;
const LEN_BITS: u32 = 7;
const PART_BITS: u32 = 18;

impl State {
    /// What one event adds to the packed word while no stamp is due.
    pub(crate) const ONE_EVENT: u32 = 1 << (HEAD_BITS + LEN_BITS);

    pub(crate) fn unpack(word: u32) -> Self {
        State {
            head: word & ((1 << HEAD_BITS) - 1),
            len: word >> HEAD_BITS & ((1 << LEN_BITS) - 1),
            part: word >> (HEAD_BITS + LEN_BITS) & ((1 << PART_BITS) - 1),
            reached: word >> (HEAD_BITS + LEN_BITS + PART_BITS) != 0,
        }
    }

    pub(crate) fn pack(self) -> u32 {
        self.head
            | self.len << HEAD_BITS
            | self.part << (HEAD_BITS + LEN_BITS)
            | u32::from(self.reached) << (HEAD_BITS + LEN_BITS + PART_BITS)
    }

    /// Whether one event more is only counted: no stamp is due, and none decides, whatever its age.
    #[inline]
    pub(crate) fn only_counts(self, limit: Limit) -> bool {
        let part = self.part + 1;
        part < limit.q && !self.reached && self.len <= limit.back(part)
    }

    /// Whether no stamp is kept: then the ring means nothing, whatever limit it was written for.
    pub(crate) fn is_stampless(self) -> bool {
        self.len == 0
    }

    /// How many events the window holds for certain, and those that may have left since the last one.
    pub(crate) fn count(self, limit: Limit) -> u32 {
        self.len * limit.q + self.part
    }
}

/// One key's window: its ring and its geometry; the state stands where the key does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) ring: &'a [AtomicU32],
    pub(crate) limit: Limit,
    pub(crate) ticks: &'a Ticks,
}

impl Window<'_> {
    /// Counts an event. The second value is the stamp that decides for as long as nothing more is
    /// counted, if N events now stand in the window.
    pub(crate) fn push(&self, mut state: State, now: Time) -> (State, Option<u32>) {
        debug_assert!(self.ring.len() >= self.limit.ring_len() as usize, "the ring fits its limit");
        state.part += 1;
        if state.part >= self.limit.q {
            state.part = 0;
            self.stamp(&mut state, now);
        }
        while state.len > 0 && !self.ticks.is_inside(self.back(state, state.len - 1), now) {
            state.len -= 1;
        }
        let deciding = self.deciding(state, now);
        state.reached = deciding.is_some();
        (state, deciding)
    }

    /// The stamp that says that N events stand in the window, if they do.
    pub(crate) fn deciding(&self, state: State, now: Time) -> Option<u32> {
        let back = self.limit.back(state.part);
        if state.len <= back {
            return None;
        }
        let stamp = self.back(state, back);
        self.ticks.is_inside(stamp, now).then_some(stamp)
    }

    fn stamp(&self, state: &mut State, now: Time) {
        let mut stamp = self.ticks.tick(now);
        if state.len > 0 {
            let newest = self.back(*state, 0);
            if self.ticks.age(newest, now) == 0 {
                stamp = newest;
            }
        }
        let capacity = self.limit.ring_len();
        state.head = if state.head + 1 >= capacity { 0 } else { state.head + 1 };
        self.ring[state.head as usize].store(stamp, Relaxed);
        state.len = (state.len + 1).min(capacity);
    }

    fn back(&self, state: State, steps: u32) -> u32 {
        let behind = state.head.checked_sub(steps);
        let position = behind.unwrap_or_else(|| state.head + self.limit.ring_len() - steps);
        self.ring[position as usize].load(Relaxed)
    }

    /// How many events stand in the window now, those of a block that is partly inside included; and
    /// when the oldest of them leaves, at the latest.
    pub(crate) fn count(&self, mut state: State, now: Time) -> (u32, Time) {
        while state.len > 0 && !self.ticks.is_inside(self.back(state, state.len - 1), now) {
            state.len -= 1;
        }
        let oldest =
            if state.len > 0 { self.back(state, state.len - 1) } else { self.ticks.tick(now) };
        (state.count(self.limit), self.ticks.leaves(oldest, now))
    }

    /// The same events in a ring of its own, for another limit.
    pub(crate) fn copied(&self, state: State, limit: Limit) -> (State, Box<[AtomicU32]>) {
        let ring: Box<[AtomicU32]> = (0..limit.ring_len()).map(|_| AtomicU32::new(0)).collect();
        (self.written_to(&ring, state, limit), ring)
    }

    /// The same events in the same ring, for another limit; and the stamp that decides, if N of it
    /// stand.
    pub(crate) fn rewritten(&self, state: State, limit: Limit, now: Time) -> (State, Option<u32>) {
        let mut state = self.written_to(self.ring, state, limit);
        let deciding = Window { limit, ..*self }.deciding(state, now);
        state.reached = deciding.is_some();
        (state, deciding)
    }

    /// Writes these events as a ring of another limit has them. Each stamp is the time of its event or
    /// of one before it, so that a key is never refused early; events before the oldest stamp are
    /// forgotten, and none but those: it stays the oldest where the ring has the room.
    fn written_to(&self, ring: &[AtomicU32], state: State, limit: Limit) -> State {
        // Events back to the oldest stamp's own.
        let known =
            if state.len == 0 { 0 } else { (state.len - 1) * self.limit.q + 1 + state.part };
        let part = known.checked_sub(1).map_or(state.part.min(limit.q - 1), |last| last % limit.q);
        let stamped = (0..limit.ring_len()).map(|step| part + step * limit.q);
        let stamps = stamped.take_while(|distance| *distance < known).map(|distance| {
            let past = distance.saturating_sub(state.part);
            self.back(state, past.div_ceil(self.limit.q))
        });
        let stamps: Stamps = stamps.collect();
        stamps.write(part, ring)
    }
}

/// Stamps on their way from one ring to another, the newest first.
struct Stamps {
    stamps: [u32; EXACT_LIMIT_MAX as usize],
    len: u32,
}

impl FromIterator<u32> for Stamps {
    fn from_iter<I: IntoIterator<Item = u32>>(iter: I) -> Self {
        let mut stamps = Stamps { stamps: [0; EXACT_LIMIT_MAX as usize], len: 0 };
        for (place, stamp) in stamps.stamps.iter_mut().zip(iter) {
            *place = stamp;
            stamps.len += 1;
        }
        stamps
    }
}

impl Stamps {
    /// Writes them to a ring, beginning with the oldest; `part` events came after the newest.
    fn write(&self, part: u32, ring: &[AtomicU32]) -> State {
        let newest_first = &self.stamps[..self.len as usize];
        for (place, stamp) in ring.iter().zip(newest_first.iter().rev()) {
            place.store(*stamp, Relaxed);
        }
        State { head: self.len.saturating_sub(1), len: self.len, part, reached: false }
    }
}
