//! The keys of live allocations: each keeps the key that authenticated it.

use alloc::vec::Vec;

use super::UserId;
use super::key::{LongTermKey, PasswordAlgorithm};
use crate::nonce::NonceProof;

/// The credential that an allocation was made with, or the last one of its user that was accepted since.
#[derive(Clone, Debug)]
pub(crate) struct KeptKey {
    pub(super) key: LongTermKey,
    pub(super) algorithm: PasswordAlgorithm,
    pub(super) user: UserId,
    /// Seeded hash of the name.
    pub(super) name_key: u64,
    /// USERHASH of the name; `None` for a time-limited name.
    pub(super) hash: Option<[u8; 32]>,
    /// Index of a static user, whose part stays the same.
    pub(super) index: u32,
    /// Expiry of a time-limited name in Unix seconds, else `u64::MAX`.
    pub(super) expiry_s: u64,
    /// Digest of the shared secret that the key was derived from, or 0 for a static user.
    pub(super) secret: u64,
    /// The client's last nonce.
    pub(super) nonce: Option<NonceProof>,
}

impl KeptKey {
    pub(crate) fn key(&self) -> &LongTermKey {
        &self.key
    }

    /// Returns the proof of the client's last nonce.
    #[inline]
    pub(crate) fn nonce(&self) -> Option<&NonceProof> {
        self.nonce.as_ref()
    }

    /// Returns the expiry of a time-limited name in Unix seconds, else `u64::MAX`.
    pub(crate) fn expiry_s(&self) -> u64 {
        self.expiry_s
    }
}

/// Kept keys by the index of their allocation. The memory is reserved at the start and touched when it is needed.
#[derive(Debug)]
pub(crate) struct KeptKeys {
    kept: Vec<Option<KeptKey>>,
    capacity: usize,
}

impl KeptKeys {
    pub(crate) fn new(allocations: u32) -> Self {
        Self { kept: Vec::with_capacity(allocations as usize), capacity: allocations as usize }
    }

    #[inline]
    pub(crate) fn get(&self, allocation: u32) -> Option<&KeptKey> {
        self.kept.get(allocation as usize)?.as_ref()
    }

    /// Prefetches the key of an allocation.
    #[inline]
    pub(crate) fn prefetch(&self, allocation: u32) {
        if let Some(kept) = self.kept.get(allocation as usize) {
            tt_simd::prefetch_lines(kept);
        }
    }

    /// Keeps the proof of a nonce of an allocation's client.
    pub(crate) fn keep_nonce(&mut self, allocation: u32, proof: NonceProof) {
        if let Some(Some(kept)) = self.kept.get_mut(allocation as usize) {
            kept.nonce = Some(proof);
        }
    }

    /// Keeps the key of an allocation, in place of that of the allocation before it.
    pub(crate) fn keep(&mut self, allocation: u32, key: KeptKey) {
        let index = allocation as usize;
        if index >= self.capacity {
            return;
        }
        while self.kept.len() <= index {
            self.kept.push(None);
        }
        self.kept[index] = Some(key);
    }
}
