//! What a gate does with a request: it refuses it, answers it by a handler, or marks it and lets it pass.

use std::net::IpAddr;

use bytes::Bytes;
use hotgate_detector::{Charges, Decision, Door, Finding, Outcome, QuotaLeft, Time};
use hotgate_rules::Action;
use http::{Method, Response, request::Parts};

use crate::{
    Gate,
    active::Active,
    extracted::Extracted,
    facts, fields,
    gate::Shared,
    mark::Place,
    refusal::{self, Answered},
};

/// What the gate says of a request.
pub(crate) enum Admission {
    /// It is refused, or a handler has answered it.
    Answered(Response<Bytes>),
    Admitted(Option<Pending>),
}

impl Gate {
    /// Decides a request. A [`Decision`] that has something to say is left in the extensions of the
    /// request, or of the answer that refuses it.
    pub(crate) fn admit(&self, place: Place, parts: &mut Parts) -> Admission {
        let shared = self.shared();
        let Some(door) = shared.door(place, parts) else {
            return Admission::Admitted(None);
        };
        let active = shared.active.load();
        if door != Door::Inner {
            active.strip_tags(&mut parts.headers);
        }
        let client = if active.asks(door).client { shared.client(&active, parts) } else { None };
        let now = shared.clock.now();
        let mut decision = shared.decide(&active, door, parts, client, now);
        shared.refusals.observed(&active, &decision, now);
        if decision.refusal.is_some() {
            return Admission::Answered(shared.refuse(&active, decision, &parts.method, now));
        }
        let charges = std::mem::take(&mut decision.charges);
        let quotas = std::mem::take(&mut decision.quotas);
        let is_open = !(charges.is_empty() && quotas.is_empty());
        // Before any function of the service is called: should it panic, nothing stays open.
        let pending = is_open.then(|| Pending { gate: self.clone(), charges, quotas });
        if decision.findings.is_empty() {
            return Admission::Admitted(pending);
        }
        if let Some(mut response) = shared.handle(&active, &decision, parts) {
            if let Some(pending) = pending {
                pending.settle(Outcome::Answered);
            }
            response.extensions_mut().insert(Answered);
            return Admission::Answered(response);
        }
        active.tag(&decision, parts);
        add(&mut parts.extensions, decision);
        Admission::Admitted(pending)
    }
}

impl Shared {
    fn decide(
        &self,
        active: &Active,
        door: Door,
        parts: &Parts,
        client: Option<IpAddr>,
        now: Time,
    ) -> Decision {
        let asks = active.asks(door);
        if asks.extracted {
            let extracted = Extracted::new(&self.hooks, parts);
            return active.engine.decide_at(door, &facts::of(parts, asks, client, &extracted), now);
        }
        active.engine.decide_at(door, &facts::of(parts, asks, client, &()), now)
    }

    /// The answer to a request of `method` that is refused; the decision goes with it.
    pub(crate) fn refuse(
        &self,
        active: &Active,
        mut decision: Decision,
        method: &Method,
        now: Time,
    ) -> Response<Bytes> {
        let Some(refusal) = &mut decision.refusal else { return Response::default() };
        let own = active.respond(refusal);
        refusal.status = own.and_then(|own| own.status).unwrap_or(refusal.status);
        self.refusals.refused(refusal, now);
        let mut response = refusal::answer(refusal, own, method);
        response.extensions_mut().insert(decision);
        response
    }

    /// What a handler of the service answers: that of the rule first by name, if it answers.
    fn handle(
        &self,
        active: &Active,
        decision: &Decision,
        parts: &Parts,
    ) -> Option<Response<Bytes>> {
        let named =
            decision.findings.iter().filter_map(|finding| match active.action(finding)? {
                Action::Handler(name) => Some((finding, name)),
                _ => None,
            });
        let (finding, name) = named.min_by(|one, other| one.0.rule.cmp(&other.0.rule))?;
        let (_, handler) = self.hooks.handlers.get(name)?;
        handler(parts, finding)
    }
}

impl Active {
    /// What a rule does to this request, if it does.
    fn action(&self, finding: &Finding) -> Option<&Action> {
        let rule = self.engine.rules().rules().get(finding.index)?;
        finding.acts.then(|| rule.action_under(finding.terms))
    }

    /// Marks the request with the names of the rules whose tags apply.
    fn tag(&self, decision: &Decision, parts: &mut Parts) {
        for finding in &decision.findings {
            if let Some(Action::Tag(header)) = self.action(finding) {
                parts.headers.append(header, self.name(finding.index));
            }
        }
    }
}

/// Leaves what this door found beside what others found before.
fn add(extensions: &mut http::Extensions, decision: Decision) {
    match extensions.get_mut::<Decision>() {
        Some(before) => before.findings.extend(decision.findings),
        None => drop(extensions.insert(decision)),
    }
}

/// What is open of an admitted request until its response head: rules that count the response, or tell
/// what is left of a quota. Dropped before, the request was cancelled.
pub(crate) struct Pending {
    gate: Gate,
    charges: Charges,
    quotas: Vec<QuotaLeft>,
}

impl Pending {
    /// The inner service has answered, or failed.
    pub(crate) fn conclude<B, E>(self, result: &mut Result<Response<B>, E>) {
        let outcome = match result {
            Ok(response) if response.extensions().get::<Answered>().is_some() => Outcome::Answered,
            Ok(response) => {
                fields::tell(&self.quotas, response.headers_mut());
                Outcome::Status(response.status())
            }
            Err(_) => Outcome::Error,
        };
        self.settle(outcome);
    }

    fn settle(mut self, outcome: Outcome) {
        self.settle_once(outcome);
    }

    fn settle_once(&mut self, outcome: Outcome) {
        let charges = std::mem::take(&mut self.charges);
        if !charges.is_empty() {
            let shared = self.gate.shared();
            shared.active.load().engine.settle(charges, outcome, shared.clock.now());
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.settle_once(Outcome::Cancelled);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Request;

    use super::*;
    use crate::Decision;

    #[test]
    fn a_request_of_a_hot_key_that_passes_carries_the_decision() {
        let (clock, mock) = quanta::Clock::mock();
        let rules =
            "app = \"test\"\n[[rule]]\nname = \"api\"\nkey = []\nover = \"2/1m\"\nthrottle = {}\n";
        let (gate, _worker) = Gate::builder().rules(rules.parse().unwrap()).pair(clock).unwrap();
        let passes = || {
            let mut parts = Request::new(()).into_parts().0;
            let admitted = matches!(gate.admit(Place::Outer, &mut parts), Admission::Admitted(_));
            admitted.then(|| parts.extensions.remove::<Decision>())
        };
        assert!(passes().unwrap().is_none() && passes().unwrap().is_none(), "nothing to say yet");
        assert!(passes().is_none(), "refused");
        mock.increment(Duration::from_secs(61));
        let decision = passes().expect("the window is free").expect("the key is still hot");
        assert!(decision.refusal.is_none() && decision.findings[0].hot);
        mock.increment(Duration::from_secs(600));
        assert!(passes().unwrap().is_none(), "the key has cooled");
    }
}
