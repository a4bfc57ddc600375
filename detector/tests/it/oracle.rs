//! The engine against a model that follows the words of the rule file naively: it keeps every event
//! and looks at all of them, every millisecond.

use std::fmt::Write as _;

use hotgate_detector::{Cause, Charges, Engine, Event, Outcome};
use http::StatusCode;
use proptest::prelude::*;

use crate::harness::{engine, get, ms};

const PATHS: [&str; 3] = ["/a", "/b", "/c"];
const CLIENTS: [&str; 3] = ["192.0.2.1", "192.0.2.2", "2001:db8::1"];

#[derive(Clone, Debug)]
struct Terms {
    /// The paths it matches; none: every request.
    path: Option<usize>,
    n: u32,
    window: u64,
    block: Option<Block>,
    status: bool,
    pending: u32,
    observe: bool,
}

#[derive(Clone, Debug)]
struct Block {
    lasts: u64,
    extend: bool,
    grow: u64,
    max: u64,
    forget: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Ask { client: usize, path: usize, gap: u64 },
    Settle { which: usize, bad: bool, gap: u64 },
    Lift { rule: usize, client: usize },
}

/// One key of one rule, with all its events.
#[derive(Clone, Debug, Default)]
struct Key {
    /// The events that the rule compares with N.
    counted: Vec<u64>,
    pending: u32,
    /// Counts blocks and lifts, after which older responses mean nothing.
    generation: u32,
    block: Option<u64>,
    /// Length, number and end of the last block.
    past: Option<(u64, u64)>,
    throttle: Option<Throttle>,
}

#[derive(Clone, Debug)]
struct Throttle {
    attempts: Vec<u64>,
    looked: u64,
    below_since: Option<u64>,
}

fn within(events: &[u64], now: u64, window: u64) -> usize {
    events.iter().filter(|event| **event + window > now && **event <= now).count()
}

impl Throttle {
    fn is_warm(&self, terms: &Terms, now: u64) -> bool {
        within(&self.attempts, now, terms.window) * 5 >= terms.n as usize * 4
    }

    fn attempt(&mut self, terms: &Terms, now: u64) {
        self.attempts.push(now);
        if self.is_warm(terms, now) {
            self.below_since = None;
        }
    }

    /// Whether attempts were below 0.8 N for a whole window by now.
    fn has_cooled(&mut self, terms: &Terms, now: u64) -> bool {
        while self.looked < now {
            self.looked += 1;
            if self.is_warm(terms, self.looked) {
                self.below_since = None;
                continue;
            }
            let since = *self.below_since.get_or_insert(self.looked);
            if self.looked - since >= terms.window {
                return true;
            }
        }
        false
    }
}

impl Key {
    /// Ends what is over.
    fn advance(&mut self, terms: &Terms, now: u64) {
        if let Some(end) = self.block
            && end <= now
        {
            self.block = None;
        }
        if let Some(throttle) = &mut self.throttle
            && throttle.has_cooled(terms, now)
        {
            self.throttle = None;
        }
    }

    fn is_hot(&self) -> bool {
        self.block.is_some() || self.throttle.is_some()
    }

    fn refuses(&self, terms: &Terms, now: u64) -> Option<Cause> {
        let full = within(&self.counted, now, terms.window) >= terms.n as usize;
        match () {
            () if self.block.is_some() => Some(Cause::Blocked),
            () if full && terms.block.is_some() => Some(Cause::Blocked),
            () if full => Some(Cause::Quota),
            () if terms.status && self.pending >= terms.pending => Some(Cause::Pending),
            () => None,
        }
    }

    fn begin(&mut self, terms: &Terms, now: u64) {
        if let Some(block) = &terms.block {
            let lasts = match self.past {
                Some((lasts, end)) if block.grow > 1 && end + block.forget > now => {
                    (lasts * block.grow).min(block.max)
                }
                _ => block.lasts,
            };
            self.block = Some(now + lasts);
            self.past = Some((lasts, now + lasts));
            self.counted.clear();
            self.generation += 1;
        } else {
            self.throttle =
                Some(Throttle { attempts: self.counted.clone(), looked: now, below_since: None });
        }
    }

    /// Charges an attempt; whether the rule now holds it pending.
    fn charge(&mut self, terms: &Terms, own: Option<Cause>, refused: bool, now: u64) -> bool {
        if let Some(end) = &mut self.block {
            let block = terms.block.as_ref().unwrap();
            if block.extend {
                let (lasts, past_end) = self.past.as_mut().unwrap();
                *end = (*end).max(now + *lasts);
                *past_end = *end;
            }
            return false;
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.attempt(terms, now);
        }
        let admitted = !refused && own.is_none();
        if terms.status {
            self.pending += u32::from(admitted);
            return admitted;
        }
        match own {
            Some(_) if terms.block.is_some() => self.begin(terms, now),
            Some(_) if self.throttle.is_none() => {
                self.begin(terms, now);
                self.throttle.as_mut().unwrap().attempt(terms, now);
            }
            None if terms.block.is_some() || admitted => self.counted.push(now),
            _ => {}
        }
        false
    }

    fn settle(&mut self, terms: &Terms, generation: u32, bad: bool, now: u64) {
        self.pending -= 1;
        if !bad || generation != self.generation || self.block.is_some() {
            return;
        }
        self.counted.push(now);
        if within(&self.counted, now, terms.window) >= terms.n as usize && self.throttle.is_none() {
            self.begin(terms, now);
        }
    }
}

/// A request that is still to be settled: what the engine holds, and what the model does.
struct Open {
    charges: Charges,
    held: Vec<(usize, u32)>,
    client: usize,
}

fn rule_text(rules: &[Terms]) -> String {
    let mut text = String::new();
    for (index, terms) in rules.iter().enumerate() {
        let _ = write!(text, "[[rule]]\nname = \"r{index}\"\nkey = [\"client\"]\n");
        let _ = writeln!(text, "over = \"{}/{}ms\"", terms.n, terms.window);
        if let Some(path) = terms.path {
            let _ = writeln!(text, "match = \"{}\"", PATHS[path]);
        }
        if terms.status {
            let _ = writeln!(text, "count = {{ status = [401], pending = {} }}", terms.pending);
        }
        let _ = match &terms.block {
            None => writeln!(text, "throttle = {{}}"),
            Some(block) => writeln!(
                text,
                "block = {{ for = \"{}ms\", extend = {}, grow = {}, max = \"{}ms\", forget = \"{}ms\" }}",
                block.lasts, block.extend, block.grow, block.max, block.forget
            ),
        };
        if terms.observe {
            text.push_str("mode = \"observe\"\n");
        }
    }
    text
}

fn compare(rules: &[Terms], steps: &[Step]) -> Result<(), TestCaseError> {
    let engine = engine(&rule_text(rules));
    let mut keys = vec![vec![Key::default(); CLIENTS.len()]; rules.len()];
    let (mut open, mut now): (Vec<Open>, u64) = (Vec::new(), 1_000);
    for step in steps {
        match *step {
            Step::Ask { client, path, gap } => {
                now += gap;
                open.extend(ask(&engine, rules, &mut keys, client, path, now)?);
            }
            Step::Settle { which, bad, gap } if !open.is_empty() => {
                now += gap;
                let settled = open.swap_remove(which % open.len());
                let status = if bad { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
                engine.settle(settled.charges, Outcome::Status(status), ms(now));
                for (rule, generation) in settled.held {
                    let key = &mut keys[rule][settled.client];
                    key.advance(&rules[rule], now);
                    key.settle(&rules[rule], generation, bad, now);
                }
            }
            Step::Settle { .. } => {}
            Step::Lift { rule, client } => {
                let rule = rule % rules.len();
                let key = &mut keys[rule][client];
                key.advance(&rules[rule], now);
                let text = if client == 2 {
                    "client=2001:db8::/64"
                } else {
                    &format!("client={}", CLIENTS[client])
                };
                let lifted = engine.lift(&format!("r{rule}"), text, ms(now)).unwrap();
                prop_assert_eq!(lifted, key.is_hot(), "lift says whether a verdict stood");
                *key =
                    Key { pending: key.pending, generation: key.generation + 1, ..Key::default() };
            }
        }
        if now % 7 == 0 {
            engine.tick(ms(now));
        }
    }
    Ok(())
}

fn ask(
    engine: &Engine,
    rules: &[Terms],
    keys: &mut [Vec<Key>],
    client: usize,
    path: usize,
    now: u64,
) -> Result<Option<Open>, TestCaseError> {
    let matching: Vec<usize> =
        (0..rules.len()).filter(|rule| rules[*rule].path.is_none_or(|own| own == path)).collect();
    let mut own = vec![None; rules.len()];
    for &rule in &matching {
        keys[rule][client].advance(&rules[rule], now);
        own[rule] = keys[rule][client].refuses(&rules[rule], now);
    }
    let enforced = matching.iter().filter(|rule| !rules[**rule].observe);
    let causes: Vec<Cause> = enforced.filter_map(|rule| own[*rule]).collect();
    let refused = causes.iter().any(|cause| *cause != Cause::Pending);
    let pending = causes.contains(&Cause::Pending);

    let decision = get(PATHS[path]).from(CLIENTS[client]).decide(engine, ms(now));
    prop_assert_eq!(
        decision.refusal.is_some(),
        !causes.is_empty(),
        "at {} ms the model refuses for {:?}, the engine {:?}",
        now,
        causes,
        decision.refusal
    );
    let mut held = Vec::new();
    for &rule in &matching {
        let key = &mut keys[rule][client];
        // What is refused for pending requests alone is charged to nothing; an observing rule's own
        // word is real to itself.
        let waits = pending || own[rule] == Some(Cause::Pending);
        let refuses = refused || own[rule].is_some_and(|cause| cause != Cause::Pending);
        if (refuses || !waits) && key.charge(&rules[rule], own[rule], refused, now) {
            held.push((rule, key.generation));
        }
        let finding = decision.findings.iter().find(|finding| finding.index == rule);
        prop_assert_eq!(
            finding.and_then(|finding| finding.refuses),
            own[rule],
            "what r{} says at {} ms",
            rule,
            now
        );
        prop_assert_eq!(
            finding.is_some_and(|finding| finding.hot),
            key.is_hot(),
            "whether r{} is hot at {} ms",
            rule,
            now
        );
    }
    Ok(decision.refusal.is_none().then_some(Open { charges: decision.charges, held, client }))
}

/// One rule enforced, and the same rule observing: what it says of each request, its events and its
/// counts are the same.
fn same_when_observed(terms: Terms, steps: &[Step]) -> Result<(), TestCaseError> {
    let modes = [false, true];
    let engines = modes.map(|observe| engine(&rule_text(&[Terms { observe, ..terms.clone() }])));
    let (mut open, mut now): (Vec<[Charges; 2]>, u64) = (Vec::new(), 1_000);
    for step in steps {
        match *step {
            Step::Ask { client, path, gap } => {
                now += gap;
                let asked = get(PATHS[path]).from(CLIENTS[client]);
                let decisions = engines.each_ref().map(|engine| asked.decide(engine, ms(now)));
                let said = decisions.each_ref().map(|decision| {
                    decision.findings.first().map(|finding| (finding.hot, finding.refuses))
                });
                prop_assert_eq!(said[0], said[1], "enforced and observed, at {} ms", now);
                open.push(decisions.map(|decision| decision.charges));
            }
            Step::Settle { which, bad, gap } if !open.is_empty() => {
                now += gap;
                let status = if bad { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
                let settled = open.swap_remove(which % open.len());
                for (engine, charges) in engines.iter().zip(settled) {
                    engine.settle(charges, Outcome::Status(status), ms(now));
                }
            }
            Step::Settle { .. } | Step::Lift { .. } => {}
        }
        if now % 7 == 0 {
            let said = engines.each_ref().map(|engine| {
                let events = engine.tick(ms(now));
                let what = |event: Event| (event.key, event.change, event.since, event.until);
                events.into_iter().map(what).collect::<Vec<_>>()
            });
            prop_assert_eq!(&said[0], &said[1], "events at {} ms", now);
        }
    }
    let [enforced, observed] = engines.map(|engine| engine.counts()[0]);
    prop_assert_eq!(
        (enforced.matched, enforced.refused),
        (observed.matched, observed.would_refuse)
    );
    Ok(())
}

fn terms() -> impl Strategy<Value = Terms> {
    let block = (5..80u64, any::<bool>(), 1..4u64, 60..200u64, 1..300u64).prop_map(
        |(lasts, extend, grow, more, forget)| Block {
            lasts,
            extend,
            grow,
            max: lasts + more,
            forget,
        },
    );
    (
        prop::option::of(0..PATHS.len()),
        1..7u32,
        10..60u64,
        prop::option::of(block),
        any::<bool>(),
        1..4u32,
        prop::bool::weighted(0.3),
    )
        .prop_map(|(path, n, window, block, status, pending, observe)| Terms {
            path,
            n,
            window,
            block,
            status,
            pending,
            observe,
        })
}

fn step() -> impl Strategy<Value = Step> {
    let gap = || prop_oneof![4 => Just(0u64), 8 => 0..6u64, 2 => 6..40u64, 1 => 40..400u64];
    prop_oneof![
        12 => (0..CLIENTS.len(), 0..PATHS.len(), gap()).prop_map(|(client, path, gap)| Step::Ask { client: client.min(1) * client, path, gap }),
        8 => (any::<usize>(), prop::bool::weighted(0.7), gap()).prop_map(|(which, bad, gap)| Step::Settle { which, bad, gap }),
        1 => (0..4usize, 0..CLIENTS.len()).prop_map(|(rule, client)| Step::Lift { rule, client }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(3_000)))]

    #[test]
    fn the_engine_decides_as_the_words_of_the_rule_file_do(
        rules in prop::collection::vec(terms(), 1..5),
        steps in prop::collection::vec(step(), 1..160),
    ) {
        compare(&rules, &steps)?;
    }

    #[test]
    fn an_observing_rule_says_what_it_would_do_if_it_were_enforced(
        terms in terms(),
        steps in prop::collection::vec(step(), 1..160),
    ) {
        same_when_observed(terms, &steps)?;
    }
}
