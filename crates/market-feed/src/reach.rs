//! The venues' lists of instruments, asked for once or until each venue is there.

use std::time::Duration;

use anyhow::Context as _;
use tt_meter::Clock;
use tt_venue::Venue;
use tt_venue::listing::Listing;

use super::backoff::Backoff;
use super::listing::{self, NotListed};
use super::settings::FeedConfig;

/// A venue that could not be reached, and is tried again.
#[derive(Debug)]
pub struct Unreached {
    /// The venue.
    pub venue: Venue,
    /// The address of its WebSocket.
    pub url: String,
    /// Why not.
    pub fault: String,
    /// The wait before the next try.
    pub wait: Duration,
}

/// The listings of each of `parts`.
///
/// # Errors
/// A venue cannot be reached, or does not list a symbol.
pub(super) async fn once(parts: &[FeedConfig], clock: Clock) -> anyhow::Result<Vec<Vec<Listing>>> {
    let mut listings = Vec::with_capacity(parts.len());
    for part in parts {
        let listed = listing::fetch(part, clock).await.map_err(NotListed::into_error);
        listings.push(listed.with_context(|| of(part))?);
    }
    Ok(listings)
}

/// As [`once`], but a venue that cannot be reached is told to `tell` and tried again after a growing wait.
///
/// # Errors
/// A venue answers that it will never list a symbol, its address is none, or `tell` fails.
pub(super) async fn until_reached(
    parts: &[FeedConfig],
    clock: Clock,
    mut tell: impl FnMut(&Unreached) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Vec<Listing>>> {
    let mut listings = Vec::with_capacity(parts.len());
    for part in parts {
        let mut backoff = Backoff::new(part.timing.backoff_min, part.timing.backoff_max);
        listings.push(loop {
            match listing::fetch(part, clock).await {
                Ok(listed) => break listed,
                Err(NotListed::Refused(error)) => return Err(error.context(of(part))),
                Err(NotListed::Unreached { error, retry_after }) => {
                    let wait = backoff.fail().max(retry_after.unwrap_or_default());
                    let fault = format!("{error:#}");
                    tell(&Unreached { venue: part.venue, url: part.streams.to_string(), fault, wait })?;
                    tokio::time::sleep(wait).await;
                }
            }
        });
    }
    Ok(listings)
}

fn of(part: &FeedConfig) -> String {
    format!("market: {}", part.venue.name())
}
