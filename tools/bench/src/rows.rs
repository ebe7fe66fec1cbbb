//! The rows of the three engines.

pub(crate) mod market;
pub(crate) mod registry;
pub(crate) mod ring;
mod turn;
