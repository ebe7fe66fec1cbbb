//! Running one row: plan, operation, loop, caches, environment.

pub(crate) mod cache_eviction;
pub(crate) mod cpus;
pub(crate) mod entry;
pub(crate) mod environment;
pub mod exclusive;
pub(crate) mod figures;
pub mod notes;
pub(crate) mod operation;
pub(crate) mod plan;
pub(crate) mod progress;
pub mod random;
pub(crate) mod results;
pub(crate) mod stages;
