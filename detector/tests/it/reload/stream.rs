//! What events say, put together: it must be what stands.

use std::collections::BTreeMap;

use hotgate_detector::{Change, Engine, Event, Time};

/// The verdicts that stand by what was said, by rule and key.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    standing: BTreeMap<(String, String), (Time, bool)>,
    pub(crate) ended: BTreeMap<&'static str, u32>,
}

impl Stream {
    /// Takes in what was said; what is wrong with it, if anything is.
    pub(crate) fn hear(&mut self, events: Vec<Event>) -> Result<(), String> {
        for event in events {
            let subject = (event.rule.to_string(), event.key.to_string());
            let own = (event.since, event.manual);
            let known = match event.change {
                Change::Began => {
                    let stood = self.standing.insert(subject, own);
                    stood.map_or(Ok(()), |stood| {
                        Err(format!("began while {stood:?} stood: {event:?}"))
                    })
                }
                Change::GoesOn => self.is(&subject, own, &event),
                _ => {
                    *self.ended.entry(name(event.change)).or_default() += 1;
                    let known = self.is(&subject, own, &event);
                    self.standing.remove(&subject);
                    known
                }
            };
            known?;
        }
        Ok(())
    }

    fn is(
        &self,
        subject: &(String, String),
        own: (Time, bool),
        event: &Event,
    ) -> Result<(), String> {
        let stood = self.standing.get(subject);
        if stood == Some(&own) { Ok(()) } else { Err(format!("{stood:?} stood at {event:?}")) }
    }

    /// The verdicts that stand, as they were said.
    pub(crate) fn standing(&self) -> Vec<(String, String, Time, bool)> {
        let each = self.standing.iter();
        each.map(|((rule, key), (since, manual))| (rule.clone(), key.clone(), *since, *manual))
            .collect()
    }
}

/// The verdicts that stand, as the engine lists them.
pub(crate) fn listed(engine: &Engine, now: Time) -> Vec<(String, String, Time, bool)> {
    let verdicts = engine.verdicts(now).into_iter();
    let mut listed: Vec<_> = verdicts
        .map(|verdict| {
            (verdict.rule.to_string(), verdict.key.to_string(), verdict.since, verdict.manual)
        })
        .collect();
    listed.sort();
    listed
}

fn name(change: Change) -> &'static str {
    match change {
        Change::Ended => "ended",
        Change::Lifted => "lifted",
        Change::Voided => "voided",
        _ => "other",
    }
}
