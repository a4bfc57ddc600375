//! The commonest decision by far, in as few steps as it takes.

use std::sync::atomic::Ordering::Relaxed;

use super::{Line, Locked, Table, WAYS, place_index};
use crate::{Time, window::Limit};

/// A key that has a place in its own line, is under no verdict and not at its limit; its line locked.
#[derive(Debug)]
pub(crate) struct Calm<'t> {
    table: &'t Table,
    home: usize,
    way: u8,
    line: Locked<'t>,
}

impl Table {
    /// Counts an event of a key that is calm. Otherwise nothing is done: false.
    #[inline]
    pub(crate) fn count_calm(&self, hash: u64, limit: Limit, now: Time) -> bool {
        let hash = hash.max(1);
        let home = self.home(hash);
        let line = self.lines[home].lock();
        let way = self.calm_way(line.0, home, hash, limit, now);
        if let Some(way) = way {
            self.count_at(line.0, home, way, limit, now);
        }
        way.is_some()
    }

    /// Locks the line of a key that is calm; [`Table::lock`] must see to any other.
    #[inline]
    pub(crate) fn calm(&self, hash: u64, limit: Limit, now: Time) -> Option<Calm<'_>> {
        let hash = hash.max(1);
        let home = self.home(hash);
        let line = self.lines[home].lock();
        let way = self.calm_way(line.0, home, hash, limit, now)?;
        Some(Calm { table: self, home, way, line })
    }

    /// Where in its locked line a key is, if it is calm.
    #[inline]
    fn calm_way(&self, line: &Line, home: usize, hash: u64, limit: Limit, now: Time) -> Option<u8> {
        if line.arena.load(Relaxed) != self.arena.number {
            return None;
        }
        let way = (0..WAYS).find(|way| line.places[usize::from(*way)].hash() == hash)?;
        let place = &line.places[usize::from(way)];
        if self.varies && !place.state().is_stampless() {
            let written = self.arena.of(place_index(home, way)).limit().load(Relaxed);
            if written != limit.n {
                return None;
            }
        }
        if self.ticks.is_idle(place.last.load(Relaxed), now) {
            place.state.store(0, Relaxed);
        }
        (!line.is_hot(way) && !place.is_full(&self.ticks, now)).then_some(way)
    }

    #[inline]
    fn count_at(&self, line: &Line, home: usize, way: u8, limit: Limit, now: Time) {
        let words = || self.arena.of(place_index(home, way));
        line.places[usize::from(way)].push(words, limit, &self.ticks, now);
    }
}

impl Calm<'_> {
    /// Counts an event.
    #[inline]
    pub(crate) fn push(&self, limit: Limit, now: Time) {
        self.table.count_at(self.line.0, self.home, self.way, limit, now);
    }
}
