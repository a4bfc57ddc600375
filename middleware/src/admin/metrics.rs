//! The gate's numbers as Prometheus reads them.

use metrics_exporter_prometheus::PrometheusBuilder;

use crate::{Gate, counters::Published};

/// The text format, version 0.0.4.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All the gate publishes, under the same names, into a recorder of this one answer: so they are here
/// whichever recorder the service has, or none, and beside nothing else of the service's.
pub(super) fn render(gate: &Gate) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || Published::default().publish(gate.shared()));
    recorder.handle().render()
}
