//! The layer.

use tower_layer::Layer;

use crate::{Gate, GateService, mark::Place};

/// Puts a [`GateService`] in front of a service; made by [`Gate::layer`] and
/// [`Gate::inner_layer`].
///
/// Every service it makes, and every clone of one, shares the gate's counts.
#[derive(Clone, Debug)]
pub struct GateLayer {
    gate: Gate,
    place: Place,
}

impl GateLayer {
    pub(crate) fn new(gate: Gate, place: Place) -> Self {
        GateLayer { gate, place }
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = GateService<S>;

    fn layer(&self, inner: S) -> GateService<S> {
        self.gate.count_door();
        GateService::new(inner, self.gate.clone(), self.place)
    }
}
