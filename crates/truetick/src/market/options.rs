//! Optional topics and connection settings of a feed.

use market_feed::{FeedConfig, topic_of_name};
use tt_venue::rules::TopicKind;

/// Flags of the commands that connect to a venue.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SubscribeOptions {
    /// Additional topics, if the venue has them: best-levels, ticker, candles, mark-price, index-price, funding,
    /// open-interest, liquidations
    #[arg(long, value_name = "TOPIC,..", value_delimiter = ',', value_parser = topic_of_name)]
    also: Vec<TopicKind>,
    /// Join books to REST snapshots instead of WebSocket snapshots, if the venue has both
    #[arg(long)]
    join_by_rest: bool,
    /// Offer permessage-deflate (RFC 7692) to the venue
    #[arg(long)]
    compressed: bool,
}

impl SubscribeOptions {
    /// Copies the options into `feed`.
    pub(crate) fn apply_to(&self, feed: &mut FeedConfig) {
        feed.also.clone_from(&self.also);
        feed.join_by_rest = self.join_by_rest;
        feed.compressed = self.compressed;
    }
}
