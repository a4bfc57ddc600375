use std::{collections::VecDeque, sync::atomic::AtomicU32, sync::atomic::Ordering, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::verdict::Standing;

fn limit(n: u32) -> Limit {
    Limit::new(NonZeroU32::new(n).unwrap())
}

fn table(keys: u32, n: u32, window: Duration) -> Table {
    Table::new(NonZeroU32::new(keys).unwrap(), Ticks::new(window), &[limit(n)], false, false)
}

/// A room in which no verdict stands, and its counts.
fn room<T>(act: impl FnOnce(&mut Room<'_>) -> T) -> (T, [u64; 3]) {
    let mut room = Room {
        unsure: false,
        standing: &|_| None,
        evicted_live: 0,
        evicted_limited: 0,
        untracked: 0,
    };
    let acted = act(&mut room);
    (acted, [room.evicted_live, room.evicted_limited, room.untracked])
}

/// Admits if the window is not full; whether it did.
fn admit(table: &Table, hash: u64, n: u32, now: Time) -> bool {
    if let Some(calm) = table.calm(hash, limit(n), now) {
        calm.push(limit(n), now);
        return true;
    }
    let mut row = table.lock(hash, limit(n), now);
    let admitted = row.full_until(now).is_none();
    if admitted {
        room(|room| row.push(limit(n), now, room));
    }
    admitted
}

/// As [`admit`] does it where the short way is not open.
fn admit_at_length(table: &Table, hash: u64, n: u32, now: Time) -> bool {
    let mut row = table.lock(hash, limit(n), now);
    let admitted = row.full_until(now).is_none();
    if admitted {
        room(|room| row.push(limit(n), now, room));
    }
    admitted
}

/// What a window must do: the exact times of all events, in the table's own ticks.
struct Exact {
    shift: u32,
    window: u64,
    events: VecDeque<u64>,
}

impl Exact {
    fn new(window: Duration) -> Self {
        let nanos = u64::try_from(window.as_nanos()).unwrap();
        let shift = nanos.ilog2().saturating_sub(28);
        Exact { shift, window: nanos >> shift, events: VecDeque::new() }
    }

    fn count(&mut self, now: Time) -> usize {
        let tick = now.as_nanos() >> self.shift;
        while self.events.front().is_some_and(|event| tick - event >= self.window) {
            self.events.pop_front();
        }
        self.events.len()
    }

    fn push(&mut self, now: Time) {
        self.events.push_back(now.as_nanos() >> self.shift);
    }
}

/// Gaps between events: none, a part of the window, and all that may go wrong around its edges,
/// around the wrap of 32-bit ticks and after long idle times.
fn gaps(window: Duration) -> impl Strategy<Value = Vec<u64>> {
    let w = u64::try_from(window.as_nanos()).unwrap();
    let gap = prop_oneof![
        8 => Just(0),
        8 => 0..w / 4,
        4 => 0..w / 64 + 1,
        2 => w - 2..w + 2,
        1 => (1..40u64).prop_map(move |n| n * w),
        1 => (1..40u64).prop_map(move |n| (n << 32) * (w >> 28).max(1)),
        1 => Just(86_400_000_000_000 * 365),
    ];
    prop::collection::vec(gap, 1..400)
}

const LIMITS: [u32; 12] = [1, 2, 3, 5, 10, 63, 64, 65, 100, 101, 150, 1000];
const WINDOWS: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(60),
    Duration::from_secs(3600),
    Duration::from_secs(7 * 86_400),
];

fn case() -> impl Strategy<Value = (u32, Duration, u64, Vec<u64>)> {
    let base =
        (prop::sample::select(&LIMITS[..]), prop::sample::select(&WINDOWS[..]), 0..u64::MAX / 4);
    base.prop_flat_map(|(n, window, start)| (Just(n), Just(window), Just(start), gaps(window)))
}

#[test]
fn a_key_goes_the_short_way_again_once_its_ring_is_written_for_a_changed_limit() {
    let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
    let old = table(16, 100, Duration::from_secs(60));
    for second in 0..5 {
        assert!(admit(&old, 7, 100, at(second)), "the key has room");
    }
    let new = old.with_limits(&[limit(10)]);
    new.settle();
    assert!(new.calm(7, limit(10), at(5)).is_none(), "its ring means another limit");
    assert!(admit(&new, 7, 10, at(5)), "five of ten stand");
    assert!(new.calm(7, limit(10), at(6)).is_some(), "the long way has rewritten the ring");
}

#[test]
fn limits_beyond_64_find_room_in_each_others_rings() {
    let longest = (65..20_000).chain([9_999_999, 10_000_000]).map(|n| limit(n).ring_len()).max();
    assert_eq!(longest, Some(51), "the room that is made for any of them");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2_000)))]

    #[test]
    fn admitted_events_never_pass_the_bound_and_nobody_is_refused_early((n, window, start, gaps) in case()) {
        let table = table(16, n, window);
        let (mut exact, mut now, q) = (Exact::new(window), start, limit(n).q as usize);
        for gap in gaps.iter().cycle().take(gaps.len().max(3 * n as usize)) {
            now = now.saturating_add(*gap).min(u64::MAX / 2);
            let at = Time::from_nanos(now);
            let stand = exact.count(at);
            let admitted = admit(&table, 7, n, at);
            prop_assert!(admitted || stand >= n as usize, "refused early: {stand} of {n} stand");
            prop_assert!(!admitted || stand < n as usize + q - 1,
                "{stand} stood when another was admitted, of {n}, with q = {q}");
            if admitted {
                exact.push(at);
            }
        }
    }

    #[test]
    fn the_short_way_does_what_the_long_one_does((n, window, start, gaps) in case()) {
        let (short, long) = (table(16, n, window), table(16, n, window));
        let mut now = start;
        for gap in gaps.iter().cycle().take(gaps.len().max(3 * n as usize)) {
            now = now.saturating_add(*gap).min(u64::MAX / 2);
            let at = Time::from_nanos(now);
            prop_assert_eq!(admit(&short, 7, n, at), admit_at_length(&long, 7, n, at));
        }
    }

    #[test]
    fn a_limit_that_changes_refuses_nobody_early_and_holds_from_then_on(
        (n, window, start, gaps) in case(),
        next in prop::sample::select(&LIMITS[..]),
        fresh: bool,
    ) {
        let old = table(16, n, window);
        let (mut exact, mut now) = (Exact::new(window), start);
        let q = limit(n).q.max(limit(next).q) as usize;
        let new = old.with_limits(&[limit(next)]);
        let changed = gaps.len() / 2;
        for (step, gap) in gaps.iter().enumerate() {
            now = now.saturating_add(*gap).min(u64::MAX / 2);
            let at = Time::from_nanos(now);
            let stand = exact.count(at);
            if step == changed && fresh {
                new.settle();
            }
            let (table, own) = if step < changed { (&old, n) } else { (&new, next) };
            let admitted = admit(table, 7, own, at);
            prop_assert!(admitted || stand >= own as usize, "refused early: {stand} of {own} stand");
            if step < changed || window > Duration::from_millis(1) {
                // What stood in blocks of the old size is known to a block of it.
                let slack = if step < changed { limit(n).q as usize } else { 2 * q };
                prop_assert!(!admitted || stand < own as usize + slack - 1 || own > n,
                    "{stand} stood when another was admitted, of {own} after {n}");
            }
            if admitted {
                exact.push(at);
            }
        }
    }

    #[test]
    fn counting_every_attempt_is_never_early_and_at_most_one_block_late((n, window, start, gaps) in case()) {
        let table = table(16, n, window);
        let (mut exact, mut now, q) = (Exact::new(window), start, limit(n).q as usize);
        for gap in gaps.iter().cycle().take(gaps.len().max(3 * n as usize)) {
            now = now.saturating_add(*gap).min(u64::MAX / 2);
            let at = Time::from_nanos(now);
            let stand = exact.count(at);
            let mut row = table.lock(7, limit(n), at);
            let full = row.full_until(at).is_some();
            prop_assert!(!full || stand >= n as usize, "full with {stand} of {n}");
            prop_assert!(full || stand < n as usize + q - 1, "not full with {stand} of {n}");
            room(|room| row.push(limit(n), at, room));
            exact.push(at);
        }
    }

    #[test]
    fn a_full_window_has_room_again_exactly_when_it_says_so((n, window, start, gaps) in case()) {
        let table = table(16, n, window);
        let mut now = start;
        for gap in gaps.iter().cycle().take(3 * n as usize) {
            now = now.saturating_add(gap / 64).min(u64::MAX / 2);
            admit(&table, 7, n, Time::from_nanos(now));
            let mut row = table.lock(7, limit(n), Time::from_nanos(now));
            if let Some(until) = row.full_until(Time::from_nanos(now)) {
                prop_assert!(until.as_nanos() > now, "a wait is longer than nothing");
                let before = Time::from_nanos(until.as_nanos() - 1);
                prop_assert!(row.full_until(before).is_some(), "one nanosecond earlier it is full");
                prop_assert!(row.full_until(until).is_none(), "then it has room");
                row.find(until);
            }
        }
    }
}

#[test]
fn limits_of_every_size_keep_their_bound_of_two_per_cent() {
    for n in (1..2_000).chain([9_999, 10_000, 65_535, 1_000_000, 9_999_999, 10_000_000]) {
        let limit = limit(n);
        assert!(limit.ring_len() <= 64, "{n}: a ring's position has six bits");
        assert!(limit.q < 1 << 18, "{n}: a part has eighteen bits");
        assert!(f64::from(n + limit.q - 1) <= 1.02 * f64::from(n), "{n}: at most 1.02 N");
        assert!(n > 64 || limit.q == 1, "{n}: exact up to 64");
        assert!(
            limit.cooling().ring_len() <= limit.ring_len(),
            "{n}: cooling needs no more stamps"
        );
    }
}

#[test]
fn ten_million_in_an_hour_are_counted_to_two_per_cent() {
    let n = 10_000_000;
    let table = table(1, n, Duration::from_secs(3600));
    let admitted =
        (0..n + n / 10).filter(|at| admit(&table, 7, n, Time::from_nanos(u64::from(*at)))).count();
    assert!((n as usize..=n as usize + n as usize / 50).contains(&admitted), "{admitted} of {n}");
}

#[test]
fn a_clock_read_before_another_threads_stamp_counts_as_that_stamp() {
    let table = table(16, 2, Duration::from_secs(1));
    let at = Time::from_nanos;
    assert!(admit(&table, 7, 2, at(5_000_000_100)));
    assert!(admit(&table, 7, 2, at(5_000_000_000)), "one event stands, whatever its stamp");
    assert!(!admit(&table, 7, 2, at(4_999_999_000)), "two stand, though both lie ahead");
    assert!(!admit(&table, 7, 2, at(6_000_000_099)));
    assert!(admit(&table, 7, 2, at(6_000_000_100)), "both count from the newer stamp");
}

#[test]
fn a_stamp_is_never_older_than_the_one_before() {
    let (table, at) = (table(16, 1, Duration::from_secs(1)), Time::from_nanos);
    for now in [5_000_000_100, 5_000_000_000] {
        room(|room| table.lock(7, limit(1), at(now)).push(limit(1), at(now), room));
    }
    let until = |now| table.lock(7, limit(1), at(now)).full_until(at(now));
    assert_eq!(until(6_000_000_099), Some(at(6_000_000_100)), "the first still stands");
}

#[test]
fn different_keys_never_share_a_count() {
    let table = table(1_000, 3, Duration::from_secs(60));
    let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key << 40;
    for round in 0..5 {
        for key in 1..=1_000 {
            let admitted = admit(&table, hash(key), 3, Time::from_nanos(round));
            assert!(admitted || round >= 3, "key {key} was refused its event {round}");
        }
    }
}

/// The flood of many keys that each send `each` events, once over, between two uses of the watched.
fn flood(table: &Table, keys: u64, each: u32, n: u32, start: u64) -> [u64; 3] {
    let mut totals = [0; 3];
    for key in 0..keys {
        let hash = (key + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        for event in 0..each {
            let now = Time::from_nanos(start + key * 10 + u64::from(event));
            let mut row = table.lock(hash, limit(n), now);
            if row.full_until(now).is_none() {
                let (_, counts) = room(|room| row.push(limit(n), now, room));
                totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
            }
        }
    }
    totals
}

// C20: however many keys come, the table is as large as it was made.
#[test]
fn a_flood_of_new_keys_frees_no_key_at_its_limit_and_refills_no_partly_used_one() {
    let (n, table) = (10, table(1_000, 10, Duration::from_secs(60)));
    let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (limited, half) = (1..=100, 101..=200);
    for key in limited.clone() {
        for event in 0..n {
            assert!(admit(&table, hash(key), n, Time::from_nanos(u64::from(event))));
        }
    }
    for key in half.clone() {
        for event in 0..5 {
            assert!(admit(&table, hash(key), n, Time::from_nanos(event)));
        }
    }
    let [evicted_live, evicted_limited, _] = flood(&table, 200_000, 2, n, 1_000);
    assert!(evicted_live > 0, "so large a flood makes flood keys displace each other");
    assert_eq!(evicted_limited, 0, "none at its limit was displaced");
    let later = Time::from_nanos(30_000_000_000);
    let freed = limited.filter(|key| admit(&table, hash(*key), n, later)).count();
    assert_eq!(freed, 0, "keys at their limit stay refused");
    for key in half {
        let passed = (0..n).filter(|_| admit(&table, hash(key), n, later)).count();
        assert_eq!(passed, 5, "key {key} has used five of its ten");
    }
}

#[test]
fn where_limited_keys_hold_every_place_newcomers_are_still_counted() {
    let (n, table) = (2, table(1, 2, Duration::from_secs(60)));
    // One line and its neighbour: six places.
    let [_, evicted_limited, _] = flood(&table, 6, 2, n, 0);
    assert_eq!(evicted_limited, 0, "six keys have room");
    let [_, evicted_limited, untracked] = flood(&table, 7, 2, n, 1_000);
    assert_eq!(
        (evicted_limited, untracked),
        (1, 0),
        "the seventh takes the place of the longest limited"
    );
    let newcomer = 7u64.wrapping_mul(0xd6e8_feb8_6659_fd93);
    assert!(!admit(&table, newcomer, n, Time::from_nanos(2_000)), "and is held to its limit");
}

#[test]
fn a_flood_pushes_out_no_key_under_a_verdict_and_none_that_waits_for_a_response() {
    const HOT: u64 = 7;
    const WAITING: u64 = 8;
    let (n, limits) = (10, [limit(10)]);
    let ticks = Ticks::new(Duration::from_secs(60));
    let table = Table::new(NonZeroU32::MIN, ticks, &limits, true, false);
    let standing = |hash| (hash == HOT).then_some(Standing::Hot { wait: None });
    let mut room = Room {
        unsure: false,
        standing: &standing,
        evicted_live: 0,
        evicted_limited: 0,
        untracked: 0,
    };
    let at = |secs: u64| Time::from_nanos(secs * 1_000_000_000);
    table.lock(HOT, limits[0], at(1)).push(limits[0], at(1), &mut room);
    table.lock(HOT, limits[0], at(1)).mark_hot(true);
    let generation = table.lock(WAITING, limits[0], at(1)).hold(at(1), &mut room).unwrap();
    // Each comes more often than the two, so that one of the two would be the first to go.
    for key in 100..1_000 {
        for _ in 0..3 {
            table.lock(key, limits[0], at(2)).push(limits[0], at(2), &mut room);
        }
    }
    assert!(room.evicted_live > 0, "the others displace each other");
    for _ in 1..n {
        let mut row = table.lock(HOT, limits[0], at(3));
        assert!(row.full_until(at(3)).is_none());
        row.push(limits[0], at(3), &mut room);
    }
    assert!(
        table.lock(HOT, limits[0], at(3)).full_until(at(3)).is_some(),
        "its first event still counts"
    );
    // An hour on all counts are idle, and their places can be had.
    for key in 1_000..2_000 {
        table.lock(key, limits[0], at(3_600)).push(limits[0], at(3_600), &mut room);
    }
    let mut row = table.lock(WAITING, limits[0], at(3_601));
    assert_eq!(row.pending(), 1);
    assert!(row.release(generation), "its response counts");
}

#[test]
fn a_place_is_free_again_once_its_key_was_idle() {
    let (n, table) = (2, table(1, 2, Duration::from_secs(1)));
    flood(&table, 6, 2, n, 0);
    let [evicted_live, evicted_limited, untracked] = flood(&table, 6, 1, n, 2_000_000_000);
    assert_eq!((evicted_live, evicted_limited, untracked), (0, 0, 0));
}

#[test]
fn parallel_callers_admit_exactly_the_limit_of_every_key() {
    const KEYS: u64 = 3_000;
    let (n, table) = (10, table(30_000, 10, Duration::from_secs(3600)));
    let admitted: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (table, admitted) = (&table, &admitted);
            scope.spawn(move || {
                for event in 0..KEYS * 5 {
                    let key = (event * 7 + thread * 13) % KEYS;
                    let hash = (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    if admit(table, hash, n, Time::from_nanos(event)) {
                        admitted[usize::try_from(key).unwrap()].fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let wrong: Vec<_> = admitted
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .filter(|count| *count != n)
        .collect();
    assert!(
        wrong.is_empty(),
        "of {KEYS} keys {} were not admitted exactly {n} times: {wrong:?}",
        wrong.len()
    );
}
