//! The rows of the engines.

pub(crate) mod gate;
pub mod market;
pub(crate) mod registry;
pub(crate) mod ring;
mod turn;
