//! Feeds that are added and removed while others run: what the market engine's driver offers to the control plane.

use serde::Serialize;

/// A feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FollowedFeed {
    /// Its number in this process.
    pub id: u32,
    /// The venue.
    pub venue: &'static str,
    /// The WebSocket address.
    pub url: String,
    /// The venue's symbols.
    pub symbols: Vec<String>,
    /// How far it is.
    pub state: FeedState,
    /// Why it does not run; absent if it does, or was not tried yet.
    pub error: Option<String>,
}

/// How far a feed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedState {
    /// Its venue's list of instruments is awaited.
    Starting,
    /// Its connections are opened and kept.
    Running,
    /// It was refused, and is not tried again.
    Failed,
}

/// Changes which feeds are followed. Its methods do not wait for a venue.
pub trait FeedAdmin: Send + Sync {
    /// Returns the feeds and how far each is.
    fn list(&self) -> Vec<FollowedFeed>;
    /// Begins to follow a feed, in the words of `[[market.feeds]]` as JSON, and returns its number.
    ///
    /// # Errors
    /// Why it cannot be followed.
    fn add(&self, section: &[u8]) -> Result<u32, String>;
    /// Ends a feed; `false` if there is none of this number.
    fn remove(&self, id: u32) -> bool;
    /// Ends one symbol of a feed while its others go on; `false` if the feed does not follow it.
    fn unsubscribe(&self, id: u32, symbol: &str) -> bool;
}

/// Faults of simulated venues, made by a user of the page.
pub trait Simulator: Send + Sync {
    /// Returns the names of the faults.
    fn faults(&self) -> Vec<&'static str>;
    /// Lets the next update of a book have `fault`. `symbol` is the venue's.
    ///
    /// # Errors
    /// No such venue, symbol or fault.
    fn inject(&self, venue: &str, symbol: &str, fault: &str) -> Result<(), String>;
}
