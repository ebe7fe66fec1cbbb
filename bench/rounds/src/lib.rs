//! What the benches beside rivals share: a calibrated clock, the machine's description, a file of runs, orders drawn
//! anew, intervals and tables.

#![forbid(unsafe_code)]

mod machine;
mod order;
mod runs;
mod table;

pub use machine::{Stamp, calibration, exclusive, notes, steal};
pub use order::Order;
pub use runs::Runs;
pub use table::{Look, Table, interval, verdict};
