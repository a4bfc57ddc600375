use std::{collections::HashMap, sync::Arc};

use hotgate_rules::Peer;
use http::{Request, request::Parts};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use super::*;
use crate::{Gate, PeerAddr, admission::Admission, logged::Logged, mark::Place};

fn pair(rules: &str) -> (Gate, Worker, Arc<quanta::Mock>) {
    let (clock, mock) = quanta::Clock::mock();
    let rules = format!("app = \"test\"\n{rules}").parse().unwrap();
    let (gate, worker) = Gate::builder().rules(rules).peer(PeerAddr::of).pair(clock).unwrap();
    (gate, worker, mock)
}

fn tick(worker: &Worker) {
    worker.shared.upgrade().unwrap().tick();
}

fn request(path: &str, known: bool) -> Parts {
    let mut request = Request::get(path).body(()).unwrap();
    if known {
        request.extensions_mut().insert(PeerAddr(Peer::Ip([203, 0, 113, 9].into())));
    }
    request.into_parts().0
}

/// Whether a request passes, its response left open no longer than this call.
fn passes(gate: &Gate, mut parts: Parts) -> bool {
    matches!(gate.admit(Place::Outer, &mut parts), Admission::Admitted(_))
}

const BLOCK: &str =
    "[[rule]]\nname = \"login\"\nkey = [\"client\"]\nover = \"2/1m\"\nblock = { for = \"15m\" }\n";
const OBSERVE: &str = "[[rule]]\nname = \"api\"\nkey = [\"client\"]\nover = \"1/1m\"\nthrottle = {}\nmode = \"observe\"\n";
const REJECT: &str = "[[rule]]\nname = \"strict\"\nmatch = \"/strict\"\nkey = [\"header:x-key\"]\nmissing_key = \"reject\"\nover = \"9/1m\"\nthrottle = {}\n";

/// What stands in `snapshotter`, summed over all snapshots, as `name{rule,outcome}`.
fn add(totals: &mut HashMap<String, f64>, snapshotter: &Snapshotter) {
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        let labels: Vec<&str> = key.labels().map(|label| label.value()).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        match value {
            DebugValue::Counter(count) => *totals.entry(name).or_default() += count as f64,
            DebugValue::Gauge(value) => drop(totals.insert(name, value.into_inner())),
            DebugValue::Histogram(_) => unreachable!("the gate has no histogram"),
        }
    }
}

#[test]
fn counters_say_what_happened_under_rule_action_and_outcome() {
    let (gate, worker, _mock) = pair(&format!("{BLOCK}{OBSERVE}{REJECT}"));
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut totals = HashMap::new();
    metrics::with_local_recorder(&recorder, || {
        for _ in 0..3 {
            for _ in 0..2 {
                passes(&gate, request("/", true));
            }
            passes(&gate, request("/strict", false));
            tick(&worker);
            add(&mut totals, &snapshotter);
        }
    });
    let total = |name: &str| totals.get(name).copied().unwrap_or(f64::NAN);
    let requests = |labels: &str| total(&format!("hotgate_requests_total{{{labels}}}"));
    assert_eq!(requests("login,block,admitted"), 2.0);
    assert_eq!(requests("login,block,refused"), 4.0);
    assert_eq!(requests("login,block,unkeyed"), 3.0);
    assert_eq!(requests("api,throttle,admitted"), 1.0);
    assert_eq!(requests("api,throttle,would_refuse"), 5.0);
    assert_eq!(requests("api,throttle,refused"), 0.0);
    assert_eq!(requests("strict,throttle,refused"), 3.0);
    assert_eq!(requests("strict,throttle,admitted"), 0.0, "the rejected are not counted twice");
    assert_eq!(requests("strict,throttle,unkeyed"), 0.0);
    assert_eq!(total("hotgate_verdicts{login,block}"), 1.0);
    assert_eq!(total("hotgate_no_peer_total{}"), 3.0);
    assert_eq!(total("hotgate_evicted_live_total{login,block}"), 0.0);
}

#[test]
fn each_change_of_a_verdict_is_one_event() {
    let (gate, worker, mock) = pair(BLOCK);
    let logged = Logged::default();
    let _guard = logged.listen();
    for _ in 0..9 {
        passes(&gate, request("/", true));
    }
    tick(&worker);
    tick(&worker);
    let began = logged.lines_with(" hot ");
    assert_eq!(began.len(), 1, "{began:?}");
    for part in [
        "WARN hotgate",
        "rule=\"login\"",
        "action=\"block\"",
        "key=\"client=203.0.113.9\"",
        "lasts=900s",
    ] {
        assert!(began[0].contains(part), "{part} in {}", began[0]);
    }
    mock.increment(Duration::from_secs(901));
    tick(&worker);
    tick(&worker);
    assert_eq!(logged.lines_with("cooled").len(), 1);
    assert!(passes(&gate, request("/", true)));
}

#[test]
fn a_rule_that_keyed_nothing_says_so_once() {
    let (gate, worker, _mock) = pair(BLOCK);
    let logged = Logged::default();
    let _guard = logged.listen();
    for (requests, said) in [(999, 0), (1, 1), (1_000, 1)] {
        for _ in 0..requests {
            assert!(passes(&gate, request("/", false)));
        }
        tick(&worker);
        assert_eq!(logged.lines_with("found its key").len(), said, "after {requests} more");
    }
    let said = logged.lines_with("found its key");
    assert!(said[0].contains("rule \"login\" matched 1000 requests"), "{}", said[0]);
    assert!(said[0].contains("the server does not tell the peer's address"), "{}", said[0]);
}

const BY_USER: &str = "[[rule]]\nname = \"user\"\nmatch = \"/api\"\nkey = [\"user\"]\nover = \"9/1m\"\nthrottle = {}\n";

fn by_user() -> (Gate, Worker) {
    let (clock, _) = quanta::Clock::mock();
    let rules = format!("app = \"test\"\n{BY_USER}").parse().unwrap();
    let builder = Gate::builder().rules(rules);
    builder
        .user(|parts| parts.headers.get("x-user")?.to_str().ok().map(Into::into))
        .pair(clock)
        .unwrap()
}

#[test]
fn a_rule_whose_door_none_reaches_says_so_once() {
    let (gate, worker) = by_user();
    let _inner = gate.inner_layer();
    let logged = Logged::default();
    let _guard = logged.listen();
    for (requests, said) in [(999, 0), (1, 1), (1_000, 1)] {
        for _ in 0..requests {
            assert!(passes(&gate, request("/api", false)));
            assert!(passes(&gate, request("/elsewhere", false)));
        }
        tick(&worker);
        assert_eq!(
            logged.lines_with("none came to the inner one").len(),
            said,
            "after {requests} more"
        );
    }
    let said = logged.lines_with("none came to the inner one");
    assert!(said[0].contains("rule \"user\" matched 1000 requests"), "{}", said[0]);
}

#[test]
fn a_rule_whose_door_is_reached_now_and_then_is_not_warned_of() {
    let (gate, worker) = by_user();
    let _inner = gate.inner_layer();
    let logged = Logged::default();
    let _guard = logged.listen();
    gate.admit(Place::Inner, &mut request("/api", false));
    for _ in 0..2_000 {
        assert!(passes(&gate, request("/api", false)));
    }
    tick(&worker);
    assert_eq!(logged.lines_with("none came to the inner one").len(), 0);
}

#[test]
fn a_rule_by_user_in_front_of_authentication_is_told_where_it_belongs() {
    let (gate, worker) = by_user();
    let logged = Logged::default();
    let _guard = logged.listen();
    for _ in 0..1_000 {
        assert!(passes(&gate, request("/api", false)));
    }
    tick(&worker);
    let said = logged.lines_with("found its key");
    assert!(said.len() == 1 && said[0].contains("gate.inner_layer() belongs inside"), "{said:?}");
}

/// Panics at the first counter it is asked for.
struct Panics;

impl metrics::Recorder for Panics {
    fn describe_counter(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }
    fn describe_gauge(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }
    fn describe_histogram(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }
    fn register_counter(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        panic!("a recorder that panics, as asked")
    }
    fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::noop()
    }
    fn register_histogram(
        &self,
        _: &metrics::Key,
        _: &metrics::Metadata<'_>,
    ) -> metrics::Histogram {
        metrics::Histogram::noop()
    }
}

#[test]
fn a_recorder_that_panics_costs_a_tick_and_no_count() {
    let (gate, worker, _mock) = pair(BLOCK);
    passes(&gate, request("/", true));
    metrics::with_local_recorder(&Panics, || tick(&worker));
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || tick(&worker));
    let mut totals = HashMap::new();
    add(&mut totals, &snapshotter);
    assert_eq!(totals["hotgate_requests_total{login,block,admitted}"], 1.0);
}

#[test]
fn the_thread_ends_with_the_last_gate() {
    let (gate, worker, _mock) = pair(BLOCK);
    let thread = thread::spawn(|| worker.run());
    let last = gate.clone();
    drop(gate);
    assert!(!thread.is_finished());
    drop(last);
    let dropped = Instant::now();
    thread.join().unwrap();
    assert!(dropped.elapsed() < Duration::from_secs(10), "dropping the last gate ends it");
}

#[test]
fn what_came_since_the_last_tick_is_told_when_the_last_gate_goes() {
    let (gate, worker, _mock) = pair(BLOCK);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut totals = HashMap::new();
    metrics::with_local_recorder(&recorder, || {
        tick(&worker);
        passes(&gate, request("/", true));
        drop(gate);
        add(&mut totals, &snapshotter);
    });
    assert_eq!(totals["hotgate_requests_total{login,block,admitted}"], 1.0);
}

#[test]
fn totals_go_on_through_every_change_of_the_rules() {
    let (gate, mut worker, _mock) = pair(BLOCK);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut totals: HashMap<String, f64> = HashMap::new();
    let shared = gate.shared();
    let enforce = |rules: &str| {
        let mut control = shared.control();
        control.rules = format!("app = \"test\"\n{rules}").parse().unwrap();
        shared.enforce(&control);
    };
    let mut tick = || {
        metrics::with_local_recorder(&recorder, || worker.tick(shared));
        let before = totals.clone();
        add(&mut totals, &snapshotter);
        for (name, total) in before.iter().filter(|(name, _)| name.contains("_total")) {
            assert!(totals[name] >= *total, "{name} went back");
        }
        totals.clone()
    };
    let admit = |requests, known| {
        for _ in 0..requests {
            passes(&gate, request("/strict", known));
        }
    };

    admit(5, true);
    enforce(&format!("{REJECT}{BLOCK}"));
    admit(3, false);
    let now = tick();
    assert_eq!(now["hotgate_requests_total{login,block,admitted}"], 2.0);
    assert_eq!(now["hotgate_requests_total{login,block,refused}"], 3.0, "wherever it stands now");
    assert_eq!(now["hotgate_verdicts{login,block}"], 1.0);
    assert_eq!(now["hotgate_requests_total{strict,throttle,refused}"], 3.0);

    enforce(&REJECT.replace("reject", "skip"));
    admit(4, false);
    let now = tick();
    assert_eq!(
        now["hotgate_requests_total{login,block,refused}"], 3.0,
        "it is gone, its total is not"
    );
    assert_eq!(now["hotgate_verdicts{login,block}"], 0.0);
    assert_eq!(now["hotgate_requests_total{strict,throttle,refused}"], 3.0);
    assert_eq!(
        now["hotgate_requests_total{strict,throttle,unkeyed}"], 4.0,
        "what was rejected is not counted anew"
    );

    enforce(&BLOCK.replace("block = { for = \"15m\" }", "throttle = {}"));
    admit(1, true);
    let now = tick();
    assert_eq!(now["hotgate_requests_total{login,throttle,admitted}"], 1.0);
    enforce(BLOCK);
    admit(3, true);
    let now = tick();
    assert_eq!(
        now["hotgate_requests_total{login,block,admitted}"], 3.0,
        "two, and one beside the throttle's in the window"
    );
    assert_eq!(now["hotgate_requests_total{login,throttle,admitted}"], 1.0);
}

#[test]
fn what_observing_rules_would_have_refused_is_logged_ten_times_a_second() {
    let (gate, mut worker, mock) = pair(OBSERVE);
    let logged = Logged::default();
    let _guard = logged.listen();
    for _ in 0..51 {
        assert!(passes(&gate, request("/", true)));
    }
    let would = logged.lines_with("would have refused ");
    assert_eq!(would.len(), 10, "{would:?}");
    for part in ["INFO hotgate", "rule=\"api\"", "action=\"throttle\"", "cause=\"quota\""] {
        assert!(would[0].contains(part), "{part} in {}", would[0]);
    }
    assert!(!would[0].contains("203.0.113.9"), "{}", would[0]);
    mock.increment(Duration::from_secs(1));
    worker.tick(gate.shared());
    worker.tick(gate.shared());
    assert_eq!(logged.lines_with("would have refused more").len(), 1);
    assert_eq!(logged.lines_with("unlogged=40").len(), 1);
}

#[test]
fn a_refusal_is_logged_with_the_id_its_answer_carries() {
    let (gate, _worker, _mock) = pair(BLOCK);
    let logged = Logged::default();
    let _guard = logged.listen();
    passes(&gate, request("/", true));
    passes(&gate, request("/", true));
    let mut parts = request("/", true);
    let Admission::Answered(response) = gate.admit(Place::Outer, &mut parts) else {
        panic!("the third in a minute is refused");
    };
    let decision = response.extensions().get::<crate::Decision>().unwrap();
    let id = decision.refusal.as_ref().unwrap().id().to_string();
    let refused = logged.lines_with(" refused ");
    assert_eq!(refused.len(), 1, "{refused:?}");
    for part in [
        &*format!("id={id}"),
        "rule=\"login\"",
        "action=\"block\"",
        "cause=\"blocked\"",
        "status=403",
    ] {
        assert!(refused[0].contains(part), "{part} in {}", refused[0]);
    }
    assert!(!refused[0].contains("203.0.113.9"), "{}", refused[0]);
}

#[test]
fn every_metric_is_described() {
    let (gate, mut worker, _mock) = pair(BLOCK);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || worker.tick(gate.shared()));
    let metrics = snapshotter.snapshot().into_vec();
    assert!(metrics.len() >= 20, "{metrics:?}");
    for (key, unit, text, _) in metrics {
        assert!(unit.is_some() && text.is_some(), "{}", key.key().name());
    }
}

#[test]
fn the_rules_in_force_and_the_mode_are_gauges() {
    let (gate, mut worker, _mock) = pair(BLOCK);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut totals = HashMap::new();
    gate.set_mode(None, hotgate_rules::Mode::Observe).unwrap();
    metrics::with_local_recorder(&recorder, || worker.tick(gate.shared()));
    add(&mut totals, &snapshotter);
    let modes =
        ["off", "observe", "enforce"].map(|mode| totals[&format!("hotgate_mode{{{mode}}}")]);
    assert_eq!(modes, [0.0, 1.0, 0.0]);
    let version = u64::from_str_radix(&gate.version(), 16).unwrap() as f64;
    assert_eq!(totals["hotgate_rules_version{}"], version, "all of its digits");
    assert_eq!(totals["hotgate_reload_failing{}"], 0.0);
    assert_eq!(totals["hotgate_reload_total{refused}"], 0.0, "told before it rises");
}
