//! The start of feeds: the venues' lists of instruments, requested once or until each venue is reached.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Runtime;
use tt_venue::Venue;

use super::address::Addresses;
use super::backoff::Backoff;
use super::listing::{self, Fetched, NotListed};
use super::runner::{Runner, launch, part_name, parts, runtime};
use super::settings::{FeedConfig, MarketConfig};

/// A venue that could not be reached, and is tried again.
#[derive(Debug)]
pub struct Unreached {
    /// The venue.
    pub venue: Venue,
    /// The address of its WebSocket.
    pub url: String,
    /// The reason.
    pub error: String,
    /// The wait before the next try.
    pub wait: Duration,
}

/// Result of [`Startup::advance`].
#[derive(Debug)]
pub enum StartupStep {
    /// A venue could not be reached. The next call waits, then tries it again.
    Unreached(Unreached),
    /// Every venue listed its instruments, and the feeds run.
    Started(Runner),
    /// The given future completed first.
    Ended,
}

/// A start that tries each venue until it is reached, with growing waits.
///
/// ```no_run
/// use market_feed::{FeedConfig, MarketConfig, Startup, StartupStep, Venue};
///
/// # fn main() -> anyhow::Result<()> {
/// let feeds = vec![FeedConfig::public(Venue::ALL[0], vec!["BTCUSDT".to_owned()])];
/// let mut startup = Startup::new(MarketConfig { feeds, ..MarketConfig::default() })?;
/// let runner = loop {
///     match startup.advance(std::future::pending())? {
///         StartupStep::Unreached(venue) => eprintln!("{}: {}", venue.url, venue.error),
///         StartupStep::Started(runner) => break runner,
///         StartupStep::Ended => return Ok(()),
///     }
/// };
/// runner.stop();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Startup {
    config: MarketConfig,
    parts: Vec<FeedConfig>,
    runtime: Runtime,
    /// The lists of the first parts.
    listings: Vec<Fetched>,
    backoff: Option<Backoff>,
    wait: Duration,
    addresses: Addresses,
    /// The number of the first instrument in streams.
    first: u32,
}

impl Startup {
    /// Prepares the start of `config`'s feeds.
    ///
    /// # Errors
    /// A feed is configured wrongly, or there is no runtime.
    pub fn new(config: MarketConfig) -> anyhow::Result<Self> {
        Self::sharing(config, &Addresses::default(), 0)
    }

    /// The same, within the limits that other feeds share, and with `first` as the number of the first instrument.
    pub(super) fn sharing(config: MarketConfig, addresses: &Addresses, first: u32) -> anyhow::Result<Self> {
        Ok(Self {
            addresses: addresses.clone(),
            first,
            parts: parts(&config)?,
            config,
            runtime: runtime()?,
            listings: Vec::new(),
            backoff: None,
            wait: Duration::ZERO,
        })
    }

    /// Tries the venues in turn until one cannot be reached, all have listed their instruments, or `ended` completes.
    ///
    /// # Errors
    /// An address is none, no venue lists any of the symbols, or a thread cannot be started.
    pub fn advance(&mut self, ended: impl Future<Output = ()>) -> anyhow::Result<StartupStep> {
        let (parts, listings, backoff) = (&self.parts, &mut self.listings, &mut self.backoff);
        let wait = &mut self.wait;
        let unreached = self.runtime.block_on(async {
            tokio::select! {
                unreached = list(parts, listings, backoff, wait) => unreached.map(Some),
                () = ended => Ok(None),
            }
        })?;
        match unreached {
            None => Ok(StartupStep::Ended),
            Some(Some(unreached)) => Ok(StartupStep::Unreached(unreached)),
            Some(None) => {
                let (parts, listings) = (std::mem::take(&mut self.parts), std::mem::take(&mut self.listings));
                launch((parts, listings), &self.config, (&self.addresses, self.first)).map(StartupStep::Started)
            }
        }
    }
}

/// Requests the lists that are missing; `Some` if a venue cannot be reached.
async fn list(
    parts: &[FeedConfig],
    listings: &mut Vec<Fetched>,
    backoff: &mut Option<Backoff>,
    wait: &mut Duration,
) -> anyhow::Result<Option<Unreached>> {
    tokio::time::sleep(*wait).await;
    while let Some(part) = parts.get(listings.len()) {
        match listing::fetch(part, tt_os::clock::clock()).await {
            Ok(listed) => {
                listings.push(listed);
                *backoff = None;
            }
            Err(NotListed::Refused(error) | NotListed::BadRequest(error)) => return Err(error.context(part_name(part))),
            Err(NotListed::Unreached { error, retry_after }) => {
                let backoff =
                    backoff.get_or_insert_with(|| Backoff::new(part.timing.backoff_min, part.timing.backoff_max));
                *wait = backoff.fail().max(retry_after.unwrap_or_default());
                let (url, error) = (part.streams.to_string(), format!("{error:#}"));
                return Ok(Some(Unreached { venue: part.venue, url, error, wait: *wait }));
            }
        }
    }
    Ok(None)
}
