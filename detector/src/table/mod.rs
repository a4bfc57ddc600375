//! The counting table: which key's window is where.
//!
//! A line of 64 bytes, one cache line, holds a lock byte and three keys; a key that finds its line
//! full stands in the next one. So a decision locks one key's line and no more, and mostly touches
//! nothing else: the stamp that decides is kept in the line, the others stand in an arena that only
//! counting touches. All of it are atomics under the line's lock, which makes relaxed accesses plain
//! ones and the whole safe.
//!
//! A key is its 64-bit hash, keyed at random: any two of 65,536 keys share one with a chance of
//! 2⁻³³. When a key's six places are taken, the one with the lowest count of its own gives way, with
//! probability 1/(count + 1) (RAP: Ben Basat et al., "Randomized admission policy for efficient
//! top-k and frequency estimation", 2017); the newcomer starts from zero. A key at its limit, under a
//! verdict or with pending requests is passed over while another can give way.

mod row;
#[cfg(test)]
mod tests;

use std::{
    num::NonZeroU32,
    sync::atomic::{
        AtomicU8, AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::{
    Time,
    window::{Limit, State, Ticks},
};
pub(crate) use row::{Room, Row};

/// Keys in a line.
const WAYS: u8 = 3;

/// Words of the arena before the stamps of a rule that counts responses: pending, generation.
const RESPONSE_WORDS: usize = 2;
const PENDING: usize = 0;
const GENERATION: usize = 1;

/// How often a lock is tried before the thread gives way: what it guards takes some ten nanoseconds,
/// so only a holder that the system has stopped keeps it for longer.
const SPINS_MAX: u32 = 100;

#[derive(Debug)]
pub(crate) struct Table {
    lines: Box<[Line]>,
    /// Zeroed by the allocator: pages of places that were never used cost nothing.
    arena: Box<[AtomicU32]>,
    /// Words of the arena a place has.
    stride: usize,
    head_words: usize,
    pub(crate) ticks: Ticks,
    /// The rule's own limit, by which the counts of strangers are compared.
    limit: Limit,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line {
    lock: AtomicU8,
    /// Whether keys of this line may stand in the next.
    overflowed: AtomicU8,
    /// A bit for each place whose key is under a verdict that leaves its window filled.
    hot: AtomicU8,
    places: [Place; WAYS as usize],
}

#[derive(Debug, Default)]
struct Place {
    hash: [AtomicU32; 2],
    /// The epoch of the last event.
    last: AtomicU32,
    /// The stamp that decides, while `State::reached`.
    deciding: AtomicU32,
    state: AtomicU32,
}

const _: () = assert!(size_of::<Line>() == 64, "a line is one cache line");

impl Table {
    /// `limits` are all that keys of the rule can have, its own first.
    pub(crate) fn new(keys: NonZeroU32, ticks: Ticks, limits: &[Limit], responses: bool) -> Self {
        let head_words = if responses { RESPONSE_WORDS } else { 0 };
        let ring = limits.iter().map(|limit| limit.ring_len()).max().unwrap_or(1);
        let stride = head_words + ring as usize;
        // One line more, so that the last one has a next.
        let lines: Box<[Line]> = (0..=keys.get()).map(|_| Line::default()).collect();
        let arena =
            bytemuck::allocation::zeroed_slice_box(lines.len() * usize::from(WAYS) * stride);
        Table { lines, arena, stride, head_words, ticks, limit: limits[0] }
    }

    /// Locks what a key's count needs, and finds it.
    pub(crate) fn lock(&self, hash: u64, now: Time) -> Row<'_> {
        let hash = hash.max(1);
        let home = self.home(hash);
        let mut row = Row {
            table: self,
            hash,
            home,
            place: None,
            vacant: None,
            next: None,
            line: self.lines[home as usize].lock(),
        };
        row.find(now);
        row
    }

    fn home(&self, hash: u64) -> u32 {
        let lines = self.lines.len() as u64 - 1;
        (((hash >> 32) * lines) >> 32) as u32
    }
}

impl Line {
    fn lock(&self) -> Locked<'_> {
        while self.lock.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            let mut spins = 0;
            while self.lock.load(Relaxed) != 0 {
                spins += 1;
                if spins > SPINS_MAX {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
        Locked(self)
    }
}

impl Place {
    fn hash(&self) -> u64 {
        u64::from(self.hash[0].load(Relaxed)) | u64::from(self.hash[1].load(Relaxed)) << 32
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
    fn set_hash(&self, hash: u64) {
        self.hash[0].store(hash as u32, Relaxed);
        self.hash[1].store((hash >> 32) as u32, Relaxed);
    }

    fn state(&self) -> State {
        State::unpack(self.state.load(Relaxed))
    }
}

/// A line whose lock is held.
#[derive(Debug)]
struct Locked<'t>(&'t Line);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.lock.store(0, Release);
    }
}
