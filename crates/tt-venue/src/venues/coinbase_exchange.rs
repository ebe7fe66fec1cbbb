//! Coinbase Exchange. The level 2 book has no numbers; the book of all orders has.

mod detection;
mod keys;
mod listing;
mod login;
pub(super) mod messages;
pub(super) mod rules;
