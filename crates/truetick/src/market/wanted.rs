//! What is asked of a venue beside what always is.

use tt_market::rules::TopicKind;

use super::settings::FeedConfig;
use super::topics::topic_of_name;

/// Flags of whatever follows a venue.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Wanted {
    /// Topics beside the usual ones, where the venue has them: best-levels, ticker, candles, mark-price, index-price,
    /// funding, open-interest, liquidations
    #[arg(long, value_name = "TOPIC,..", value_delimiter = ',', value_parser = topic_of_name)]
    also: Vec<TopicKind>,
    /// Joins books by REST snapshots where the venue offers both (OKX), instead of those on the socket
    #[arg(long)]
    join_by_rest: bool,
    /// Lets the venue pack what it sends (permessage-deflate)
    #[arg(long)]
    compressed: bool,
}

impl Wanted {
    /// Has `feed` ask for it.
    pub(crate) fn ask(&self, feed: &mut FeedConfig) {
        feed.also.clone_from(&self.also);
        feed.join_by_rest = self.join_by_rest;
        feed.compressed = self.compressed;
    }
}
