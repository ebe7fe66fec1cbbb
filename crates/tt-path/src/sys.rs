//! All unsafe code of the crate.

pub(crate) mod ethtool;
pub(crate) mod mapping;
