//! Random reloads against a model that keeps every event of every key by the rule's name.
//!
//! Limits stay exact here, so that the model need not guess; `conversion` has the others.

mod file;
mod key;

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use hotgate_detector::{Cause, Charges, CheckError, Decision, Door, Engine, Outcome, RuleCounts};
use hotgate_rules::Extract;
use http::StatusCode;
use proptest::prelude::*;

use self::{
    file::{Action, CLIENTS, File, Listed, Mode, Other, PATHS, Pace, Terms, Who},
    key::{Key, Kind, Verdict},
};
use super::stream::{Stream, listed};
use crate::harness::{engine, get, ms, rule_set};

const NAMES: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Ask { who: Who, path: usize, doors: bool, gap: u64 },
    Check { who: Who, rule: usize },
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
    ByKey(usize, Option<Other>),
    ByWhen(usize, Option<Other>),
    FileMode(Mode),
    Allow(Option<Listed>),
    Deny(Option<Listed>),
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
    /// Which engine it was that admitted it.
    engine: u32,
    who: Who,
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
    engines: u32,
    stream: Stream,
    voided: u32,
}

/// What the service's extractor says.
#[derive(Debug)]
struct Plan(bool);

impl Extract for Plan {
    fn user(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn extra(&self, name: &str) -> Option<Cow<'_, str>> {
        (name == "plan").then_some(if self.0 { "gold" } else { "free" }.into())
    }
}

impl Model {
    fn new(file: File) -> Self {
        let engine = engine(&file.text());
        let mut model = Model {
            file,
            known: BTreeMap::new(),
            lineages: 0,
            open: Vec::new(),
            now: 1_000,
            engine,
            engines: 0,
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
            Change::Act(name, action) => with(name, &|terms| terms.act(action)),
            Change::Mode(name, mode) => with(name, &|terms| terms.mode = mode),
            Change::ByKey(name, other) => with(name, &|terms| terms.by_key = other),
            Change::ByWhen(name, other) => with(name, &|terms| terms.by_when = other),
            Change::FileMode(mode) => file.mode = mode,
            Change::Allow(which) => file.allowed = which,
            Change::Deny(which) => file.denied = which,
        }
        file
    }

    fn reload(&mut self, change: &Change) {
        let file = self.change(change);
        let old = std::mem::replace(&mut self.file, file);
        self.engine = self.engine.succeed(rule_set(&self.file.text()), ms(self.now));
        self.engines += 1;
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

    /// One request, at one door or at two.
    fn ask(&mut self, who: Who, path: usize, doors: bool) -> Result<(), TestCaseError> {
        if !doors {
            return self.ask_at(Door::Only, who, path).map(drop);
        }
        let open = self.open.len();
        if !self.ask_at(Door::Outer, who, path)? || self.ask_at(Door::Inner, who, path)? {
            return Ok(());
        }
        // The gate answers at the inner door: what the outer one holds is never counted.
        if self.open.len() > open {
            let held = self.open.swap_remove(open);
            self.settled(held, Outcome::Answered);
        }
        Ok(())
    }

    /// Whether the request passes.
    fn ask_at(&mut self, door: Door, who: Who, path: usize) -> Result<bool, TestCaseError> {
        let (now, file, client) = (self.now, self.file.clone(), who.client);
        let ask = get(PATHS[path]).from(CLIENTS[client]);
        let plan = Plan(who.gold);
        let decision = self.engine.decide_at(door, &ask.facts(&plan), ms(now));
        let refusal = decision.refusal.as_ref().map(|refusal| refusal.cause);
        let holds = |listed: Option<Listed>| listed.filter(|listed| listed.holds(client, now));
        let (allowed, denied) = (holds(file.allowed), holds(file.denied).is_some());
        if file.mode == Mode::Off {
            prop_assert_eq!(refusal, None, "off");
            return Ok(true);
        }
        if denied && file.mode == Mode::Enforce {
            prop_assert_eq!(refusal, Some(Cause::Denied));
            return Ok(false);
        }
        let allowed = allowed.filter(|_| !denied);
        let past = allowed.map(|allowed| allowed.rule.filter(|rule| self.known.contains_key(rule)));
        if past == Some(None) {
            prop_assert_eq!(refusal, None, "allowed");
            prop_assert!(decision.findings.is_empty(), "an allowed client is known to no rule");
            return Ok(true);
        }
        let judges = |name: usize, terms: &Terms| {
            let at_door = match door {
                Door::Only => true,
                Door::Outer => !terms.is_inner(),
                Door::Inner => terms.is_inner(),
            };
            at_door && terms.path.is_none_or(|own| own == path) && past != Some(Some(name))
        };
        let rules = file.rules.iter().filter(|(name, terms)| judges(*name, terms));
        let rules: Vec<_> = rules.map(|(name, terms)| (*name, terms)).collect();
        self.judge(&rules, who, decision)
    }

    fn check(&mut self, who: Who, name: usize) -> Result<(), TestCaseError> {
        let ask = get("/").from(CLIENTS[who.client]);
        let plan = Plan(who.gold);
        let checked = self.engine.check(&format!("r{name}"), &ask.facts(&plan), ms(self.now));
        let terms = self.terms(name);
        match (terms, checked) {
            (None, Err(CheckError::UnknownRule)) => Ok(()),
            (Some(terms), Err(CheckError::CountsResponses)) if terms.status => Ok(()),
            (Some(terms), Ok(decision)) => self.judge(&[(name, &terms)], who, decision).map(drop),
            (terms, checked) => Err(TestCaseError::fail(format!("checked {terms:?}: {checked:?}"))),
        }
    }

    /// Lets rules speak, and compares: whether the request passes.
    fn judge(
        &mut self,
        rules: &[(usize, &Terms)],
        who: Who,
        decision: Decision,
    ) -> Result<bool, TestCaseError> {
        let (now, mode) = (self.now, self.file.mode);
        let speaks = |terms: &Terms| terms.holds(who, now) && !terms.is_free(mode, who);
        let matching = rules.iter().filter(|(_, terms)| speaks(terms));
        let matching: Vec<_> = matching
            .map(|(name, terms)| {
                let key = &mut self.known.get_mut(name).unwrap().keys[who.client];
                (*name, *terms, key.refuses(terms, who, now))
            })
            .collect();
        let enforces = |terms: &Terms| terms.mode(mode, who) == Mode::Enforce;
        let enforced = matching.iter().filter(|(_, terms, _)| enforces(terms));
        let causes: Vec<Cause> = enforced.filter_map(|(.., own)| *own).collect();
        let refused = causes.iter().any(|cause| *cause != Cause::Pending);
        let refusal = decision.refusal.as_ref().map(|refusal| refusal.cause);
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
            let key = &mut known.keys[who.client];
            let waits = causes.contains(&Cause::Pending) || own == Some(Cause::Pending);
            let refuses = refused || own.is_some_and(|cause| cause != Cause::Pending);
            if (refuses || !waits) && key.charge(terms, who, own, refused, now) {
                held.push((name, known.lineage, key.generation));
            }
            known.counts.matched += 1;
            known.counts.refused += u64::from(own.is_some() && enforces(terms));
            known.counts.would_refuse += u64::from(own.is_some() && !enforces(terms));
            let text = format!("r{name}");
            let finding = decision.findings.iter().find(|finding| *finding.rule == *text);
            let hot = key.verdict.is_some();
            prop_assert_eq!(
                finding.and_then(|finding| finding.refuses),
                own,
                "what {} says at {} ms",
                text,
                now
            );
            prop_assert_eq!(
                finding.is_some_and(|finding| finding.hot),
                hot,
                "is {} hot at {} ms",
                text,
                now
            );
            let marks = matches!(terms.action, Action::Tag | Action::Handler);
            prop_assert_eq!(
                finding.is_some_and(|finding| finding.acts),
                hot && marks && enforces(terms) && own.is_none(),
                "does {} act at {} ms",
                text,
                now
            );
            let until = finding.filter(|finding| finding.hot).and_then(|finding| finding.until);
            let model = key.verdict.as_ref().map(|verdict| ms(verdict.until));
            prop_assert!(until.is_none() || until == model, "until {until:?}, the model {model:?}");
        }
        if causes.is_empty() {
            let (charges, engine) = (decision.charges, self.engines);
            self.open.push(Open { charges, engine, who, held });
        }
        Ok(causes.is_empty())
    }

    fn settle(&mut self, which: usize, bad: bool) {
        let open = self.open.swap_remove(which % self.open.len());
        let status = if bad { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
        self.settled(open, Outcome::Status(status));
    }

    fn settled(&mut self, open: Open, outcome: Outcome) {
        self.engine.settle(open.charges, outcome, ms(self.now));
        let bad = outcome == Outcome::Status(StatusCode::UNAUTHORIZED);
        // Of what the request said only the key is known to another engine.
        let gold = open.who.gold && open.engine == self.engines;
        let who = Who { gold, ..open.who };
        for (name, lineage, generation) in open.held {
            let Some(terms) = self.terms(name) else { continue };
            let known = self.known.get_mut(&name).unwrap();
            if known.lineage == lineage {
                let key = &mut known.keys[who.client];
                key.settle(&terms, who, self.file.mode, (generation, bad), self.now);
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
            Step::Ask { who, path, doors, gap } => {
                model.now += gap;
                model.ask(*who, *path, *doors)?;
            }
            Step::Check { who, rule } => model.check(*who, *rule)?,
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
    let pace = (1..20u64, 1..4u64).prop_map(|(every, burst)| Pace { every, burst });
    prop_oneof![
        2 => Just(Action::Throttle(None)),
        2 => pace.prop_map(|pace| Action::Throttle(Some(pace))),
        3 => block.prop_map(|(lasts, extend, grow)| Action::Block { lasts, extend, grow }),
        1 => Just(Action::Tag),
        1 => Just(Action::Handler),
    ]
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop_oneof![5 => Just(Mode::Enforce), 2 => Just(Mode::Observe), 1 => Just(Mode::Off)]
}

fn other() -> impl Strategy<Value = Option<Other>> {
    let other = prop_oneof![
        3 => limit().prop_map(Other::Limit),
        1 => Just(Other::Exempt),
        1 => Just(Other::Observe),
        2 => (1..60u64).prop_map(Other::Act),
    ];
    prop::option::weighted(0.4, other)
}

fn window() -> impl Strategy<Value = u64> {
    prop_oneof![Just(20u64), Just(40u64)]
}

/// The clock begins at one second.
fn second() -> impl Strategy<Value = Option<u64>> {
    prop::option::weighted(0.1, 1..4u64)
}

fn terms() -> impl Strategy<Value = Terms> {
    let path = prop::option::of(0..PATHS.len());
    let scope = (path, prop::bool::weighted(0.2), second(), second());
    let counts = (limit(), window(), action(), any::<bool>());
    (scope, counts, any_mode(), other(), other()).prop_map(
        |((path, when, from, until), (n, window, action, status), mode, by_key, by_when)| {
            // A period has some length.
            let until = until.filter(|until| from.is_none_or(|from| from < *until));
            let mut terms =
                Terms { path, when, n, window, action, status, mode, from, until, by_key, by_when };
            terms.act(action);
            terms
        },
    )
}

impl Terms {
    /// Takes an action, and counts responses only where that one can.
    fn act(&mut self, action: Action) {
        self.action = action;
        self.status &= matches!(action, Action::Throttle(None) | Action::Block { .. });
    }
}

fn who() -> impl Strategy<Value = Who> {
    (0..CLIENTS.len(), any::<bool>()).prop_map(|(client, gold)| Who { client, gold })
}

fn list() -> impl Strategy<Value = Option<Listed>> {
    let listed = (0..CLIENTS.len(), prop::option::of(1..4u64), prop::option::of(0..NAMES));
    prop::option::weighted(
        0.3,
        listed.prop_map(|(client, until, rule)| Listed { client, until, rule }),
    )
}

fn change() -> impl Strategy<Value = Change> {
    let name = || 0..NAMES;
    prop_oneof![
        2 => Just(Change::Nothing),
        1 => Just(Change::Swap),
        1 => name().prop_map(Change::Remove),
        3 => (name(), terms()).prop_map(|(name, terms)| Change::Set(name, terms)),
        6 => (name(), limit()).prop_map(|(name, n)| Change::Limit(name, n)),
        1 => (name(), window()).prop_map(|(name, window)| Change::Window(name, window)),
        3 => (name(), action()).prop_map(|(name, action)| Change::Act(name, action)),
        2 => (name(), any_mode()).prop_map(|(name, mode)| Change::Mode(name, mode)),
        2 => (name(), other()).prop_map(|(name, other)| Change::ByKey(name, other)),
        2 => (name(), other()).prop_map(|(name, other)| Change::ByWhen(name, other)),
        1 => any_mode().prop_map(Change::FileMode),
        1 => list().prop_map(Change::Allow),
        1 => list().prop_map(Change::Deny),
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
        24 => (who(), 0..PATHS.len(), any::<bool>(), gap())
            .prop_map(|(who, path, doors, gap)| Step::Ask { who, path, doors, gap }),
        3 => (who(), rule()).prop_map(|(who, rule)| Step::Check { who, rule }),
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
