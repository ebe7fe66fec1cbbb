//! Requests the venue's list again if a frame has finer numbers than the known steps of an instrument.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tt_market::Applied;
use tt_market::DropReason;
use tt_meter::Clock;
use tt_model::{Decimal, InstrumentId};
use tt_os::clock::unix_now;

use super::Feed;
use crate::backoff::Backoff;
use crate::listing::{self, Listed, NotListed};
use crate::settings::FeedConfig;

/// The list is asked for about so long after the first price that is too fine; twice as long each time that it has not
/// helped.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// A list on its way.
pub(super) type Fetch = Pin<Box<dyn Future<Output = Result<Listed, NotListed>>>>;

/// When a feed's list may be asked for again.
#[derive(Debug)]
pub(crate) struct Relisting {
    backoff: Backoff,
    not_before: Instant,
}

impl Relisting {
    pub(super) fn new() -> Self {
        Self { backoff: Backoff::new(WAIT_MIN, WAIT_MAX), not_before: Instant::now() }
    }

    /// Asks for the list when it is time.
    pub(super) fn fetch(&mut self, config: &FeedConfig, clock: Clock) -> Fetch {
        let at = self.not_before.max(Instant::now() + self.backoff.fail());
        let config = config.clone();
        Box::pin(async move {
            tokio::time::sleep_until(at.into()).await;
            listing::list(&config, clock).await
        })
    }
}

/// Asks for the list at once.
pub(super) fn list(config: FeedConfig, clock: Clock) -> Fetch {
    Box::pin(async move { listing::list(&config, clock).await })
}

impl Feed {
    /// Whether a book was lost, or is not there yet, because something was finer than its steps.
    pub(super) fn wants_steps(&self, applied: Result<Applied, DropReason>) -> bool {
        let is_off = matches!(applied, Err(DropReason::OffTickSize | DropReason::OffLotSize));
        is_off && self.instruments.iter().any(|id| !self.intake.is_verified(*id))
    }

    /// Takes the venue's list: from here on instruments are counted in the finer of the steps that are known and listed.
    pub(super) fn take_list(&mut self, listed: Result<Listed, NotListed>) {
        let venue = self.config.venue.name();
        let listed = match listed {
            Ok(listed) => listed,
            Err(NotListed::Unreached { error, retry_after }) => {
                self.relisting.not_before = Instant::now() + retry_after.unwrap_or_default();
                return tracing::warn!(venue, %error, "market: no list of instruments");
            }
            Err(NotListed::Refused(error) | NotListed::BadRequest(error)) => {
                return tracing::warn!(venue, %error, "market: no list of instruments");
            }
        };
        let finer: Vec<Finer> = self.instruments.iter().filter_map(|id| self.finer(*id, &listed)).collect();
        if finer.is_empty() {
            return tracing::warn!(venue, "market: finer than the steps of the venue's own list");
        }
        let (now, feed, intake) = (unix_now(), self.index, &mut self.intake);
        let has_room = self.shown.change(|list| {
            for Finer { id, tick_size, lot_size } in &finer {
                let refined = intake.refine(*id, *tick_size, *lot_size, now);
                if let Err(reason) = refined {
                    tracing::warn!(venue, ?id, ?reason, "market: steps cannot be finer");
                    continue;
                }
                for shown in list.iter_mut().filter(|shown| shown.feed == feed && shown.local == *id) {
                    (shown.tick_size, shown.lot_size) = (*tick_size, *lot_size);
                }
            }
        });
        if has_room {
            self.relisting.backoff.succeed();
            tracing::info!(venue, instruments = finer.len(), "market: steps are finer");
        } else {
            tracing::warn!(venue, "market: steps have become finer too often: only a new start helps");
        }
    }

    fn finer(&self, id: InstrumentId, listed: &Listed) -> Option<Finer> {
        let spec = self.intake.engine().instrument(id)?;
        let symbol = self.symbol(id)?;
        let listing = listed.entries.iter().find(|listing| listing.frame_symbol() == symbol)?;
        let tick_size = common(spec.tick_size, listing.tick_size)?;
        let lot_size = common(spec.lot_size, listing.lot_size)?;
        let is_finer = (tick_size, lot_size) != (spec.tick_size, spec.lot_size);
        is_finer.then_some(Finer { id, tick_size, lot_size })
    }
}

/// Steps that are finer than the ones before.
struct Finer {
    id: InstrumentId,
    tick_size: Decimal,
    lot_size: Decimal,
}

/// The largest step of which both are whole numbers: the known one as it is where that is it.
fn common(known: Decimal, listed: Decimal) -> Option<Decimal> {
    let decimals = known.decimals.max(listed.decimals);
    let (whole, other) = (known.mantissa_at(decimals).ok()?, listed.mantissa_at(decimals).ok()?);
    if whole <= 0 || other <= 0 {
        return None;
    }
    let (mut step, mut rest) = (whole, other);
    while rest != 0 {
        (step, rest) = (rest, step % rest);
    }
    Some(if step == whole { known } else { Decimal::new(step, decimals) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_finer_and_never_coarser() {
        let of = |text: &str| Decimal::parse(text.as_bytes()).unwrap();
        for (known, listed, step) in [
            ("0.1", "0.01", "0.01"),
            ("0.5", "0.2", "0.1"),
            ("0.10", "0.1", "0.10"),
            ("0.01", "0.5", "0.01"),
            ("5", "2", "1"),
            ("0.1", "1e-8", "1e-8"),
        ] {
            assert_eq!(common(of(known), of(listed)), Some(of(step)), "{known} {listed}");
        }
        assert_eq!(common(of("0.1"), of("0")), None);
    }
}
