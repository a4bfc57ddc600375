//! The commonest decision by far, in as few steps as it takes.

use std::sync::atomic::Ordering::Relaxed;

use super::{Locked, Table, WAYS, place_index};
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
    /// Locks the line of a key, if that is all there is to it; otherwise [`Table::lock`] must see to it.
    #[inline]
    pub(crate) fn calm(&self, hash: u64, now: Time) -> Option<Calm<'_>> {
        let hash = hash.max(1);
        let home = self.home(hash);
        let line = self.lines[home].lock();
        if self.varies || line.0.arena.load(Relaxed) != self.arena.number {
            return None;
        }
        let mut ways = 0..WAYS;
        let way = ways.find(|way| line.0.places[usize::from(*way)].hash() == hash)?;
        let place = &line.0.places[usize::from(way)];
        if self.ticks.is_idle(place.last.load(Relaxed), now) {
            place.state.store(0, Relaxed);
        }
        let is_calm = !line.0.is_hot(way) && !place.is_full(&self.ticks, now);
        is_calm.then_some(Calm { table: self, home, way, line })
    }
}

impl Calm<'_> {
    /// Counts an event.
    #[inline]
    pub(crate) fn push(&self, limit: Limit, now: Time) {
        let place = &self.line.0.places[usize::from(self.way)];
        let words = self.table.arena.of(place_index(self.home, self.way));
        place.push(words, limit, &self.table.ticks, now);
    }
}
