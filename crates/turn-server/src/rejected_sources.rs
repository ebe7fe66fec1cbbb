//! Where rejected requests come from, for operators.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use tt_model::sort_short_by_key;
use tt_os::clock::unix_now;
use tt_status::turn::RejectedSource;

/// A source is forgotten after this long without a rejected request, milliseconds.
const KEPT_MS: u64 = 300_000;
/// Sources and codes that are followed. A reading of a full table forgets those that came once.
const SOURCES_MAX: usize = 1_024;
/// The code of a wrong name or password.
const UNAUTHENTICATED: u16 = 401;
/// Sources that are shown.
const SHOWN_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct RejectedSources {
    seen: Mutex<HashMap<(IpAddr, u16), Seen>>,
    failed_logins: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    count: u64,
    first_ms: u64,
    last_ms: u64,
}

impl RejectedSources {
    /// Counts a rejected request. Never waits: during a reading it is not counted here.
    pub(crate) fn note(&self, source: IpAddr, code: u16) {
        if code == UNAUTHENTICATED {
            self.failed_logins.fetch_add(1, Ordering::Relaxed);
        }
        let mut seen = match self.seen.try_lock() {
            Ok(seen) => seen,
            Err(TryLockError::Poisoned(seen)) => seen.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        note_at(&mut seen, source, code, unix_now().0 / 1_000_000);
    }

    /// Returns the number of requests with a wrong name or password.
    pub(crate) fn failed_logins(&self) -> u64 {
        self.failed_logins.load(Ordering::Relaxed)
    }

    /// Returns the sources with the most requests, and forgets the quiet ones.
    pub(crate) fn most(&self) -> Vec<RejectedSource> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        most_at(&mut seen, unix_now().0 / 1_000_000)
    }
}

fn note_at(seen: &mut HashMap<(IpAddr, u16), Seen>, source: IpAddr, code: u16, now_ms: u64) {
    if seen.len() >= SOURCES_MAX && !seen.contains_key(&(source, code)) {
        return;
    }
    let of = seen.entry((source, code)).or_insert(Seen { count: 0, first_ms: now_ms, last_ms: now_ms });
    of.count += 1;
    of.last_ms = now_ms;
}

fn most_at(seen: &mut HashMap<(IpAddr, u16), Seen>, now_ms: u64) -> Vec<RejectedSource> {
    let count_min = if seen.len() < SOURCES_MAX { 1 } else { 2 };
    seen.retain(|_, of| of.count >= count_min && now_ms.saturating_sub(of.last_ms) < KEPT_MS);
    let mut all: Vec<_> = seen
        .iter()
        .map(|(&(source, code), of)| RejectedSource {
            source,
            code,
            count: of.count,
            first_unix_ms: of.first_ms,
            last_unix_ms: of.last_ms,
        })
        .collect();
    sort_short_by_key(&mut all, |of| (std::cmp::Reverse(of.count), of.source));
    all.truncate(SHOWN_MAX);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loudest_sources_are_shown_and_quiet_ones_forgotten() {
        let (mut seen, source) = (HashMap::new(), |number: u32| IpAddr::from(number.to_be_bytes()));
        for number in 0..20 {
            (0..=number).for_each(|_| note_at(&mut seen, source(number), 401, 1_000));
        }
        note_at(&mut seen, source(19), 403, 2_000);
        let most = most_at(&mut seen, 3_000);
        assert_eq!(most.iter().map(|of| of.count).collect::<Vec<_>>(), [20, 19, 18, 17, 16, 15, 14, 13]);
        assert_eq!((most[0].source, most[0].code, most[0].first_unix_ms), (source(19), 401, 1_000));
        assert_eq!(most_at(&mut seen, 301_000).len(), 1, "one had a request after the others");
        assert_eq!(most_at(&mut seen, 302_000), []);
    }

    #[test]
    fn a_full_table_forgets_those_that_came_once() {
        let (mut seen, source) = (HashMap::new(), |number: u32| IpAddr::from(number.to_be_bytes()));
        (0..10).for_each(|_| note_at(&mut seen, source(0), 401, 0));
        (0..3_000).for_each(|number| note_at(&mut seen, source(number), 401, 1));
        assert_eq!(seen.len(), SOURCES_MAX);
        assert_eq!(most_at(&mut seen, 2)[0].count, 11);
        note_at(&mut seen, source(3_000), 401, 3);
        assert_eq!(seen.len(), 2, "there is room again");
    }
}
