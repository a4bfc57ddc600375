//! The commonest decision by far, in as few steps as it takes.

use std::sync::atomic::Ordering::Relaxed;

use super::{Line, Locked, Table, WAYS, place_index};
use crate::{Time, window::Limit};

/// A key that has a place, is under no verdict and not at its limit; its lines locked.
#[derive(Debug)]
pub(crate) struct Calm<'t> {
    table: &'t Table,
    /// Where its place is.
    index: usize,
    way: u8,
    home: Locked<'t>,
    /// Where its place is in the line after its home.
    next: Option<Locked<'t>>,
}

impl Table {
    /// Counts an event of a key that is calm. Otherwise nothing is done: false.
    #[inline]
    pub(crate) fn count_calm(&self, hash: u64, limit: Limit, now: Time) -> bool {
        let hash = hash.max(1);
        let index = self.home(hash);
        let line = self.lines[index].lock();
        match way_of(line.0, hash) {
            Some(way) => self.count_if_calm(line.0, index, way, limit, now),
            None if line.0.overflowed.load(Relaxed) == 0 => false,
            None => self.count_calm_next(index + 1, hash, limit, now),
        }
    }

    /// Locks the lines of a key that is calm; [`Table::lock`] must see to any other.
    #[inline]
    pub(crate) fn calm(&self, hash: u64, limit: Limit, now: Time) -> Option<Calm<'_>> {
        let hash = hash.max(1);
        let mut index = self.home(hash);
        let home = self.lines[index].lock();
        let mut next = None;
        let way = match way_of(home.0, hash) {
            Some(way) => way,
            None if home.0.overflowed.load(Relaxed) == 0 => return None,
            None => {
                index += 1;
                way_of(next.insert(self.lines[index].lock()).0, hash)?
            }
        };
        let line = next.as_ref().unwrap_or(&home).0;
        self.is_calm(line, index, way, limit, now).then_some(Calm {
            table: self,
            index,
            way,
            home,
            next,
        })
    }

    #[inline(never)]
    fn count_calm_next(&self, index: usize, hash: u64, limit: Limit, now: Time) -> bool {
        let line = self.lines[index].lock();
        let way = way_of(line.0, hash);
        way.is_some_and(|way| self.count_if_calm(line.0, index, way, limit, now))
    }

    #[inline]
    fn count_if_calm(&self, line: &Line, index: usize, way: u8, limit: Limit, now: Time) -> bool {
        let is_calm = self.is_calm(line, index, way, limit, now);
        if is_calm {
            self.count_at(line, index, way, limit, now);
        }
        is_calm
    }

    /// Whether the key at a place of a locked line is calm.
    #[inline]
    fn is_calm(&self, line: &Line, index: usize, way: u8, limit: Limit, now: Time) -> bool {
        if line.number.load(Relaxed) != self.number || line.is_hot(way) {
            return false;
        }
        let place = &line.places[usize::from(way)];
        if self.varies && !place.state().is_stampless() {
            let written = self.arena.of(place_index(index, way)).limit().load(Relaxed);
            if written != limit.n {
                return false;
            }
        }
        let last = place.last.load(Relaxed);
        if last != self.ticks.epoch(now) && self.ticks.is_idle(last, now) {
            place.state.store(0, Relaxed);
        }
        !place.is_full(&self.ticks, now)
    }

    #[inline]
    fn count_at(&self, line: &Line, index: usize, way: u8, limit: Limit, now: Time) {
        let words = || self.arena.of(place_index(index, way));
        line.places[usize::from(way)].push(words, limit, &self.ticks, now);
    }
}

/// Where in a line a key is.
#[inline]
fn way_of(line: &Line, hash: u64) -> Option<u8> {
    (0..WAYS).find(|way| line.places[usize::from(*way)].hash() == hash)
}

impl Calm<'_> {
    /// Counts an event.
    #[inline]
    pub(crate) fn push(&self, limit: Limit, now: Time) {
        let line = self.next.as_ref().unwrap_or(&self.home).0;
        self.table.count_at(line, self.index, self.way, limit, now);
    }
}
