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

/// That one of the process's first gates has asked the rules of its outer door. Mostly there is one gate
/// only: its marks have no size, so that beside other extensions they allocate nothing.
#[derive(Clone)]
struct AskedOuter<const GATE: u64>;

/// That one of the first gates has asked all its rules.
#[derive(Clone)]
struct AskedAll<const GATE: u64>;

/// What gates after those have asked, by their numbers.
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
        let door = move |asked| match (place, asked) {
            (_, None) => Some(unmarked),
            (Place::Inner, Some(Asked::Outer)) => Some(Door::Inner),
            _ => None,
        };
        match self.number {
            0 => first::<0>(&mut parts.extensions, door),
            1 => first::<1>(&mut parts.extensions, door),
            2 => first::<2>(&mut parts.extensions, door),
            3 => first::<3>(&mut parts.extensions, door),
            gate => further(gate, &mut parts.extensions, door),
        }
    }
}

impl Asked {
    fn at(door: Door) -> Self {
        if door == Door::Outer { Asked::Outer } else { Asked::All }
    }
}

/// The door by what the mark of one of the first gates says, which is then moved on.
fn first<const GATE: u64>(
    extensions: &mut Extensions,
    door: impl FnOnce(Option<Asked>) -> Option<Door>,
) -> Option<Door> {
    let asked = if extensions.get::<AskedAll<GATE>>().is_some() {
        Some(Asked::All)
    } else {
        extensions.get::<AskedOuter<GATE>>().map(|_| Asked::Outer)
    };
    let door = door(asked)?;
    match Asked::at(door) {
        Asked::Outer => drop(extensions.insert(AskedOuter::<GATE>)),
        Asked::All => drop(extensions.insert(AskedAll::<GATE>)),
    }
    Some(door)
}

/// The same of the gates after those.
fn further(
    gate: u64,
    extensions: &mut Extensions,
    door: impl FnOnce(Option<Asked>) -> Option<Door>,
) -> Option<Door> {
    let by = &mut extensions.get_or_insert_default::<AskedBy>().0;
    let own = by.iter_mut().find(|(number, _)| *number == gate);
    let door = door(own.as_ref().map(|(_, asked)| *asked))?;
    match own {
        Some((_, asked)) => *asked = Asked::at(door),
        None => by.push((gate, Asked::at(door))),
    }
    Some(door)
}
