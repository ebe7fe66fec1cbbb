//! Bybit's frames to events.

mod account;
mod general;
mod scan;
mod shapes;

pub(in crate::venues) use general::parse as general;
pub(super) use general::parse_snapshot;
pub(in crate::venues) use scan::parse as scan;
pub(in crate::venues) use shapes::parse as shapes;
