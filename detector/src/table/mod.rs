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
//! Engines that follow one another share lines. Where limits change by a reload, the lines pass to the
//! table that follows, each when it is next locked by it, and a ring that was written for another limit
//! is rewritten when its key comes again. A ring may need more room than the arena gives it: then the
//! lines' words move to a new arena on the way. A thread that the reload overtakes in mid-decision finds
//! that a line is not its table's any more, and goes on by the table that follows.

mod arena;
mod calm;
mod row;
#[cfg(test)]
mod tests;

use std::{
    num::NonZeroU32,
    sync::{
        Arc, OnceLock,
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
    /// Tells its lines from those of the tables before and after; it wraps.
    number: u8,
    /// Whose some lines may still be, and where their words are.
    previous: Option<(u8, Arc<Arena>)>,
    /// The table that follows, once there is one; clones of a table have one in common.
    next: Arc<OnceLock<Table>>,
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
    /// The number of the table whose it is: in that one's arena are the words of its places, written
    /// for that one's limits.
    number: AtomicU8,
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
        let arena = Arena::new(lines.len(), limits, responses).into();
        let (previous, next) = (None, Arc::default());
        Table { lines, arena, number: 0, previous, next, ticks, limit: limits[0], varies }
    }

    /// The same keys with other limits, in the table that follows this one; there is but one.
    pub(crate) fn with_limits(&self, limits: &[Limit]) -> Self {
        self.settle();
        let grown = self.arena.grown(self.lines.len(), limits).map(Arc::new);
        let table = Table {
            lines: Arc::clone(&self.lines),
            arena: grown.unwrap_or_else(|| Arc::clone(&self.arena)),
            number: self.number.wrapping_add(1),
            previous: Some((self.number, Arc::clone(&self.arena))),
            next: Arc::default(),
            ticks: self.ticks,
            limit: limits[0],
            varies: true,
        };
        let first = self.next.set(table.clone()).is_ok();
        debug_assert!(first, "a table is followed once");
        table
    }

    /// Takes over the lines that are still the table's before, so that its arena is free to go.
    pub(crate) fn settle(&self) {
        if self.previous.is_some() {
            for index in 0..self.lines.len() {
                self.take_over(&self.lines[index].lock(), index);
            }
        }
    }

    /// Forgets the events of all keys.
    pub(crate) fn clear(&self) {
        if let Some(next) = self.next.get() {
            return next.clear();
        }
        for index in 0..self.lines.len() {
            let line = self.lines[index].lock();
            if self.take_over(&line, index) {
                for way in 0..WAYS {
                    line.0.places[usize::from(way)].state.store(0, Relaxed);
                    self.arena.of(place_index(index, way)).next_generation();
                }
            }
        }
    }

    /// Whether a locked line is this table's, or becomes it now. Not if a table that follows has it.
    #[inline]
    fn take_over(&self, line: &Locked<'_>, index: usize) -> bool {
        line.0.number.load(Relaxed) == self.number || self.take_from_previous(line, index)
    }

    #[cold]
    fn take_from_previous(&self, line: &Locked<'_>, index: usize) -> bool {
        let Some((number, arena)) = &self.previous else { return false };
        let is_theirs = line.0.number.load(Relaxed) == *number;
        if is_theirs {
            if !Arc::ptr_eq(arena, &self.arena) {
                // Pages of places that were never used cost nothing, unless they are written.
                let used = (0..WAYS).filter(|way| line.0.places[usize::from(*way)].hash() != 0);
                used.for_each(|way| arena.copy(place_index(index, way), &self.arena));
            }
            line.0.number.store(self.number, Relaxed);
        }
        is_theirs
    }

    /// Locks what a key's count needs, and finds it.
    pub(crate) fn lock(&self, hash: u64, limit: Limit, now: Time) -> Row<'_> {
        let hash = hash.max(1);
        let home = self.home(hash);
        let mut table = self;
        loop {
            let mut row = Row::new(table, hash, home, table.lines[home].lock());
            let found = row.find(now);
            match table.next.get() {
                Some(next) if !found => table = next,
                _ => {
                    if table.varies {
                        row.fit(limit, now);
                    }
                    return row;
                }
            }
        }
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
