//! The start of feeds, for every command that follows venues.

use std::future::Future;
use std::io;
use std::pin::pin;

use anyhow::Context as _;
use market_feed::{MarketConfig, Runner, Startup, StartupStep, Unreached};

/// Starts the feeds, and tries each venue until it is reached; `None` if `ended` completes first. `unreached` prints a
/// try that failed.
///
/// # Errors
/// A feed is configured wrongly, a venue does not list a symbol, or standard output is gone.
pub(crate) fn launch(
    market: MarketConfig,
    ended: impl Future<Output = ()>,
    unreached: impl Fn(&Unreached) -> io::Result<()>,
) -> anyhow::Result<Option<Runner>> {
    let mut ended = pin!(ended);
    let mut startup = Startup::new(market)?;
    loop {
        match startup.advance(ended.as_mut())? {
            StartupStep::Unreached(venue) => unreached(&venue).context("standard output")?,
            StartupStep::Started(running) => return Ok(Some(running)),
            StartupStep::Ended => return Ok(None),
        }
    }
}
