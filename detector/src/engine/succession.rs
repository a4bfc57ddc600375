//! How one engine goes on from another.

use std::sync::{Arc, Mutex};

use hotgate_rules::{Mode, Rule, RuleSet};

use super::Engine;
use crate::{StandingVerdict, Time, counting::RuleState, door::Doors, id::MARKS, verdict::Subject};

impl Engine {
    /// An engine with other rules that goes on from this one. Rules of the same name and identity keep
    /// their counts and verdicts; a limit that changed is judged at once against the living counts.
    /// Verdicts of rules that mean something else now, or act in another way, are void; but those that
    /// operators set belong to the name, as far as the key still is one of the rule's, and go on without
    /// a word. Totals belong to the name, too, as long as some rule has it.
    ///
    /// An engine is succeeded once, and the other is to take its place at once. Until then this one
    /// decides by its own rules as before; beginnings and ends of verdicts that it still comes to are not
    /// told, where the other knows nothing of them. A thread that is overtaken in mid-decision counts where the other
    /// does. Once the new engine has taken this one's place, call
    /// [`settle_memory`](Self::settle_memory) on it.
    ///
    /// A ring of another size holds the same events, but their times may be as old as those up to a
    /// stamp's worth before: after a change of limit up to 2 % of the old one, and of the new one, leave the
    /// window early. Nobody is refused for it.
    ///
    /// `[memory]` of the rules that the first engine was made from holds.
    #[must_use]
    pub fn succeed(&self, rules: RuleSet, now: Time) -> Engine {
        let rules = rules.with_memory(self.rules.memory());
        let (mut lineages, mut marks) = (self.lineages, self.marks);
        let (mut states, mut events) = (Vec::new(), self.take_inherited());
        let kept = rules.rules().iter().filter_map(|rule| self.position(&rule.name));
        let kept: Vec<u16> = kept.map(|at| self.states[at].mark).collect();
        for (index, rule) in rules.rules().iter().enumerate() {
            let origin = self.config.origin_unix_nanos;
            let lineage = lineages;
            lineages += 1;
            let Some(at) = self.position(&rule.name) else {
                let of_name = (lineage, next_mark(&mut marks, &kept), Arc::default());
                states.push(RuleState::new(&rules, index, None, of_name, origin));
                continue;
            };
            let before = &self.states[at];
            let of_name = (lineage, before.mark, Arc::clone(&before.counters));
            let old = &self.rules.rules()[at];
            let fresh = RuleState::new(&rules, index, Some((old, before)), of_name, origin);
            let subject = |stood: &_| self.goes_on(rule, old, stood, rules.mode());
            let (state, said) = fresh.after(rule, old, before, subject, now);
            states.push(state);
            events.extend(said);
        }
        for (old, state) in self.rules.rules().iter().zip(&self.states) {
            let gone = rules.rules().iter().all(|rule| rule.name != old.name);
            if let (true, Some(counting)) = (gone, &state.counting) {
                events.extend(counting.void(now));
            }
        }
        Engine {
            number: self.number + 1,
            lineages,
            marks,
            doors: Doors::of(&rules),
            rules,
            states,
            hasher: self.hasher.clone(),
            config: self.config,
            id_secret: self.id_secret,
            totals: Arc::clone(&self.totals),
            inherited: Mutex::new(events),
        }
    }

    /// Whom an operator's verdict is about under other rules, if the key still is one of the rule's.
    fn goes_on(
        &self,
        rule: &Rule,
        old: &Rule,
        (hash, stood): &(u64, StandingVerdict),
        mode: Mode,
    ) -> Option<Subject> {
        let read = rule.key.read(&stood.key).ok();
        let terms = read.as_ref().and_then(|key| rule.override_by_key(key));
        let observed = rule.mode_under(mode, terms.map(|(_, terms)| terms)) != Mode::Enforce;
        // What is printed as a hash cannot be read, but is the same key where the parts are the same.
        if rule.key == old.key {
            return Some(Subject { hash: *hash, key: Arc::clone(&stood.key), observed });
        }
        let read = read?;
        let key = read.text(&rule.show(&self.config.privacy_secret)).into();
        Some(Subject { hash: self.hasher.hash_one(&read), key, observed })
    }

    /// Moves what engines before this one left where they had it, and gives their memory back. It takes
    /// some milliseconds where a limit has changed, and nothing otherwise; no request waits for it.
    pub fn settle_memory(&self) {
        for counting in self.states.iter().filter_map(|state| state.counting.as_ref()) {
            counting.table.settle();
        }
    }
}

/// The mark that was given longest ago, of those that no rule keeps.
fn next_mark(marks: &mut u64, kept: &[u16]) -> u16 {
    loop {
        let mark = u16::try_from(*marks % u64::from(MARKS)).unwrap_or(0);
        *marks += 1;
        // A file has fewer rules than there are marks.
        if !kept.contains(&mark) {
            return mark;
        }
    }
}
