//! Random reloads against a model that keeps every event of every key by the rule's name.
//!
//! Limits stay exact here, so that the model need not guess; `conversion` has the others.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use hotgate_detector::{Cause, Charges, Engine, Outcome, RuleCounts};
use http::StatusCode;
use proptest::prelude::*;

use super::stream::{Stream, listed};
use crate::harness::{engine, get, ms, rule_set};

const PATHS: [&str; 2] = ["/a", "/b"];
const CLIENTS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const NAMES: usize = 3;

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
struct Terms {
    path: Option<usize>,
    n: usize,
    window: u64,
    action: Action,
    status: bool,
    mode: Mode,
    /// The second client's own.
    other: Option<Other>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Throttle,
    Block { lasts: u64, extend: bool, grow: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Other {
    Limit(usize),
    Exempt,
    Observe,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Enforce,
    Observe,
    Off,
}

/// Blocks grow to this, and are forgotten after that.
const MAX: u64 = 150;
const FORGET: u64 = 100;

#[derive(Clone, Debug)]
struct File {
    /// The rules, in their order.
    rules: Vec<(usize, Terms)>,
    mode: Mode,
    allowed: Option<usize>,
    denied: Option<usize>,
}

#[derive(Clone, Debug)]
enum Step {
    Ask { client: usize, path: usize, gap: u64 },
    Settle { which: usize, bad: bool, gap: u64 },
    Lift { rule: usize, client: usize },
    LiftAll { rule: usize },
    Block { rule: usize, client: usize, lasts: u64 },
    Reload(Change),
}

#[derive(Clone, Debug)]
enum Change {
    Nothing,
    Swap,
    Remove(usize),
    Set(usize, Terms),
    Limit(usize, usize),
    Window(usize, u64),
    Act(usize, Action),
    Mode(usize, Mode),
    Other(usize, Option<Other>),
    FileMode(Mode),
    Allow(Option<usize>),
    Deny(Option<usize>),
}

impl Terms {
    fn n(&self, client: usize) -> usize {
        match (client, self.other) {
            (1, Some(Other::Limit(n))) => n,
            _ => self.n,
        }
    }

    fn mode(&self, file: Mode, client: usize) -> Mode {
        let own = if client == 1 && self.other == Some(Other::Observe) {
            Mode::Observe
        } else {
            self.mode
        };
        match (file, own) {
            (Mode::Off, _) | (_, Mode::Off) => Mode::Off,
            (Mode::Enforce, Mode::Enforce) => Mode::Enforce,
            _ => Mode::Observe,
        }
    }

    fn is_free(&self, file: Mode, client: usize) -> bool {
        self.mode(file, client) == Mode::Off || client == 1 && self.other == Some(Other::Exempt)
    }

    fn same_meaning(&self, other: &Terms) -> bool {
        (self.path, self.window, self.status) == (other.path, other.window, other.status)
    }

    fn same_action(&self, other: &Terms) -> bool {
        matches!(self.action, Action::Throttle) == matches!(other.action, Action::Throttle)
    }
}

/// One key of one rule.
#[derive(Clone, Debug, Default)]
struct Key {
    counted: Vec<u64>,
    pending: u32,
    generation: u32,
    verdict: Option<Verdict>,
    /// Length and forgetting of the block before.
    past: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct Verdict {
    until: u64,
    kind: Kind,
    manual: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Hot { attempts: Vec<u64> },
    Block { lasts: u64, grows: bool },
}

fn within(events: &[u64], now: u64, window: u64) -> usize {
    events.iter().filter(|event| **event + window > now).count()
}

/// A window of exact size holds so many of the newest.
fn keep(events: &mut Vec<u64>, number: usize) {
    events.drain(..events.len().saturating_sub(number));
}

impl Key {
    fn advance(&mut self, now: u64) {
        if let Some(verdict) = self.verdict.take_if(|verdict| verdict.until <= now)
            && let Kind::Block { lasts, grows: true } = verdict.kind
        {
            self.past = Some((lasts, verdict.until + FORGET));
        }
    }

    fn blocked(&self) -> bool {
        matches!(self.verdict, Some(Verdict { kind: Kind::Block { .. }, .. }))
    }

    fn refuses(&mut self, terms: &Terms, n: usize, now: u64) -> Option<Cause> {
        self.advance(now);
        keep(&mut self.counted, n);
        let full = within(&self.counted, now, terms.window) >= n;
        match terms.action {
            _ if self.blocked() => Some(Cause::Blocked),
            Action::Block { .. } if full => Some(Cause::Blocked),
            Action::Throttle if full => Some(Cause::Quota),
            _ if terms.status && self.pending as usize >= n => Some(Cause::Pending),
            _ => None,
        }
    }

    fn begin(&mut self, terms: &Terms, n: usize, now: u64) {
        match terms.action {
            Action::Block { lasts, grow, .. } => {
                let past = self.past.filter(|(_, forgotten)| *forgotten > now);
                let lasts = past.map_or(lasts, |(lasts, _)| (lasts * grow).min(MAX));
                let kind = Kind::Block { lasts, grows: grow > 1 };
                self.verdict = Some(Verdict { until: now + lasts, kind, manual: false });
                self.clear();
            }
            Action::Throttle => {
                let kind = Kind::Hot { attempts: self.counted.clone() };
                let until = now + terms.window;
                self.verdict = Some(Verdict { until, kind, manual: false });
                self.cool(terms, n, now);
            }
        }
    }

    /// Moves the end of a throttle's verdict out to a window after attempts fall below 0.8 N.
    fn cool(&mut self, terms: &Terms, n: usize, now: u64) {
        let Some(Verdict { until, kind: Kind::Hot { attempts }, .. }) = &mut self.verdict else {
            return;
        };
        let warm = n - n / 5;
        keep(attempts, warm);
        if within(attempts, now, terms.window) >= warm {
            *until = (*until).max(attempts[0] + 2 * terms.window);
        }
    }

    fn attempt(&mut self, terms: &Terms, n: usize, now: u64) {
        if let Some(Verdict { kind: Kind::Hot { attempts }, .. }) = &mut self.verdict {
            keep(attempts, n - n / 5);
            attempts.push(now);
        }
        self.cool(terms, n, now);
    }

    fn clear(&mut self) {
        self.counted.clear();
        self.generation += 1;
    }

    /// Charges an attempt; whether the rule now holds it pending.
    fn charge(
        &mut self,
        terms: &Terms,
        n: usize,
        own: Option<Cause>,
        refused: bool,
        now: u64,
    ) -> bool {
        if let Some(Verdict { until, kind: Kind::Block { lasts, .. }, manual }) = &mut self.verdict
        {
            if matches!(terms.action, Action::Block { extend: true, .. }) && !*manual {
                *until = (*until).max(now + *lasts);
            }
            return false;
        }
        self.attempt(terms, n, now);
        let admitted = !refused && own.is_none();
        if terms.status {
            self.pending += u32::from(admitted);
            return admitted;
        }
        match (own, &terms.action) {
            (Some(_), Action::Block { .. }) => self.begin(terms, n, now),
            (Some(_), Action::Throttle) if self.verdict.is_none() => {
                self.begin(terms, n, now);
                self.attempt(terms, n, now);
            }
            (None, Action::Block { .. }) => self.counted.push(now),
            (None, Action::Throttle) if admitted => self.counted.push(now),
            _ => {}
        }
        false
    }

    fn settle(&mut self, terms: &Terms, client: usize, file: Mode, held: u32, bad: bool, now: u64) {
        self.advance(now);
        self.pending -= 1;
        let n = terms.n(client);
        keep(&mut self.counted, n);
        if !bad || held != self.generation || self.blocked() || terms.is_free(file, client) {
            return;
        }
        self.counted.push(now);
        keep(&mut self.counted, n);
        if within(&self.counted, now, terms.window) >= n && self.verdict.is_none() {
            self.begin(terms, n, now);
        }
    }
}

/// What the model knows under a rule's name.
#[derive(Clone, Debug)]
struct Known {
    lineage: u64,
    keys: [Key; CLIENTS.len()],
    counts: RuleCounts,
}

struct Open {
    charges: Charges,
    client: usize,
    /// Name, lineage and generation.
    held: Vec<(usize, u64, u32)>,
}

struct Model {
    file: File,
    known: BTreeMap<usize, Known>,
    lineages: u64,
    open: Vec<Open>,
    now: u64,
    engine: Engine,
    stream: Stream,
    voided: u32,
}

fn text(file: &File) -> String {
    let mut text = String::from("[memory]\nkeys = 16\nverdicts = 16\n");
    let client = |which: usize| CLIENTS[which];
    if let Some(which) = file.allowed {
        let _ = writeln!(text, "[[allow]]\nclients = [\"{}\"]", client(which));
    }
    if let Some(which) = file.denied {
        let _ = writeln!(text, "[[deny]]\nclients = [\"{}\"]", client(which));
    }
    for (name, terms) in &file.rules {
        let _ = writeln!(text, "[[rule]]\nname = \"r{name}\"\nkey = [\"client\"]");
        let _ = writeln!(
            text,
            "over = \"{}/{}ms\"\nmode = \"{}\"",
            terms.n,
            terms.window,
            mode(terms.mode)
        );
        if let Some(path) = terms.path {
            let _ = writeln!(text, "match = \"{}\"", PATHS[path]);
        }
        if terms.status {
            text.push_str("count = { status = [401] }\n");
        }
        let _ = match terms.action {
            Action::Throttle => writeln!(text, "throttle = {{}}"),
            Action::Block { lasts, extend, grow } => writeln!(
                text,
                "block = {{ for = \"{lasts}ms\", extend = {extend}, grow = {grow}, max = \"{MAX}ms\", \
                 forget = \"{FORGET}ms\" }}"
            ),
        };
        if let Some(other) = terms.other {
            let _ = writeln!(text, "[[rule.override]]\nkey = [\"{}\"]", CLIENTS[1]);
            let _ = match other {
                Other::Limit(n) => writeln!(text, "over = \"{n}/{}ms\"", terms.window),
                Other::Exempt => writeln!(text, "exempt = true"),
                Other::Observe => writeln!(text, "mode = \"observe\""),
            };
        }
    }
    format!("mode = \"{}\"\n{text}", mode(file.mode))
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}

impl Model {
    fn new(file: File) -> Self {
        let engine = engine(&text(&file));
        let mut model = Model {
            file,
            known: BTreeMap::new(),
            lineages: 0,
            open: Vec::new(),
            now: 1_000,
            engine,
            stream: Stream::default(),
            voided: 0,
        };
        for (name, _) in model.file.rules.clone() {
            model.meet(name);
        }
        model
    }

    fn meet(&mut self, name: usize) {
        self.lineages += 1;
        let known = Known {
            lineage: self.lineages,
            keys: Default::default(),
            counts: RuleCounts::default(),
        };
        self.known.insert(name, known);
    }

    fn terms(&self, name: usize) -> Option<Terms> {
        self.file.rules.iter().find(|(own, _)| *own == name).map(|(_, terms)| terms.clone())
    }

    fn change(&self, change: &Change) -> File {
        let mut file = self.file.clone();
        let mut with = |name: usize, act: &dyn Fn(&mut Terms)| {
            file.rules.iter_mut().filter(|(own, _)| *own == name).for_each(|(_, terms)| act(terms));
        };
        match change.clone() {
            Change::Nothing => {}
            Change::Swap => file.rules.reverse(),
            Change::Remove(name) => file.rules.retain(|(own, _)| *own != name),
            Change::Set(name, terms) => {
                file.rules.retain(|(own, _)| *own != name);
                file.rules.insert(0, (name, terms));
            }
            Change::Limit(name, n) => with(name, &|terms| terms.n = n),
            Change::Window(name, window) => with(name, &|terms| terms.window = window),
            Change::Act(name, action) => with(name, &|terms| terms.action = action.clone()),
            Change::Mode(name, mode) => with(name, &|terms| terms.mode = mode),
            Change::Other(name, other) => with(name, &|terms| terms.other = other),
            Change::FileMode(mode) => file.mode = mode,
            Change::Allow(which) => file.allowed = which,
            Change::Deny(which) => file.denied = which,
        }
        file
    }

    fn reload(&mut self, change: &Change) {
        let file = self.change(change);
        let old = std::mem::replace(&mut self.file, file);
        self.engine = self.engine.succeed(rule_set(&text(&self.file)), ms(self.now));
        for (name, before) in &old.rules {
            let after = self.terms(*name);
            let now = self.now;
            let Some(known) = self.known.get_mut(name) else { continue };
            known.keys.iter_mut().for_each(|key| key.advance(now));
            let meaning = after.as_ref().is_some_and(|after| after.same_meaning(before));
            let action = after.as_ref().is_some_and(|after| after.same_action(before));
            if meaning && action {
                continue;
            }
            for key in &mut known.keys {
                key.past = None;
                let goes = |verdict: &Verdict| after.is_none() || !verdict.manual;
                self.voided += u32::from(key.verdict.take_if(|verdict| goes(verdict)).is_some());
                if !meaning {
                    *key = Key { verdict: key.verdict.take(), ..Key::default() };
                }
            }
            if !meaning {
                self.lineages += 1;
                known.lineage = self.lineages;
            }
            if after.is_none() {
                self.known.remove(name);
            }
        }
        for (name, _) in self.file.rules.clone() {
            if !self.known.contains_key(&name) {
                self.meet(name);
            }
        }
    }

    fn ask(&mut self, client: usize, path: usize) -> Result<(), TestCaseError> {
        let (now, file) = (self.now, self.file.clone());
        let decision = get(PATHS[path]).from(CLIENTS[client]).decide(&self.engine, ms(now));
        let refusal = decision.refusal.as_ref().map(|refusal| refusal.cause);
        if file.mode == Mode::Off {
            prop_assert_eq!(refusal, None, "off");
            return Ok(());
        }
        if file.denied == Some(client) && file.mode == Mode::Enforce {
            prop_assert_eq!(refusal, Some(Cause::Denied));
            return Ok(());
        }
        if file.allowed == Some(client) && file.denied != Some(client) {
            prop_assert_eq!(refusal, None, "allowed");
            prop_assert!(decision.findings.is_empty(), "an allowed client is known to no rule");
            return Ok(());
        }
        let covers = |terms: &Terms| terms.path.is_none_or(|own| own == path);
        let is_free = |terms: &Terms| terms.is_free(file.mode, client);
        let matching = file.rules.iter().filter(|(_, terms)| covers(terms) && !is_free(terms));
        let matching: Vec<_> = matching
            .map(|(name, terms)| {
                let key = &mut self.known.get_mut(name).unwrap().keys[client];
                (*name, terms, key.refuses(terms, terms.n(client), now))
            })
            .collect();
        let enforces = |terms: &Terms| terms.mode(file.mode, client) == Mode::Enforce;
        let enforced = matching.iter().filter(|(_, terms, _)| enforces(terms));
        let causes: Vec<Cause> = enforced.filter_map(|(.., own)| *own).collect();
        let refused = causes.iter().any(|cause| *cause != Cause::Pending);
        prop_assert_eq!(
            refusal.is_some(),
            !causes.is_empty(),
            "at {} ms the model says {:?}, the engine {:?}",
            now,
            causes,
            refusal
        );
        let mut held = Vec::new();
        for (name, terms, own) in matching {
            let known = self.known.get_mut(&name).unwrap();
            let key = &mut known.keys[client];
            let waits = causes.contains(&Cause::Pending) || own == Some(Cause::Pending);
            let refuses = refused || own.is_some_and(|cause| cause != Cause::Pending);
            if (refuses || !waits) && key.charge(terms, terms.n(client), own, refused, now) {
                held.push((name, known.lineage, key.generation));
            }
            known.counts.matched += 1;
            known.counts.refused += u64::from(own.is_some() && enforces(terms));
            known.counts.would_refuse += u64::from(own.is_some() && !enforces(terms));
            let text = format!("r{name}");
            let finding = decision.findings.iter().find(|finding| *finding.rule == *text);
            prop_assert_eq!(
                finding.and_then(|finding| finding.refuses),
                own,
                "what {} says at {} ms",
                text,
                now
            );
            prop_assert_eq!(
                finding.is_some_and(|finding| finding.hot),
                key.verdict.is_some(),
                "whether {} is hot at {} ms",
                text,
                now
            );
            let until = finding.filter(|finding| finding.hot).and_then(|finding| finding.until);
            let model = key.verdict.as_ref().map(|verdict| ms(verdict.until));
            prop_assert!(until.is_none() || until == model, "until {until:?}, the model {model:?}");
        }
        if causes.is_empty() {
            self.open.push(Open { charges: decision.charges, client, held });
        }
        Ok(())
    }

    fn settle(&mut self, which: usize, bad: bool) {
        let settled = self.open.swap_remove(which % self.open.len());
        let status = if bad { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
        self.engine.settle(settled.charges, Outcome::Status(status), ms(self.now));
        for (name, lineage, generation) in settled.held {
            let Some(terms) = self.terms(name) else { continue };
            let known = self.known.get_mut(&name).unwrap();
            if known.lineage == lineage {
                let key = &mut known.keys[settled.client];
                key.settle(&terms, settled.client, self.file.mode, generation, bad, self.now);
            }
        }
    }

    fn operate(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let now = self.now;
        let (Step::Lift { rule, .. } | Step::LiftAll { rule } | Step::Block { rule, .. }) = step
        else {
            return Ok(());
        };
        let text = format!("r{rule}");
        let key = |client: usize| format!("client={}", CLIENTS[client]);
        let Some(known) = self.known.get_mut(rule) else {
            prop_assert!(self.engine.lift_all(&text, ms(now)).is_err(), "no such rule");
            return Ok(());
        };
        known.keys.iter_mut().for_each(|key| key.advance(now));
        let lift = |own: &mut Key| {
            own.clear();
            own.past = None;
            own.verdict.take().is_some()
        };
        match *step {
            Step::Lift { client, .. } => {
                let lifted = self.engine.lift(&text, &key(client), ms(now)).unwrap();
                prop_assert_eq!(lifted, lift(&mut known.keys[client]));
            }
            Step::Block { client, lasts, .. } => {
                let lasts_for = Duration::from_millis(lasts);
                self.engine.block(&text, &key(client), lasts_for, ms(now)).unwrap();
                let own = &mut known.keys[client];
                lift(own);
                let kind = Kind::Block { lasts, grows: false };
                own.verdict = Some(Verdict { until: now + lasts, kind, manual: true });
            }
            _ => {
                let lifted = self.engine.lift_all(&text, ms(now)).unwrap();
                let stood = known.keys.iter_mut().map(lift).filter(|stood| *stood).count();
                prop_assert_eq!(lifted, stood);
            }
        }
        Ok(())
    }

    /// What is said, listed and counted is what the model knows.
    fn look(&mut self) -> Result<(), TestCaseError> {
        let now = self.now;
        self.stream.hear(self.engine.tick(ms(now))).map_err(TestCaseError::fail)?;
        let listed = listed(&self.engine, ms(now));
        prop_assert_eq!(&self.stream.standing(), &listed, "said and listed, at {} ms", now);
        let mut stands = Vec::new();
        for (name, known) in &mut self.known {
            for (key, client) in known.keys.iter_mut().zip(CLIENTS) {
                key.advance(now);
                let manual = key.verdict.as_ref().map(|verdict| verdict.manual);
                stands.extend(
                    manual.map(|manual| (format!("r{name}"), format!("client={client}"), manual)),
                );
            }
        }
        let listed = listed.into_iter().map(|(rule, key, _, manual)| (rule, key, manual));
        prop_assert_eq!(listed.collect::<Vec<_>>(), stands, "listed and known, at {} ms", now);
        for ((name, _), counts) in self.file.rules.iter().zip(self.engine.counts()) {
            let known = self.known[name].counts;
            let totals = |counts: RuleCounts| (counts.matched, counts.refused, counts.would_refuse);
            prop_assert_eq!(totals(counts), totals(known), "r{}", name);
            prop_assert_eq!(counts.unstored_verdicts + counts.dropped_events + counts.untracked, 0);
        }
        let voided = self.stream.ended.get("voided").copied().unwrap_or(0);
        prop_assert_eq!(voided, self.voided, "each void verdict is said once");
        Ok(())
    }
}

fn compare(file: File, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut model = Model::new(file);
    for step in steps {
        match step {
            Step::Ask { client, path, gap } => {
                model.now += gap;
                model.ask(*client, *path)?;
            }
            Step::Settle { which, bad, gap } if !model.open.is_empty() => {
                model.now += gap;
                model.settle(*which, *bad);
            }
            Step::Settle { .. } => {}
            Step::Reload(change) => model.reload(change),
            step => model.operate(step)?,
        }
        if model.now.is_multiple_of(5) {
            model.look()?;
        }
    }
    model.look()?;
    model.now += 100_000;
    model.look()?;
    prop_assert!(model.stream.standing().is_empty(), "all ends, and that is said");
    Ok(())
}

fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1..7usize, 1 => 60..65usize]
}

fn action() -> impl Strategy<Value = Action> {
    let block = (5..80u64, any::<bool>(), 1..3u64);
    prop_oneof![
        Just(Action::Throttle),
        block.prop_map(|(lasts, extend, grow)| Action::Block { lasts, extend, grow }),
    ]
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop_oneof![5 => Just(Mode::Enforce), 2 => Just(Mode::Observe), 1 => Just(Mode::Off)]
}

fn other() -> impl Strategy<Value = Option<Other>> {
    prop::option::of(prop_oneof![
        limit().prop_map(Other::Limit),
        Just(Other::Exempt),
        Just(Other::Observe)
    ])
}

fn window() -> impl Strategy<Value = u64> {
    prop_oneof![Just(20u64), Just(40u64)]
}

fn terms() -> impl Strategy<Value = Terms> {
    let path = prop::option::of(0..PATHS.len());
    (path, limit(), window(), action(), any::<bool>(), any_mode(), other()).prop_map(
        |(path, n, window, action, status, mode, other)| Terms {
            path,
            n,
            window,
            action,
            status,
            mode,
            other,
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let name = || 0..NAMES;
    let client = || prop::option::weighted(0.3, 0..CLIENTS.len());
    prop_oneof![
        2 => Just(Change::Nothing),
        1 => Just(Change::Swap),
        1 => name().prop_map(Change::Remove),
        3 => (name(), terms()).prop_map(|(name, terms)| Change::Set(name, terms)),
        6 => (name(), limit()).prop_map(|(name, n)| Change::Limit(name, n)),
        1 => (name(), window()).prop_map(|(name, window)| Change::Window(name, window)),
        3 => (name(), action()).prop_map(|(name, action)| Change::Act(name, action)),
        2 => (name(), any_mode()).prop_map(|(name, mode)| Change::Mode(name, mode)),
        3 => (name(), other()).prop_map(|(name, other)| Change::Other(name, other)),
        1 => any_mode().prop_map(Change::FileMode),
        1 => client().prop_map(Change::Allow),
        1 => client().prop_map(Change::Deny),
    ]
}

fn file() -> impl Strategy<Value = File> {
    let rules = prop::collection::vec(terms(), 1..=NAMES);
    rules.prop_map(|rules| File {
        rules: rules.into_iter().enumerate().collect(),
        mode: Mode::Enforce,
        allowed: None,
        denied: None,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let gap = || prop_oneof![4 => Just(0u64), 8 => 0..6u64, 2 => 6..40u64, 1 => 40..300u64];
    let (rule, client) = (|| 0..NAMES, || 0..CLIENTS.len());
    prop_oneof![
        24 => (client(), 0..PATHS.len(), gap())
            .prop_map(|(client, path, gap)| Step::Ask { client, path, gap }),
        10 => (any::<usize>(), prop::bool::weighted(0.8), gap())
            .prop_map(|(which, bad, gap)| Step::Settle { which, bad, gap }),
        1 => (rule(), client()).prop_map(|(rule, client)| Step::Lift { rule, client }),
        1 => rule().prop_map(|rule| Step::LiftAll { rule }),
        2 => (rule(), client(), 1..200u64)
            .prop_map(|(rule, client, lasts)| Step::Block { rule, client, lasts }),
        5 => change().prop_map(Step::Reload),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(1_500)))]

    #[test]
    fn engines_that_follow_one_another_decide_as_one_would_by_the_rules_in_force(
        file in file(),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        compare(file, &steps)?;
    }
}
