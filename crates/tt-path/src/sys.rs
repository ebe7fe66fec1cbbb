//! All unsafe code of the crate.

pub(crate) mod mapping;
