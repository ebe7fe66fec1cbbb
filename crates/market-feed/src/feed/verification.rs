//! Compares the books with REST snapshots, one after the other, at random moments within the venue's limits.

use std::time::{Duration, Instant};

use tt_market::AddError;
use tt_model::InstrumentId;
use tt_os::clock::unix_now;

use super::connection::Connection;
use super::snapshots::Purpose;
use crate::random;

/// A book that could not be compared is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A book that is compared once is so at a random moment of this time.
const ONCE_WITHIN: Duration = Duration::from_secs(10);

/// A comparison that has no result is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How often each book is compared with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Never,
    /// Until there is a result.
    Once,
    Every(Duration),
}

/// When each book is compared with a snapshot.
#[derive(Debug)]
pub(super) struct Verifier {
    when: Compare,
    /// By the engine's numbers; `None` for a book that is compared no more.
    due: Vec<Option<Instant>>,
    step: Step,
}

/// The state of the one comparison.
#[derive(Clone, Copy, Debug)]
enum Step {
    Idle,
    /// The venue's limits allow a snapshot of this instrument from then on.
    Reserved(InstrumentId, Instant),
    /// The snapshot was requested.
    Requested,
}

impl Verifier {
    /// Compares each of `instruments` books, the first time at a random moment.
    pub(super) fn new(when: Compare, instruments: usize) -> Self {
        let now = Instant::now();
        let within = match when {
            Compare::Never => None,
            Compare::Once => Some(ONCE_WITHIN),
            Compare::Every(every) => Some(every),
        };
        let first = |within: Duration| Some(now + within.mul_f64(random_share()));
        let due = within.map_or_else(Vec::new, |within| (0..instruments).map(|_| first(within)).collect());
        Self { when, due, step: Step::Idle }
    }

    /// Nothing is requested any more: the snapshot has arrived or could not be fetched, or another connection begins.
    pub(super) const fn end_step(&mut self) {
        self.step = Step::Idle;
    }

    /// The comparison of an instrument had no result.
    pub(super) fn fail(&mut self, instrument: InstrumentId) {
        if self.when == Compare::Once {
            self.look_again(instrument, Instant::now() + TRY_AGAIN);
        }
    }

    /// The proved book that has waited longest, if one is due.
    fn next(&self, now: Instant, is_proved: impl Fn(InstrumentId) -> bool) -> Option<InstrumentId> {
        let due = self.due.iter().enumerate().filter_map(|(index, due)| Some((InstrumentId(index as u32), (*due)?)));
        let due = due.filter(|(id, due)| *due <= now && is_proved(*id));
        due.min_by_key(|(_, due)| *due).map(|(id, _)| id)
    }

    /// Puts an instrument off: by the interval more or less a tenth.
    fn put_off(&mut self, instrument: InstrumentId, now: Instant) {
        let next = match self.when {
            Compare::Never | Compare::Once => None,
            Compare::Every(every) => Some(now + every.mul_f64(0.9 + 0.2 * random_share())),
        };
        if let Some(due) = self.due.get_mut(instrument.0 as usize) {
            *due = next;
        }
    }

    fn look_again(&mut self, instrument: InstrumentId, at: Instant) {
        if let Some(due) = self.due.get_mut(instrument.0 as usize) {
            *due = Some(at);
        }
    }
}

impl Connection<'_> {
    /// Begins the comparison that is due: a place within the venue's limits first, then the engine, then the request.
    pub(super) fn advance_verification(&mut self, now: Instant) {
        if self.feed.verifier.when == Compare::Never || !self.feed.status.connected {
            return;
        }
        match self.feed.verifier.step {
            Step::Requested => {}
            Step::Idle => {
                let intake = &self.feed.intake;
                let Some(instrument) = self.feed.verifier.next(now, |id| intake.is_verified(id)) else { return };
                let at = self.feed.address.fetch(self.feed.config.timing.snapshot_gap);
                self.feed.verifier.step = Step::Reserved(instrument, at);
            }
            Step::Reserved(_, at) if at > now => {}
            Step::Reserved(instrument, at) => {
                self.feed.verifier.step = Step::Idle;
                if self.feed.address.is_held(now) {
                    self.feed.verifier.put_off(instrument, now);
                    return self.feed.verifier.fail(instrument);
                }
                match self.feed.intake.begin_comparison(instrument, unix_now()) {
                    Ok(()) => {
                        self.feed.verifier.step = Step::Requested;
                        self.feed.verifier.put_off(instrument, now);
                        self.fetch_at(instrument, Purpose::Comparison, at);
                    }
                    Err(AddError::Full | AddError::Closed) => {
                        self.feed.verifier.look_again(instrument, now + LOOK_AGAIN);
                    }
                    Err(AddError::SymbolTaken | AddError::BadSize | AddError::BadInstrument) => {
                        self.feed.verifier.put_off(instrument, now);
                    }
                }
            }
        }
    }
}

/// From 0 to 1.
pub(super) fn random_share() -> f64 {
    random::share()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proved_book_is_due_once_in_an_interval_at_another_moment() {
        let every = Duration::from_secs(60);
        let mut verifier = Verifier::new(Compare::Every(every), 64);
        let now = Instant::now();
        assert!(verifier.due.iter().all(|due| due.unwrap() <= now + every));
        assert!(verifier.due.iter().any(|due| due.unwrap() < now + every / 3));
        assert!(verifier.due.iter().any(|due| due.unwrap() > now + every / 3 * 2));
        let later = now + every;
        let mut seen = Vec::new();
        while let Some(id) = verifier.next(later, |id| id.0 != 7) {
            seen.push(id.0);
            verifier.put_off(id, later);
            let wait = verifier.due[id.0 as usize].unwrap() - later;
            assert!((every.mul_f64(0.89)..=every.mul_f64(1.11)).contains(&wait), "{wait:?}");
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..64).filter(|id| *id != 7).collect::<Vec<_>>());
        assert!(Verifier::new(Compare::Never, 3).due.is_empty());
    }

    #[test]
    fn a_book_that_is_compared_once_is_due_again_only_without_a_result() {
        let (mut verifier, now) = (Verifier::new(Compare::Once, 1), Instant::now());
        let (id, later) = (InstrumentId(0), now + ONCE_WITHIN);
        assert_eq!(verifier.next(later, |_| false), None, "it is not proved");
        assert_eq!(verifier.next(later, |_| true), Some(id));
        verifier.put_off(id, later);
        assert_eq!(verifier.next(later + Duration::from_secs(86_400), |_| true), None);
        verifier.fail(id);
        assert_eq!(verifier.next(now + TRY_AGAIN - Duration::from_secs(1), |_| true), None);
        assert_eq!(verifier.next(Instant::now() + TRY_AGAIN, |_| true), Some(id));
    }
}
