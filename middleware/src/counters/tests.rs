use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use metrics_util::{
    MetricKind,
    debugging::{DebuggingRecorder, Snapshotter},
};

use super::Published;
use crate::Gate;

/// One of each action, so that every label is there.
const RULES: &str = r#"
app = "shop"
[[rule]]
name = "api"
key = []
over = "2/1m"
throttle = {}
[[rule]]
name = "login"
key = []
over = "2/1m"
block = { for = "1m" }
"#;

/// What is said of a metric: its type, its unit, its labels, what it means.
type Said = (String, String, BTreeSet<String>, String);

/// The table of `docs/metrics.md`.
fn documented() -> BTreeMap<String, Said> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    let document = fs::read_to_string(file).expect(file);
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `hotgate_"));
    let row = |row: &str| {
        let cells: Vec<_> = row.trim_end_matches('|').split('|').map(str::trim).collect();
        let [name, kind, unit, labels, meaning] = cells[..] else { panic!("five cells: {row}") };
        let labels = labels.split(',').map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        let name = format!("hotgate_{}", name.trim_end_matches('`'));
        (name, (kind.to_owned(), unit.to_owned(), labels, meaning.to_owned()))
    };
    rows.map(row).collect()
}

/// What a gate exports.
fn exported(snapshotter: &Snapshotter) -> BTreeMap<String, Said> {
    let mut said: BTreeMap<String, Said> = BTreeMap::new();
    for (key, unit, text, _) in snapshotter.snapshot().into_vec() {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels = key.key().labels().map(|label| label.key().to_owned());
        let unit = unit.map_or("none".to_owned(), |unit| unit.as_str().to_owned());
        let text = text.map_or(String::new(), |text| text.to_string());
        let entry = said.entry(key.key().name().to_owned()).or_default();
        entry.2.extend(labels);
        (entry.0, entry.1, entry.3) = (kind.to_owned(), unit, text);
    }
    said
}

#[test]
fn the_table_of_metrics_is_what_is_exported_to_the_last_word() {
    let (gate, _worker) =
        Gate::builder().rules(RULES.parse().unwrap()).pair(quanta::Clock::mock().0).unwrap();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || Published::default().publish(gate.shared()));
    let (documented, exported) = (documented(), exported(&snapshotter));
    let names = |said: &BTreeMap<String, Said>| said.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&documented), names(&exported), "docs/metrics.md against the export");
    for (name, said) in &exported {
        assert_eq!(&documented[name], said, "docs/metrics.md of {name}");
    }
    assert!(exported.len() >= 15, "an empty table documents nothing");
}
