//! A map with a capacity, shared by threads.

use std::{
    hash::{BuildHasherDefault, Hasher},
    sync::atomic::{
        AtomicU32,
        Ordering::{AcqRel, Acquire},
    },
};

use dashmap::DashMap;

/// A map with a capacity, by keys that are hashes already. Room is taken before it is filled.
#[derive(Debug)]
pub(super) struct Map<V> {
    pub(super) map: DashMap<u64, V, BuildHasherDefault<Prehashed>>,
    len: AtomicU32,
    capacity: u32,
}

impl<V> Map<V> {
    pub(super) fn new(capacity: u32) -> Self {
        Map { map: DashMap::default(), len: AtomicU32::new(0), capacity }
    }

    pub(super) fn len(&self) -> u32 {
        self.len.load(Acquire)
    }

    pub(super) fn has_room(&self) -> bool {
        self.len() < self.capacity
    }

    /// Takes room for one more, if there is any.
    pub(super) fn reserve(&self) -> bool {
        let room = |len: u32| (len < self.capacity).then_some(len + 1);
        self.len.fetch_update(AcqRel, Acquire, room).is_ok()
    }

    /// Removes a value and keeps its room for another.
    pub(super) fn take(&self, hash: u64) -> Option<V> {
        self.map.remove(&hash).map(|(_, value)| value)
    }

    pub(super) fn insert_reserved(&self, hash: u64, value: V) {
        if self.map.insert(hash, value).is_some() {
            self.len.fetch_sub(1, AcqRel);
        }
    }

    pub(super) fn remove_if(&self, hash: u64, over: impl FnOnce(&V) -> bool) -> Option<V> {
        if self.len() == 0 {
            return None;
        }
        let (_, value) = self.map.remove_if(&hash, |_, value| over(value))?;
        self.len.fetch_sub(1, AcqRel);
        Some(value)
    }

    pub(super) fn retain(&self, mut keep: impl FnMut(&u64, &mut V) -> bool) {
        self.map.retain(|hash, value| {
            let kept = keep(hash, value);
            if !kept {
                self.len.fetch_sub(1, AcqRel);
            }
            kept
        });
    }
}

/// Takes a hash for what it is.
#[derive(Debug, Default)]
pub(super) struct Prehashed(u64);

impl Hasher for Prehashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        debug_assert!(false, "only u64 keys are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
