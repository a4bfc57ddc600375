//! One rule's verdicts: which keys are hot, and until when.
//!
//! Verdicts stand apart from the counts, in a map with its own capacity, so that no flood of new keys
//! can push one out. Whoever changes a verdict for a request holds the key's line in the counting
//! table, so that window and verdict agree.

mod map;
mod pace;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use hotgate_rules::{Action, Block, Pace};

use crate::{
    Change, Event, Time,
    counters::VerdictLosses,
    window::{Limit, State, Ticks, Window},
};
use map::Map;
use pace::Pacer;

/// How often a verdict whose end moves out is said to go on.
const GOES_ON_EVERY: Duration = Duration::from_secs(10);

/// How often a verdict whose end has not moved out for that long is looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Events of one rule that wait for a tick; beyond it they are dropped and counted. Ten ticks a
/// second take away far more than a rule that holds 65,536 verdicts brings.
const EVENTS_MAX: usize = 65_536;

/// What stands for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The window refuses, not the verdict; or the pace does, until then.
    Hot { wait: Option<Time> },
    /// A block, and its end.
    Blocked(Time),
}

/// The verdicts of one kind of action of one rule.
#[derive(Debug)]
pub(crate) struct Verdicts {
    rule: Arc<str>,
    /// The action's name.
    action: &'static str,
    ticks: Ticks,
    window: Duration,
    standing: Map<Verdict>,
    /// Blocks that have ended but make the next one longer.
    past: Map<Past>,
    /// When the next verdict may end or be said to go on: a tick has nothing to look for before.
    due: AtomicU64,
    events: Mutex<Vec<Event>>,
    losses: Arc<VerdictLosses>,
    /// The rule has come to mean something else: see [`Verdicts::void`].
    is_void: AtomicBool,
}

#[derive(Debug)]
struct Verdict {
    key: Arc<str>,
    kind: Kind,
    since: Time,
    until: Time,
    /// The end that was said last, and when.
    said: (Time, Time),
    /// Whether its beginning was said; otherwise nothing is.
    told: bool,
    repeat: u32,
    observed: bool,
    manual: bool,
}

impl Verdict {
    /// One that the rule itself comes to, for the first time.
    fn new(subject: Subject, kind: Kind, until: Time, now: Time) -> Self {
        let Subject { key, observed, .. } = subject;
        let said = (until, now);
        Verdict {
            key,
            kind,
            since: now,
            until,
            said,
            told: false,
            repeat: 1,
            observed,
            manual: false,
        }
    }

    fn standing(&self, now: Time) -> Standing {
        match &self.kind {
            Kind::Hot { pacer, .. } => {
                Standing::Hot { wait: pacer.as_ref().and_then(|pacer| pacer.wait(now)) }
            }
            Kind::Block { .. } => Standing::Blocked(self.until),
        }
    }
}

#[derive(Debug)]
enum Kind {
    Hot {
        demand: Demand,
        pacer: Option<Box<Pacer>>,
    },
    Block {
        lasts: Duration,
        /// How long it makes the next one longer, if it does.
        forget: Option<Duration>,
        /// Whether attempts push its end out.
        extends: bool,
    },
}

/// A verdict that stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StandingVerdict {
    /// The rule.
    pub rule: Arc<str>,
    /// The rule's action: `throttle`, `block`, `tag` or `handler`.
    pub action: &'static str,
    /// The key as it is printed.
    pub key: Arc<str>,
    /// When it began.
    pub since: Time,
    /// When it ends, as far as is known.
    pub until: Time,
    /// The rule observes: nobody is refused.
    pub observed: bool,
    /// Set by an operator.
    pub manual: bool,
    /// Which block in a row this is, from 1.
    pub repeat: u32,
    /// Attempts in the rule's last window; of a block, which counts none, nothing.
    pub attempts: Option<u32>,
}

impl StandingVerdict {
    /// That it ends because the rule came to mean something else, or went.
    pub(crate) fn voided(&self, now: Time) -> Event {
        Event {
            rule: Arc::clone(&self.rule),
            action: self.action,
            key: Arc::clone(&self.key),
            change: Change::Voided,
            since: self.since,
            until: now,
            observed: self.observed,
            manual: self.manual,
            repeat: self.repeat,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Past {
    lasts: Duration,
    repeat: u32,
    forgotten: Time,
}

/// The attempts of a throttled key. It cools once they have been below 0.8 N for a whole window.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) limit: Limit,
    pub(crate) state: State,
    pub(crate) ring: Box<[AtomicU32]>,
}

impl Demand {
    /// The attempts known of a key that becomes hot, in a ring of their own.
    pub(crate) fn new(known: &Window<'_>, state: State) -> Self {
        let limit = known.limit.cooling();
        let (state, ring) = known.copied(state, limit);
        Demand { limit, state, ring }
    }

    /// A key that nothing is known of yet.
    pub(crate) fn none(limit: Limit) -> Self {
        let limit = limit.cooling();
        let ring = (0..limit.ring_len()).map(|_| AtomicU32::new(0)).collect();
        Demand { limit, state: State::default(), ring }
    }

    /// Goes by another limit, if it went by another.
    fn fit(&mut self, limit: Limit, ticks: &Ticks) {
        let limit = limit.cooling();
        if limit != self.limit {
            let (state, ring) = self.window(ticks).copied(self.state, limit);
            *self = Demand { limit, state, ring };
        }
    }

    fn window<'a>(&'a self, ticks: &'a Ticks) -> Window<'a> {
        Window { ring: &self.ring, limit: self.limit, ticks }
    }
}

/// Whom a verdict is about.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) hash: u64,
    pub(crate) key: Arc<str>,
    /// Nobody is refused for it.
    pub(crate) observed: bool,
}

impl Verdicts {
    pub(crate) fn new(
        rule: Arc<str>,
        action: &'static str,
        ticks: Ticks,
        window: Duration,
        capacity: u32,
        losses: Arc<VerdictLosses>,
    ) -> Self {
        Verdicts {
            rule,
            action,
            ticks,
            window,
            standing: Map::new(capacity),
            past: Map::new(capacity),
            due: AtomicU64::new(u64::MAX),
            events: Mutex::default(),
            losses,
            is_void: AtomicBool::new(false),
        }
    }

    /// How many stand.
    pub(crate) fn len(&self) -> u32 {
        self.standing.len()
    }

    /// Whether these are no more the verdicts of the rule, but only of threads that a reload overtakes
    /// in mid-decision; they know nothing of those that stand now.
    pub(crate) fn is_void(&self) -> bool {
        self.is_void.load(Acquire)
    }

    /// What stands for a key; next to nothing where no verdict stands at all.
    pub(crate) fn standing(&self, hash: u64, now: Time) -> Option<Standing> {
        if self.standing.len() == 0 {
            return None;
        }
        let verdict = self.standing.map.get(&hash).filter(|verdict| verdict.until > now)?;
        Some(verdict.standing(now))
    }

    /// What stands for a key whose pace is now this one, if it has one.
    pub(crate) fn standing_at(&self, hash: u64, action: &Action, now: Time) -> Option<Standing> {
        if self.standing.len() == 0 {
            return None;
        }
        let pace = match action {
            Action::Throttle(pace) => *pace,
            _ => None,
        };
        let verdict = self.standing.map.get(&hash).filter(|verdict| verdict.until > now)?;
        match &verdict.kind {
            Kind::Hot { pacer, .. } if pacer.as_ref().map(|pacer| pacer.pace) != pace => {}
            _ => return Some(verdict.standing(now)),
        }
        drop(verdict);
        let mut verdict = self.standing.map.get_mut(&hash)?;
        if let Kind::Hot { pacer, .. } = &mut verdict.kind {
            let changed = pace.and_then(|pace| match pacer {
                Some(pacer) => pacer.at(pace, now),
                None => Pacer::new(pace),
            });
            *pacer = changed.map(Box::new);
        }
        Some(verdict.standing(now))
    }

    /// Counts an attempt under a verdict that stands; when it ends now. `action` are the terms the key
    /// has now; `passes`: nothing refuses the request.
    pub(crate) fn attempt(
        &self,
        hash: u64,
        limit: Limit,
        action: &Action,
        passes: bool,
        now: Time,
    ) -> Option<Time> {
        let mut verdict = self.standing.map.get_mut(&hash)?;
        let Verdict { kind, until, manual, .. } = &mut *verdict;
        let end = match kind {
            Kind::Hot { demand, pacer } => {
                demand.fit(limit, &self.ticks);
                (demand.state, _) = demand.window(&self.ticks).push(demand.state, now);
                if let (Some(pacer), true) = (pacer, passes) {
                    pacer.charge();
                }
                self.cools(demand, now)
            }
            Kind::Block { lasts, extends, .. } => {
                // Never an operator's, who said when it ends.
                let extend = matches!(action, Action::Block(Block { extend: true, .. }));
                *extends = extend && !*manual;
                extends.then(|| now.plus(*lasts))
            }
        };
        *until = end.map_or(*until, |end| end.max(*until));
        Some(*until)
    }

    /// When the key will have cooled if nothing more comes.
    fn cools(&self, demand: &Demand, now: Time) -> Option<Time> {
        // While the deciding attempt is inside, 0.8 N of them stand; a whole window later it is over.
        let deciding = demand.window(&self.ticks).deciding(demand.state, now);
        deciding.map(|stamp| self.ticks.leaves(stamp, now).plus(self.window))
    }

    /// Begins a verdict that lasts until the key has cooled; `demand` holds the attempts that are
    /// known. At least 0.8 N stand now, so that it lasts for a window at least.
    pub(crate) fn heat(
        &self,
        subject: Subject,
        demand: Demand,
        pace: Option<Pace>,
        now: Time,
    ) -> bool {
        let soonest = now.plus(self.window);
        let until = self.cools(&demand, now).map_or(soonest, |cool| cool.max(soonest));
        let pacer = pace.and_then(Pacer::new).map(Box::new);
        let kind = Kind::Hot { demand, pacer };
        self.begin(subject.hash, Verdict::new(subject, kind, until, now))
    }

    /// Begins a block by the rule's terms, longer if it is a repeat; its length, or `None` where it
    /// could not be stored.
    pub(crate) fn block(&self, subject: Subject, terms: &Block, now: Time) -> Option<Duration> {
        self.end_former(subject.hash);
        let past =
            self.past.map.get(&subject.hash).map(|past| *past).filter(|past| past.forgotten > now);
        let (lasts, repeat) = past.map_or((terms.lasts, 1), |past| {
            (
                past.lasts.saturating_mul(terms.grow.get()).min(terms.max),
                past.repeat.saturating_add(1),
            )
        });
        let hash = subject.hash;
        let forget = (terms.grow.get() > 1).then_some(terms.forget);
        let kind = Kind::Block { lasts, forget, extends: terms.extend };
        let verdict = Verdict::new(subject, kind, now.plus(lasts), now);
        self.begin(hash, Verdict { repeat, ..verdict }).then_some(lasts)
    }

    /// Blocks a key by hand, in the place of whatever stands; false, and nothing changed, where
    /// nothing stands and there is no room.
    pub(crate) fn block_by_hand(&self, subject: Subject, lasts: Duration, now: Time) -> bool {
        let hash = subject.hash;
        let stood = self.standing.take(hash);
        if stood.is_none() && !self.standing.reserve() {
            return false;
        }
        if let Some(verdict) = stood {
            self.say_lifted(&verdict, now);
        }
        self.past.remove_if(hash, |_| true);
        let kind = Kind::Block { lasts, forget: None, extends: false };
        let verdict = Verdict::new(subject, kind, now.plus(lasts), now);
        self.stand(hash, Verdict { manual: true, ..verdict });
        true
    }

    /// Goes on with an operator's verdict, which was said when it began; false if there is no room, or
    /// one stands already.
    pub(crate) fn go_on(&self, subject: Subject, stood: &StandingVerdict) -> bool {
        let hash = subject.hash;
        if self.standing.map.contains_key(&hash) || !self.standing.reserve() {
            return false;
        }
        let StandingVerdict { since, until, .. } = *stood;
        let kind = Kind::Block { lasts: until.since(since), forget: None, extends: false };
        let verdict = Verdict::new(subject, kind, until, since);
        self.standing.insert_reserved(hash, Verdict { manual: true, told: true, ..verdict });
        self.due.fetch_min(until.as_nanos(), AcqRel);
        true
    }

    /// Whether there is room for a verdict.
    pub(crate) fn is_roomy(&self) -> bool {
        self.standing.has_room()
    }

    /// Whether there is room for a verdict; counts one that finds none. Asked before one is made
    /// up, so that a full table makes no refusal dear.
    pub(crate) fn has_room(&self) -> bool {
        let has_room = self.standing.has_room();
        self.losses.unstored.fetch_add(u64::from(!has_room), Relaxed);
        has_room
    }

    fn begin(&self, hash: u64, verdict: Verdict) -> bool {
        self.end_former(hash);
        let reserved = self.standing.reserve();
        if reserved {
            self.stand(hash, verdict);
        }
        reserved
    }

    /// Lets a verdict stand that has room.
    fn stand(&self, hash: u64, mut verdict: Verdict) {
        let look = verdict.until.min(verdict.since.plus(GOES_ON_EVERY));
        verdict.told = true;
        verdict.told = self.say(&verdict, Change::Began, verdict.until);
        self.standing.insert_reserved(hash, verdict);
        self.due.fetch_min(look.as_nanos(), AcqRel);
    }

    /// Ends a key's verdict, whatever it is, and forgets its past blocks. Whether one stood.
    pub(crate) fn lift(&self, hash: u64, now: Time) -> bool {
        let mut stood = false;
        self.standing.remove_if(hash, |verdict| {
            stood = self.say_lifted(verdict, now);
            true
        });
        // Last, for a tick that ends the verdict meanwhile makes it a past one first.
        self.past.remove_if(hash, |_| true);
        stood
    }

    /// Ends all verdicts, whatever they are, and forgets all past blocks. How many stood.
    pub(crate) fn lift_all(&self, now: Time) -> usize {
        let mut stood = 0;
        self.standing.retain(|_, verdict| {
            stood += usize::from(self.say_lifted(verdict, now));
            false
        });
        self.past.retain(|_, _| false);
        stood
    }

    /// Says that an operator ended a verdict, unless it was over; whether it stood.
    fn say_lifted(&self, verdict: &Verdict, now: Time) -> bool {
        let stood = verdict.until > now;
        if stood {
            self.say(verdict, Change::Lifted, now);
        } else {
            self.say(verdict, Change::Ended, verdict.until);
        }
        stood
    }

    /// The hash of a key that a verdict stands for, by its printed form.
    pub(crate) fn find(&self, key: &str) -> Option<u64> {
        let mut verdicts = self.standing.map.iter();
        verdicts.find(|verdict| *verdict.key == *key).map(|verdict| *verdict.key())
    }

    /// Ends what is over, and takes the events since the last tick.
    pub(crate) fn tick(&self, now: Time) -> Vec<Event> {
        if now.as_nanos() >= self.due.load(Acquire) {
            self.sweep(now);
        }
        self.take_events()
    }

    fn sweep(&self, now: Time) {
        // Whoever lowered it before has put its verdict where this sweep sees it.
        self.due.swap(u64::MAX, AcqRel);
        let mut due = Time::MAX;
        self.standing.retain(|hash, verdict| {
            if verdict.until <= now {
                self.say(verdict, Change::Ended, verdict.until);
                self.ended(*hash, verdict);
                return false;
            }
            if verdict.until > verdict.said.0 && now.since(verdict.said.1) >= GOES_ON_EVERY {
                verdict.said = (verdict.until, now);
                self.say(verdict, Change::GoesOn, verdict.until);
            }
            due = due.min(verdict.until);
            if !matches!(verdict.kind, Kind::Block { extends: false, .. }) {
                due = due.min(verdict.said.1.plus(GOES_ON_EVERY).max(now.plus(LOOK_EVERY)));
            }
            true
        });
        self.past.retain(|_, past| {
            due = due.min(if past.forgotten > now { past.forgotten } else { Time::MAX });
            past.forgotten > now
        });
        self.due.fetch_min(due.as_nanos(), AcqRel);
    }

    /// Ends what a key's next verdict finds: whoever begins one has seen that none stands, if only by the
    /// clock of a thread whose clock is newer.
    fn end_former(&self, hash: u64) {
        let ends = |verdict: &Verdict| {
            self.say(verdict, Change::Ended, verdict.until);
            true
        };
        if let Some(verdict) = self.standing.remove_if(hash, ends) {
            self.ended(hash, &verdict);
        }
    }

    /// Remembers a block that has ended, if it makes the next one longer.
    fn ended(&self, hash: u64, verdict: &Verdict) {
        let Kind::Block { lasts, forget: Some(forget), .. } = verdict.kind else { return };
        self.past.remove_if(hash, |_| true);
        if self.past.reserve() {
            let forgotten = verdict.until.plus(forget);
            let past = Past { lasts, repeat: verdict.repeat, forgotten };
            self.past.insert_reserved(hash, past);
        } else {
            self.losses.forgotten_blocks.fetch_add(1, Relaxed);
        }
    }

    /// The verdicts that stand.
    pub(crate) fn all(&self, now: Time) -> Vec<StandingVerdict> {
        let standing = self.standing.map.iter().filter(|verdict| verdict.until > now);
        standing.map(|verdict| self.shown(&verdict, now)).collect()
    }

    /// The verdict that stands for a key.
    pub(crate) fn one(&self, hash: u64, now: Time) -> Option<StandingVerdict> {
        let verdict = self.standing.map.get(&hash).filter(|verdict| verdict.until > now)?;
        Some(self.shown(&verdict, now))
    }

    fn shown(&self, verdict: &Verdict, now: Time) -> StandingVerdict {
        let attempts = match &verdict.kind {
            Kind::Hot { demand, .. } => Some(demand.window(&self.ticks).count(demand.state, now).0),
            Kind::Block { .. } => None,
        };
        StandingVerdict {
            rule: Arc::clone(&self.rule),
            action: self.action,
            key: Arc::clone(&verdict.key),
            since: verdict.since,
            until: verdict.until,
            observed: verdict.observed,
            manual: verdict.manual,
            repeat: verdict.repeat,
            attempts,
        }
    }

    /// Says of all verdicts that they end, since what they say means nothing any more, but of an
    /// operator's, which it returns with their keys' hashes: they belong to the rule's name. All events
    /// so far go with them. From now on nothing is said; but the verdicts still stand for whoever goes
    /// by the old rules, until the new ones are in force.
    pub(crate) fn void(&self, now: Time) -> (Vec<(u64, StandingVerdict)>, Vec<Event>) {
        {
            // A beginning that is being said is in time, or is not told.
            let _saying = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            self.is_void.store(true, Release);
        }
        let (mut by_hand, mut events) = (Vec::new(), Vec::new());
        for mut verdict in self.standing.map.iter_mut() {
            if !std::mem::take(&mut verdict.told) {
                continue;
            }
            if verdict.until <= now {
                events.push(self.event(&verdict, Change::Ended, verdict.until));
            } else if verdict.manual {
                by_hand.push((*verdict.key(), self.shown(&verdict, now)));
            } else {
                events.push(self.event(&verdict, Change::Voided, now));
            }
        }
        // What was said before comes before.
        let mut said = self.take_events();
        said.append(&mut events);
        (by_hand, said)
    }

    fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says what happened to a verdict; whether it was said.
    fn say(&self, verdict: &Verdict, change: Change, until: Time) -> bool {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if !verdict.told || change == Change::Began && self.is_void() {
            return false;
        }
        let has_room = events.len() < EVENTS_MAX;
        if has_room {
            events.push(self.event(verdict, change, until));
        } else {
            self.losses.dropped_events.fetch_add(1, Relaxed);
        }
        has_room
    }

    fn event(&self, verdict: &Verdict, change: Change, until: Time) -> Event {
        Event {
            rule: Arc::clone(&self.rule),
            action: self.action,
            key: Arc::clone(&verdict.key),
            change,
            since: verdict.since,
            until,
            observed: verdict.observed,
            manual: verdict.manual,
            repeat: verdict.repeat,
        }
    }
}
