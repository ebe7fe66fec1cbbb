//! The bans of an operator, for workers of now and later.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tt_model::Nanos;
use tt_status::turn::{Ban, BanError};
use tt_turn::bans::{BANS_MAX, Bans};
use tt_turn::policy::Cidr;

/// The shortest prefixes that may be banned: a shorter one is most likely a mistake, and would end most calls.
const IPV4_PREFIX_MIN: u8 = 8;
const IPV6_PREFIX_MIN: u8 = 16;

/// The bans in force. Each change is a new set, which is sent to every worker.
#[derive(Debug, Default)]
pub(crate) struct BanList(Mutex<Arc<Bans>>);

impl BanList {
    /// Bans `range` from `now` on for `time`.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn add(&self, range: Cidr, now: Nanos, time: Duration) -> Result<(), BanError> {
        let mut in_force = self.lock();
        let mut next = Bans::clone(&in_force);
        next.expire(now);
        let time = Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        next.insert(range, now.saturating_add(time)).map_err(|_| BanError::Full(BANS_MAX))?;
        *in_force = Arc::new(next);
        Ok(())
    }

    /// Ends the ban of exactly `range`. Returns false if there is none.
    pub(crate) fn remove(&self, range: Cidr, now: Nanos) -> bool {
        let mut in_force = self.lock();
        let mut next = Bans::clone(&in_force);
        next.expire(now);
        let ended = next.remove(range);
        *in_force = Arc::new(next);
        ended
    }

    /// Returns what is in force.
    pub(crate) fn in_force(&self) -> Arc<Bans> {
        Arc::clone(&self.lock())
    }

    /// Lists the bans that are not over, by range.
    pub(crate) fn list(&self, now: Nanos) -> Vec<Ban> {
        let left = |until: Nanos| until.saturating_sub(now).0.div_ceil(Nanos::PER_SECOND);
        let bans = self.in_force();
        let live = bans.iter().filter(|(_, until)| *until > now);
        live.map(|(range, until)| Ban { source: range.to_string(), seconds_left: left(until) }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Bans>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads `ADDRESS` or `ADDRESS/BITS`.
///
/// # Errors
/// [`BanError::Source`]: it is none, or holds too many addresses.
pub(crate) fn range(source: &str) -> Result<Cidr, BanError> {
    let range: Cidr = source.parse().map_err(|error| BanError::Source(format!("{source}: {error}")))?;
    let (kind, bits_min) = match range.network() {
        IpAddr::V4(_) => ("IPv4", IPV4_PREFIX_MIN),
        IpAddr::V6(_) => ("IPv6", IPV6_PREFIX_MIN),
    };
    if range.prefix_bits() < bits_min {
        return Err(BanError::Source(format!("{source}: an {kind} prefix must have at least {bits_min} bits")));
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_that_would_end_most_calls_is_refused() {
        for (source, is_taken) in [
            ("192.0.2.7", true),
            ("10.0.0.0/8", true),
            ("10.0.0.0/7", false),
            ("0.0.0.0/0", false),
            ("2001::/16", true),
            ("2000::/15", false),
            ("192.0.2.7/24", false),
            ("example.org", false),
            ("", false),
        ] {
            assert_eq!(range(source).is_ok(), is_taken, "{source}");
        }
    }

    #[test]
    fn bans_that_are_over_are_neither_listed_nor_kept() {
        let (bans, second) = (BanList::default(), Duration::from_secs(1));
        bans.add(range("192.0.2.7").unwrap(), Nanos(0), second).unwrap();
        bans.add(range("192.0.2.8").unwrap(), Nanos(0), 2 * second).unwrap();
        let now = Nanos::from_secs(1);
        assert_eq!(bans.list(now), [Ban { source: "192.0.2.8/32".to_owned(), seconds_left: 1 }]);
        assert!(!bans.remove(range("192.0.2.7").unwrap(), now));
        assert!(bans.remove(range("192.0.2.8").unwrap(), now) && bans.in_force().is_empty());
    }
}
