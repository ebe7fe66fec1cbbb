//! The TURN world: the real engine in virtual time, with clients, peers, attackers and faults that one seed decides.
//!
//! A seed writes a [`Script`], a topology and a list of actions; [`play`] plays it against the engine and checks the
//! invariants of [`Failure`] after each datagram against a reference model. Nothing reads a clock, hashes at random or
//! waits: a seed gives the same hash each time. [`minimise`] strikes actions out of a script that fails.

mod attackers;
mod clients;
mod credentials;
mod deeds;
mod event;
mod healing;
mod host;
mod invariants;
mod lessons;
mod limits;
mod link;
mod metering;
mod minimise;
mod model;
mod operators;
mod planted;
mod reports;
mod script;
mod stream;
mod topology;
mod travel;
mod wire;
mod world;

pub use invariants::Failure;
pub use minimise::minimise;
pub use planted::Planted;
pub use script::{Action, Script};
pub use topology::Size;
pub use world::{Outcome, Tally, Telling, play};
