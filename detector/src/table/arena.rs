//! Where stamps are kept, apart from the lines: only counting touches them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::WAYS;
use crate::window::Limit;

/// Words of a place before its ring: the limit that the ring is written for, then, for a rule that
/// counts responses, the two below.
const LIMIT: usize = 0;
const PENDING: usize = 1;
const GENERATION: usize = 2;

/// The words of all places. Zeroed by the allocator: pages of places that were never used cost
/// nothing.
#[derive(Debug)]
pub(super) struct Arena {
    words: Box<[AtomicU32]>,
    /// Words of a place.
    stride: usize,
    head: usize,
}

/// The words of one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    words: &'a [AtomicU32],
    head: usize,
}

impl Arena {
    /// Room for a ring of any of these limits at every place.
    pub(super) fn new(lines: usize, limits: &[Limit], responses: bool) -> Self {
        let head = if responses { GENERATION + 1 } else { LIMIT + 1 };
        let stride = head + ring_len(limits);
        let words = bytemuck::allocation::zeroed_slice_box(lines * usize::from(WAYS) * stride);
        Arena { words, stride, head }
    }

    /// A larger one for these limits, unless this one has the room.
    pub(super) fn grown(&self, lines: usize, limits: &[Limit]) -> Option<Self> {
        let responses = self.head > LIMIT + 1;
        let fits = self.head + ring_len(limits) <= self.stride;
        (!fits).then(|| Arena::new(lines, limits, responses))
    }

    pub(super) fn of(&self, place: usize) -> Words<'_> {
        Words { words: &self.words[place * self.stride..][..self.stride], head: self.head }
    }

    /// Copies a place's words to a larger arena.
    pub(super) fn copy(&self, place: usize, to: &Arena) {
        for (from, to) in self.of(place).words.iter().zip(to.of(place).words) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
}

/// Stamps that a place has room for, so that most changes of a limit need no more: the rings of all
/// limits beyond 64 are of at most 51.
const RING_LENS: [usize; 3] = [16, 32, 51];

fn ring_len(limits: &[Limit]) -> usize {
    let ring = limits.iter().map(|limit| limit.ring_len() as usize).max().unwrap_or(1);
    RING_LENS.into_iter().find(|len| *len >= ring).unwrap_or(ring)
}

impl<'a> Words<'a> {
    pub(super) fn ring(self) -> &'a [AtomicU32] {
        &self.words[self.head..]
    }

    /// The limit that the ring is written for; it means something only while the ring holds stamps.
    pub(super) fn limit(self) -> &'a AtomicU32 {
        &self.words[LIMIT]
    }

    fn counts_responses(self) -> bool {
        self.head > LIMIT + 1
    }

    /// Requests whose response is still to come.
    pub(super) fn pending(self) -> u32 {
        if self.counts_responses() { self.words[PENDING].load(Relaxed) } else { 0 }
    }

    pub(super) fn set_pending(self, pending: u32) {
        if self.counts_responses() {
            self.words[PENDING].store(pending, Relaxed);
        }
    }

    /// What the responses of requests admitted now belong to.
    pub(super) fn generation(self) -> u32 {
        if self.counts_responses() { self.words[GENERATION].load(Relaxed) } else { 0 }
    }

    pub(super) fn next_generation(self) {
        if self.counts_responses() {
            let next = self.generation().wrapping_add(1);
            self.words[GENERATION].store(next, Relaxed);
        }
    }
}
