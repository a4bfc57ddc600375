//! The marks that tell a gate's layers what was decided of a request further out.

use std::sync::atomic::Ordering::Relaxed;

use hotgate_detector::Door;
use http::{Extensions, request::Parts};
use smallvec::SmallVec;

use crate::gate::Shared;

/// Where one of a gate's layers stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Made by [`Gate::layer`](crate::Gate::layer).
    Outer,
    /// Made by [`Gate::inner_layer`](crate::Gate::inner_layer).
    Inner,
}

/// Which rules of a gate have been asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Those of the outer door.
    Outer,
    All,
}

/// That the process's first gate has asked the rules of its outer door. Mostly it is the only gate, so
/// its marks have no size: beside other extensions they allocate nothing.
#[derive(Clone)]
struct FirstAskedOuter;

/// That the process's first gate has asked all its rules.
#[derive(Clone)]
struct FirstAskedAll;

/// What other gates have asked, by their numbers.
#[derive(Clone, Default)]
struct AskedBy(SmallVec<[(u64, Asked); 1]>);

impl Shared {
    /// The door that a request is at, at one of the gate's layers, and marks it as decided there.
    /// `None`: layers further out have decided all that there is to decide.
    pub(crate) fn door(&self, place: Place, parts: &mut Parts) -> Option<Door> {
        let has_inner = self.has_inner_door.load(Relaxed);
        let unmarked = match place {
            Place::Outer if has_inner => Door::Outer,
            _ => Door::Only,
        };
        if self.doors.load(Relaxed) <= 1 {
            return Some(unmarked);
        }
        let door = match (place, asked(self.number, &parts.extensions)) {
            (_, None) => unmarked,
            (Place::Inner, Some(Asked::Outer)) => Door::Inner,
            _ => return None,
        };
        let now = if door == Door::Outer { Asked::Outer } else { Asked::All };
        mark(self.number, now, &mut parts.extensions);
        Some(door)
    }
}

fn asked(gate: u64, extensions: &Extensions) -> Option<Asked> {
    if gate > 0 {
        let by = extensions.get::<AskedBy>()?;
        return by.0.iter().find_map(|(number, asked)| (*number == gate).then_some(*asked));
    }
    if extensions.get::<FirstAskedAll>().is_some() {
        return Some(Asked::All);
    }
    extensions.get::<FirstAskedOuter>().map(|_| Asked::Outer)
}

fn mark(gate: u64, now: Asked, extensions: &mut Extensions) {
    match now {
        Asked::All if gate == 0 => drop(extensions.insert(FirstAskedAll)),
        Asked::Outer if gate == 0 => drop(extensions.insert(FirstAskedOuter)),
        _ => {
            let by = &mut extensions.get_or_insert_default::<AskedBy>().0;
            match by.iter_mut().find(|(number, _)| *number == gate) {
                Some((_, asked)) => *asked = now,
                None => by.push((gate, now)),
            }
        }
    }
}
