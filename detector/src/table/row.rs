//! One key in the table, its lines locked.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{GENERATION, Line, Locked, PENDING, Place, Table, WAYS};
use crate::{
    Time,
    window::{Limit, State, Window},
};

/// One key's place in the table, or that it has none, for as long as its lines are locked.
///
/// Locks are taken in rising order of rule and line, and none after [`Table::lock`] has returned.
#[derive(Debug)]
pub(crate) struct Row<'t> {
    pub(super) table: &'t Table,
    pub(super) hash: u64,
    pub(super) home: u32,
    /// Where the key is: a way of its home, or, counting on, of the next line.
    pub(super) place: Option<u8>,
    /// Where it can go.
    pub(super) vacant: Option<u8>,
    pub(super) line: Locked<'t>,
    pub(super) next: Option<Locked<'t>>,
}

impl<'t> Row<'t> {
    pub(super) fn find(&mut self, now: Time) {
        self.search(0, now);
        let overflowed = self.line.0.overflowed.load(Relaxed) != 0;
        if self.place.is_some() || (self.vacant.is_some() && !overflowed) {
            return;
        }
        let next = &self.table.lines[self.home as usize + 1];
        self.next = Some(next.lock());
        self.search(WAYS, now);
        let mut hashes = next.places.iter().map(Place::hash);
        if overflowed && !hashes.any(|hash| hash != 0 && self.table.home(hash) == self.home) {
            self.line.0.overflowed.store(0, Relaxed);
        }
    }

    fn search(&mut self, first: u8, now: Time) {
        for at in first..first + WAYS {
            let place = self.at(at);
            let found = place.hash();
            if found == self.hash {
                if self.is_idle(at, now) {
                    place.state.store(0, Relaxed);
                }
                self.place = Some(at);
                return;
            }
            if self.vacant.is_none()
                && (found == 0 || self.is_idle(at, now) && self.pending_at(at) == 0)
            {
                self.vacant = Some(at);
            }
        }
    }

    /// Whether all events of a place have left the window, so that its stamps may be too old to tell.
    fn is_idle(&self, at: u8, now: Time) -> bool {
        self.table.ticks.is_idle(self.at(at).last.load(Relaxed), now)
    }

    fn line_of(&self, at: u8) -> &'t Line {
        &self.table.lines[self.home as usize + usize::from(at / WAYS)]
    }

    fn at(&self, at: u8) -> &'t Place {
        &self.line_of(at).places[usize::from(at % WAYS)]
    }

    fn words(&self, at: u8) -> &'t [AtomicU32] {
        let place = self.home as usize * usize::from(WAYS) + usize::from(at);
        &self.table.arena[place * self.table.stride..][..self.table.stride]
    }

    fn window(&self, at: u8, limit: Limit) -> Window<'t> {
        let ring = &self.words(at)[self.table.head_words..];
        Window { ring, limit, ticks: &self.table.ticks }
    }

    /// When the key would pass again, if N events stand in its window.
    pub(crate) fn full_until(&self, now: Time) -> Option<Time> {
        let at = self.place?;
        self.is_full(at, now)
            .then(|| self.table.ticks.leaves(self.at(at).deciding.load(Relaxed), now))
    }

    fn is_full(&self, at: u8, now: Time) -> bool {
        let place = self.at(at);
        place.state().reached && self.table.ticks.is_inside(place.deciding.load(Relaxed), now)
    }

    /// Counts an event, where the key has or finds a place.
    pub(crate) fn push(&mut self, limit: Limit, now: Time, room: &mut Room<'_>) {
        let Some(at) = self.take_place(now, room) else { return };
        let place = self.at(at);
        let (state, deciding) = self.window(at, limit).push(place.state(), now);
        place.state.store(state.pack(), Relaxed);
        place.deciding.store(deciding.unwrap_or(0), Relaxed);
        place.last.store(self.table.ticks.epoch(now), Relaxed);
    }

    /// Forgets the key's events, and the responses still to come of requests before now.
    pub(crate) fn clear(&mut self) {
        let Some(at) = self.place else { return };
        self.at(at).state.store(0, Relaxed);
        if self.table.head_words > 0 {
            let generation = &self.words(at)[GENERATION];
            generation.store(generation.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }

    /// A window that goes on from this one with a lower limit.
    pub(crate) fn copy(&self, limit: Limit, to: Limit) -> (State, Box<[AtomicU32]>) {
        match self.place {
            Some(at) => self.window(at, limit).copy(self.at(at).state(), to),
            None => (State::default(), (0..to.ring_len()).map(|_| AtomicU32::new(0)).collect()),
        }
    }

    /// Says that the key is under a verdict that leaves its window filled, so that it keeps its place.
    pub(crate) fn mark_hot(&self) {
        if let Some(at) = self.place {
            let hot = &self.line_of(at).hot;
            hot.store(hot.load(Relaxed) | 1 << (at % WAYS), Relaxed);
        }
    }

    /// Requests of the key whose response is still to come.
    pub(crate) fn pending(&self) -> u32 {
        self.place.map_or(0, |at| self.pending_at(at))
    }

    fn pending_at(&self, at: u8) -> u32 {
        if self.table.head_words == 0 { 0 } else { self.words(at)[PENDING].load(Relaxed) }
    }

    /// Holds a request pending; the generation that its response belongs to, if the key has a place.
    pub(crate) fn hold(&mut self, now: Time, room: &mut Room<'_>) -> Option<u32> {
        let at = self.take_place(now, room)?;
        let words = self.words(at);
        words[PENDING].store(words[PENDING].load(Relaxed).saturating_add(1), Relaxed);
        Some(words[GENERATION].load(Relaxed))
    }

    /// Releases a pending request; whether its response belongs to what the window holds now.
    pub(crate) fn release(&mut self, generation: u32) -> bool {
        let Some(at) = self.place else { return false };
        let words = self.words(at);
        words[PENDING].store(words[PENDING].load(Relaxed).saturating_sub(1), Relaxed);
        words[GENERATION].load(Relaxed) == generation
    }

    fn take_place(&mut self, now: Time, room: &mut Room<'_>) -> Option<u8> {
        if self.place.is_none() {
            let at = self.vacant.or_else(|| self.make_room(now, room));
            let Some(at) = at else {
                room.untracked += 1;
                return None;
            };
            let place = self.at(at);
            place.set_hash(self.hash);
            place.state.store(0, Relaxed);
            place.last.store(self.table.ticks.epoch(now), Relaxed);
            if self.table.head_words > 0 {
                self.words(at)[PENDING].store(0, Relaxed);
            }
            if at >= WAYS {
                self.line.0.overflowed.store(1, Relaxed);
            }
            self.place = Some(at);
            let hot = &self.line_of(at).hot;
            hot.store(hot.load(Relaxed) & !(1 << (at % WAYS)), Relaxed);
        }
        self.place
    }

    /// The place that gives way to a newcomer, if one does. Both lines are locked.
    fn make_room(&self, now: Time, room: &mut Room<'_>) -> Option<u8> {
        debug_assert!(self.next.is_some(), "a full home means that the next line was searched");
        let places = 0..2 * WAYS;
        let free = |at: &u8| {
            !self.is_full(*at, now) && !self.is_hot(*at, room) && self.pending_at(*at) == 0
        };
        let count = |at: u8| self.at(at).state().count(self.table.limit);
        let lowest = places
            .clone()
            .filter(free)
            .min_by_key(|at| (count(*at), mix(self.at(*at).hash(), now)));
        if let Some(at) = lowest {
            let admitted =
                u64::from(mix(self.hash, now)) * (u64::from(count(at)) + 1) <= u64::from(u32::MAX);
            if admitted && count(at) > 0 {
                room.evicted_live += 1;
            }
            return admitted.then_some(at);
        }
        // Six of six are protected: the one that has been at its limit for longest goes, so that
        // newcomers are still counted in one way of six.
        let age = |at: &u8| {
            let age = self.table.ticks.age(self.at(*at).deciding.load(Relaxed), now);
            (self.is_full(*at, now), age)
        };
        let longest = places.filter(|at| self.pending_at(*at) == 0).max_by_key(age)?;
        room.evicted_limited += 1;
        Some(longest)
    }

    fn is_hot(&self, at: u8, room: &Room<'_>) -> bool {
        self.line_of(at).hot.load(Relaxed) >> (at % WAYS) & 1 == 1
            && (room.is_standing)(self.at(at).hash())
    }
}

/// What making room for a key needs to know, and what came of it.
pub(crate) struct Room<'a> {
    /// Whether a verdict stands for a key.
    pub(crate) is_standing: &'a dyn Fn(u64) -> bool,
    /// Keys that lost a count in use.
    pub(crate) evicted_live: u64,
    /// Keys at their limit or under a verdict that lost their count.
    pub(crate) evicted_limited: u64,
    /// Events that no place could be found for.
    pub(crate) untracked: u64,
}

/// A number that looks random: the hash is keyed, and the time differs from call to call.
fn mix(hash: u64, now: Time) -> u32 {
    let mixed = (hash ^ now.as_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}
