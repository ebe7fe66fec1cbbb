//! Feeds, recordings and accounts: the feed client, the engine and the simulator together, in this process or as commands.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

mod account;
mod audit;
mod doctor;
mod faults;
mod feed;
mod level3;
mod record;
mod recordings;
mod simulate;
