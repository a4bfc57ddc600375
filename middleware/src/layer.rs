//! The layer.

use tower_layer::Layer;

use crate::{Gate, GateService};

/// Puts a [`GateService`] in front of a service; made by [`Gate::layer`].
///
/// Every service it makes, and every clone of one, shares the gate's counts.
#[derive(Clone, Debug)]
pub struct GateLayer {
    gate: Gate,
}

impl GateLayer {
    pub(crate) fn new(gate: Gate) -> Self {
        GateLayer { gate }
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = GateService<S>;

    fn layer(&self, inner: S) -> GateService<S> {
        self.gate.count_door();
        GateService::new(inner, self.gate.clone())
    }
}
