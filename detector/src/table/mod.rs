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
//!
//! Engines that follow one another share lines. Where limits change by a reload, a ring may need more
//! room than the arena gives it: the lines' words then move to a new arena, each line's when it is
//! next locked, and a ring that was written for another limit is rewritten when its key comes again.

mod arena;
mod calm;
mod row;
#[cfg(test)]
mod tests;

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{
            AtomicU8, AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use crate::{
    Time,
    window::{Limit, State, Ticks},
};
use arena::Arena;
pub(crate) use calm::Calm;
pub(crate) use row::{Room, Row};

/// Keys in a line.
const WAYS: u8 = 3;

/// How often a lock is tried before the thread gives way: what it guards takes some ten nanoseconds,
/// so only a holder that the system has stopped keeps it for longer.
const SPINS_MAX: u32 = 100;

#[derive(Clone, Debug)]
pub(crate) struct Table {
    lines: Arc<[Line]>,
    arena: Arc<Arena>,
    /// Where the words of some lines may still be.
    previous: Option<Arc<Arena>>,
    pub(crate) ticks: Ticks,
    /// The rule's own limit, by which the counts of strangers are compared.
    limit: Limit,
    /// Whether a ring may have been written for another limit than its key has now.
    varies: bool,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line {
    lock: AtomicU8,
    /// Whether keys of this line may stand in the next.
    overflowed: AtomicU8,
    /// A bit for each place whose key may be under a verdict. Without it a key that has a place is
    /// under none, and the verdicts need not be asked.
    hot: AtomicU8,
    /// The number of the arena in which the words of its places are.
    arena: AtomicU8,
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
    /// `limits` are all that keys of the rule can have, its own first. `varies`: whether one key can
    /// have now this, now that one.
    pub(crate) fn new(
        keys: NonZeroU32,
        ticks: Ticks,
        limits: &[Limit],
        responses: bool,
        varies: bool,
    ) -> Self {
        // One line more, so that the last one has a next.
        let lines: Arc<[Line]> = (0..=keys.get()).map(|_| Line::default()).collect();
        let arena = Arena::new(0, lines.len(), limits, responses).into();
        Table { lines, arena, previous: None, ticks, limit: limits[0], varies }
    }

    /// The same keys with other limits. Lock no line by the old table once this one is in use.
    pub(crate) fn with_limits(&self, limits: &[Limit]) -> Self {
        let mut table = Table { limit: limits[0], varies: true, ..self.clone() };
        self.settle();
        table.previous = None;
        if let Some(arena) = self.arena.grown(self.lines.len(), limits) {
            table.previous = Some(Arc::clone(&self.arena));
            table.arena = arena.into();
        }
        table
    }

    /// Moves what still stands in the arena before, so that it is free to go.
    pub(crate) fn settle(&self) {
        let Some(previous) = &self.previous else { return };
        for index in 0..self.lines.len() {
            let line = self.lines[index].lock();
            self.move_words(&line, index, previous);
        }
    }

    /// Forgets the events of all keys.
    pub(crate) fn clear(&self) {
        for index in 0..self.lines.len() {
            let line = self.lines[index].lock();
            if self.is_current(&line, index) {
                for way in 0..WAYS {
                    line.0.places[usize::from(way)].state.store(0, Relaxed);
                    self.arena.of(place_index(index, way)).next_generation();
                }
            }
        }
    }

    /// Whether the words of a locked line are where this table looks for them; moves them if it can.
    /// Not where a table that follows this one has moved them on: what is counted by this one then is
    /// lost, which is the case only for threads that a reload overtakes in mid-decision.
    fn is_current(&self, line: &Locked<'_>, index: usize) -> bool {
        if line.0.arena.load(Relaxed) == self.arena.number {
            return true;
        }
        self.previous.as_ref().is_some_and(|previous| self.move_words(line, index, previous))
    }

    #[cold]
    fn move_words(&self, line: &Locked<'_>, index: usize, previous: &Arena) -> bool {
        let number = line.0.arena.load(Relaxed);
        if number == previous.number {
            for way in 0..WAYS {
                previous.copy(place_index(index, way), &self.arena);
            }
            line.0.arena.store(self.arena.number, Relaxed);
        }
        line.0.arena.load(Relaxed) == self.arena.number
    }

    /// Locks what a key's count needs, and finds it.
    pub(crate) fn lock(&self, hash: u64, limit: Limit, now: Time) -> Row<'_> {
        let hash = hash.max(1);
        let home = self.home(hash);
        let mut row = Row::new(self, hash, home, self.lines[home].lock());
        row.find(now);
        if self.varies {
            row.fit(limit, now);
        }
        row
    }

    fn home(&self, hash: u64) -> usize {
        let lines = self.lines.len() as u64 - 1;
        (((hash >> 32) * lines) >> 32) as usize
    }
}

/// The number of a place among all.
fn place_index(line: usize, way: u8) -> usize {
    line * usize::from(WAYS) + usize::from(way)
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
