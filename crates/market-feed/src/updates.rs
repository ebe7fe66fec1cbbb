//! Every update of every book and every trade, from the feeds' threads to any number of readers.
//!
//! Each feed writes its engine's events into a ring ([`UpdateSender`]), which never waits: what finds no room is counted,
//! and the book is sent whole as soon as there is room. The [`Publisher`] keeps a copy of each book, makes a message of each
//! event once, and offers it to its readers: on its own thread, or on the feed's if there are few readers.

mod account;
mod account_sender;
mod book;
mod distributor;
mod handover;
mod history;
mod message;
mod offline;
mod publisher;
mod sender;
mod slot;
mod view;

pub(super) use account_sender::AccountSender;
pub(super) use message::contract;
pub use offline::{OfflineFeed, OfflineInstrument, OfflineStreams, SentEvent};
pub(super) use publisher::Publisher;
pub(super) use sender::UpdateSender;

#[cfg(test)]
mod tests;
