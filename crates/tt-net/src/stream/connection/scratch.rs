//! Buffers of a thread.

use super::CHUNK;

/// Buffers for one call, shared by all connections of a thread.
#[derive(Debug)]
pub struct Scratch {
    pub(super) wire: Box<[u8]>,
    pub(super) plain: Box<[u8]>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { wire: vec![0; CHUNK].into(), plain: vec![0; CHUNK].into() }
    }
}
