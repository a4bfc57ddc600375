//! One key in the table, its lines locked.

use std::sync::atomic::Ordering::Relaxed;

use super::{Line, Locked, Place, Table, WAYS, arena::Words, place_index};
use crate::{
    Time,
    verdict::{Demand, Standing},
    window::{Limit, State, Ticks, Window},
};

/// One key's place in the table, or that it has none, for as long as its lines are locked.
///
/// Locks are taken in rising order of rule and line, and none after [`Table::lock`] has returned.
#[derive(Debug)]
pub(crate) struct Row<'t> {
    table: &'t Table,
    hash: u64,
    home: usize,
    /// Where the key is: a way of its home, or, counting on, of the next line.
    place: Option<u8>,
    /// Where it can go.
    vacant: Option<u8>,
    line: Locked<'t>,
    next: Option<Locked<'t>>,
}

impl<'t> Row<'t> {
    pub(super) fn new(table: &'t Table, hash: u64, home: usize, line: Locked<'t>) -> Self {
        Row { table, hash, home, place: None, vacant: None, line, next: None }
    }

    /// False where the lines are a later table's.
    pub(super) fn find(&mut self, now: Time) -> bool {
        if !self.table.take_over(&self.line, self.home) {
            return false;
        }
        self.search(0, now);
        let overflowed = self.line.0.overflowed.load(Relaxed) != 0;
        if self.place.is_some() || (self.vacant.is_some() && !overflowed) {
            return true;
        }
        let next = self.table.lines[self.home + 1].lock();
        if !self.table.take_over(&next, self.home + 1) {
            return false;
        }
        let line = self.next.insert(next).0;
        self.search(WAYS, now);
        let mut hashes = line.places.iter().map(Place::hash);
        if overflowed && !hashes.any(|hash| hash != 0 && self.table.home(hash) == self.home) {
            self.line.0.overflowed.store(0, Relaxed);
        }
        true
    }

    /// Rewrites the key's ring if it was written for another limit.
    pub(super) fn fit(&mut self, limit: Limit, now: Time) {
        let Some(at) = self.place else { return };
        let (place, words) = (self.at(at), self.words(at));
        let state = place.state();
        let written = words.limit().load(Relaxed);
        if state.is_stampless() || written == limit.n {
            return;
        }
        let Some(written) = Limit::of(written) else { return };
        let window = self.window(at, written);
        let (state, deciding) = window.rewritten(state, limit, now);
        place.state.store(state.pack(), Relaxed);
        place.deciding.store(deciding.unwrap_or(0), Relaxed);
        words.limit().store(limit.n, Relaxed);
    }

    /// Whether a verdict may stand for the key: not, where it has a place that says so.
    pub(crate) fn may_be_hot(&self) -> bool {
        self.place.is_none_or(|at| self.line_of(at).is_hot(at % WAYS))
    }

    /// Says that a verdict stands for the key, or that none does.
    pub(crate) fn mark_hot(&self, hot: bool) {
        if let Some(at) = self.place {
            self.line_of(at).mark_hot(at % WAYS, hot);
        }
    }

    /// The attempts that the window tells of a key that becomes hot.
    pub(crate) fn demand(&self, limit: Limit) -> Option<Demand> {
        let at = self.place?;
        Some(Demand::new(&self.window(at, limit), self.at(at).state()))
    }

    /// How many events the key's window holds for certain, and those that may have left since the
    /// last one; when the oldest of them leaves.
    pub(crate) fn count(&self, limit: Limit, now: Time) -> (u32, Time) {
        match self.place {
            Some(at) => self.window(at, limit).count(self.at(at).state(), now),
            None => (0, now),
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
                && (found == 0 || self.is_idle(at, now) && self.words(at).pending() == 0)
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
        &self.table.lines[self.home + usize::from(at / WAYS)]
    }

    fn at(&self, at: u8) -> &'t Place {
        &self.line_of(at).places[usize::from(at % WAYS)]
    }

    fn words(&self, at: u8) -> Words<'t> {
        self.table.arena.of(place_index(self.home, 0) + usize::from(at))
    }

    fn window(&self, at: u8, limit: Limit) -> Window<'t> {
        Window { ring: self.words(at).ring(), limit, ticks: &self.table.ticks }
    }

    /// When the key would pass again, if N events stand in its window.
    pub(crate) fn full_until(&self, now: Time) -> Option<Time> {
        let at = self.place?;
        self.is_full(at, now)
            .then(|| self.table.ticks.leaves(self.at(at).deciding.load(Relaxed), now))
    }

    fn is_full(&self, at: u8, now: Time) -> bool {
        self.at(at).is_full(&self.table.ticks, now)
    }

    /// Counts an event, where the key has or finds a place.
    pub(crate) fn push(&mut self, limit: Limit, now: Time, room: &mut Room<'_>) {
        let Some(at) = self.take_place(now, room) else { return };
        self.at(at).push(|| self.words(at), limit, &self.table.ticks, now);
    }

    /// Forgets the key's events, and the responses still to come of requests before now.
    pub(crate) fn clear(&mut self) {
        let Some(at) = self.place else { return };
        self.at(at).state.store(0, Relaxed);
        self.words(at).next_generation();
    }

    /// Requests of the key whose response is still to come.
    pub(crate) fn pending(&self) -> u32 {
        self.place.map_or(0, |at| self.words(at).pending())
    }

    /// Holds a request pending; the generation that its response belongs to, if the key has a place.
    pub(crate) fn hold(&mut self, now: Time, room: &mut Room<'_>) -> Option<u32> {
        let at = self.take_place(now, room)?;
        let words = self.words(at);
        words.set_pending(words.pending().saturating_add(1));
        Some(words.generation())
    }

    /// Releases a pending request; whether its response belongs to what the window holds now.
    pub(crate) fn release(&mut self, generation: u32) -> bool {
        let Some(at) = self.place else { return false };
        let words = self.words(at);
        words.set_pending(words.pending().saturating_sub(1));
        words.generation() == generation
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
            self.words(at).set_pending(0);
            if at >= WAYS {
                self.line.0.overflowed.store(1, Relaxed);
            }
            self.place = Some(at);
            // Who comes back while a verdict stands is known by it.
            self.mark_hot(room.unsure || (room.standing)(self.hash).is_some());
        }
        self.place
    }

    /// The place that gives way to a newcomer, if one does. Both lines are locked.
    fn make_room(&self, now: Time, room: &mut Room<'_>) -> Option<u8> {
        // A full home means that the next line was searched.
        self.next.as_ref()?;
        let places = 0..2 * WAYS;
        let free = |at: &u8| {
            !self.is_full(*at, now) && !self.is_held(*at, room) && self.words(*at).pending() == 0
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
        let longest = places.filter(|at| self.words(*at).pending() == 0).max_by_key(age)?;
        room.evicted_limited += 1;
        Some(longest)
    }

    /// Whether the key of a place is under a verdict that leaves its window filled. A block needs no
    /// place: its verdict alone refuses.
    fn is_held(&self, at: u8, room: &Room<'_>) -> bool {
        self.line_of(at).is_hot(at % WAYS)
            && matches!((room.standing)(self.at(at).hash()), Some(Standing::Hot { .. }))
    }
}

impl Line {
    pub(super) fn is_hot(&self, way: u8) -> bool {
        self.hot.load(Relaxed) >> way & 1 == 1
    }

    fn mark_hot(&self, way: u8, hot: bool) {
        let bits = self.hot.load(Relaxed) & !(1 << way);
        self.hot.store(bits | u8::from(hot) << way, Relaxed);
    }
}

impl Place {
    /// Whether N events stand in the window of the place's key, which is not idle.
    #[inline]
    pub(super) fn is_full(&self, ticks: &Ticks, now: Time) -> bool {
        self.state().reached && ticks.is_inside(self.deciding.load(Relaxed), now)
    }

    /// Counts an event of the place's key.
    #[inline]
    pub(super) fn push<'w>(
        &self,
        words: impl FnOnce() -> Words<'w>,
        limit: Limit,
        ticks: &Ticks,
        now: Time,
    ) {
        let word = self.state.load(Relaxed);
        let before = State::unpack(word);
        // Mostly no stamp is due, there are too few for one to decide, and all were looked through in
        // this epoch: then the ring is none of the event's business.
        if self.last.load(Relaxed) == ticks.epoch(now) && before.only_counts(limit) {
            return self.state.store(word + State::ONE_EVENT, Relaxed);
        }
        self.push_to_ring(before, words(), limit, ticks, now);
    }

    fn push_to_ring(
        &self,
        before: State,
        words: Words<'_>,
        limit: Limit,
        ticks: &Ticks,
        now: Time,
    ) {
        let window = Window { ring: words.ring(), limit, ticks };
        let (state, deciding) = window.push(before, now);
        if before.is_stampless() && !state.is_stampless() {
            words.limit().store(limit.n, Relaxed);
        }
        self.state.store(state.pack(), Relaxed);
        self.deciding.store(deciding.unwrap_or(0), Relaxed);
        self.last.store(ticks.epoch(now), Relaxed);
    }
}

/// What making room for a key needs to know, and what came of it.
pub(crate) struct Room<'a> {
    /// What stands for a key.
    pub(crate) standing: &'a dyn Fn(u64) -> Option<Standing>,
    /// Verdicts may stand that are not told of here.
    pub(crate) unsure: bool,
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
