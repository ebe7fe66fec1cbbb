//! Optional topics and connection settings of a feed.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use market_feed::{Credentials, FeedConfig, topic_of_name};
use tt_status::interval;
use tt_venue::rules::TopicKind;

/// Flags of the commands that connect to a venue.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SubscribeOptions {
    /// Region of the venue whose addresses are used, such as eea or us
    #[arg(long, value_name = "NAME", requires = "venue", conflicts_with = "url")]
    pub(crate) region: Option<String>,
    /// Follow each order of the books, at venues that send single orders. Needs --account-file where they need a login
    #[arg(long, requires = "venue")]
    level3: bool,
    /// Follow books with orders that only retail clients can trade with (RPI), at venues that send them
    #[arg(long, requires = "venue", conflicts_with = "level3")]
    rpi: bool,
    /// TOML file with `key`, `secret` and `passphrase` of an account to follow, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "venue")]
    account_file: Option<PathBuf>,
    /// Additional topics, if the venue has them: best-levels, ticker, candles, mark-price, index-price, funding,
    /// open-interest, liquidations, block-trades, sessions
    #[arg(long, value_name = "TOPIC,..", value_delimiter = ',', value_parser = topic_of_name, requires = "venue")]
    also: Vec<TopicKind>,
    /// Join books to REST snapshots instead of WebSocket snapshots, if the venue has both
    #[arg(long, requires = "venue")]
    join_by_rest: bool,
    /// Compare each book with a REST snapshot this often, such as 60s, at venues that number their snapshots
    #[arg(long, value_name = "TIME", value_parser = interval_of, requires = "venue")]
    verify_every: Option<Duration>,
    /// Offer permessage-deflate (RFC 7692) to the venue
    #[arg(long, requires = "venue")]
    compressed: bool,
}

impl SubscribeOptions {
    /// Copies the options into `feed`, which asks for the usual depth then. The `simulated` account is for single orders.
    ///
    /// # Errors
    /// The venue has no such region or sends no single orders, or the account's file cannot be read.
    pub(crate) fn apply_to(&self, feed: &mut FeedConfig, simulated: Option<Credentials>) -> anyhow::Result<()> {
        if let Some(region) = &self.region {
            feed.use_region(region)?;
        }
        let account = self.account_file.as_deref().map(Credentials::read).transpose()?;
        feed.account = account.or(simulated.filter(|_| self.level3));
        if self.level3 {
            feed.follow_orders()?;
            ensure!(feed.check_login().is_ok(), "--level3 of {} needs a login: --account-file FILE", feed.venue.name());
        }
        if self.rpi {
            feed.follow_rpi()?;
        }
        feed.also.clone_from(&self.also);
        feed.join_by_rest = self.join_by_rest;
        feed.verify_every = self.verify_every;
        feed.compressed = self.compressed;
        Ok(())
    }
}

fn interval_of(text: &str) -> Result<Duration, String> {
    interval::parse(text).ok_or_else(|| "a time such as 60s or 5m".to_owned())
}
