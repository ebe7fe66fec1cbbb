//! What must be true after each event.

use tt_model::{Breach, InstrumentId, IntentKind, OrderIntent, Report, ReportKind, Verdict};

use super::host::Broken;
use super::world::World;
use crate::gate_oracle::RateSettings;

impl World<'_> {
    pub(super) fn after_input(&mut self) {
        let result = self.covers();
        self.check(result);
    }

    /// (2) What the gate reserves covers what the venue has.
    fn covers(&self) -> Result<(), Broken> {
        let Some(host) = &self.host else { return Ok(()) };
        for account in 0..self.setup().accounts {
            for instrument in 0..self.setup().instruments {
                if self.unsure[usize::from(account)] || self.venue.has_unasked(account, instrument) {
                    continue;
                }
                let held = host.gate.gate().exposure(account, InstrumentId(instrument)).unwrap_or_default();
                let position = held.position.0;
                let ours = [position + held.open_buy_qty.0, held.open_sell_qty.0 - position];
                let venue = self.venue.worst(account, instrument);
                if ours[0] < venue[0] || ours[1] < venue[1] {
                    let what = format!("account {account}, instrument {instrument}: {ours:?} for {venue:?}");
                    return Err((2, what));
                }
            }
        }
        Ok(())
    }

    /// (4) An execution moves a position once.
    pub(super) fn moved_once(&mut self, index: Option<usize>, report: &Report, has_moved: bool) -> Result<(), Broken> {
        let Some(index) = index else {
            return if has_moved { Err((4, format!("{report:?} moves the position"))) } else { Ok(()) };
        };
        let order = self.venue.sent[index].order;
        if has_moved && matches!(report.kind, ReportKind::BUST | ReportKind::CORRECT) {
            self.moved.remove(&(order, report.undone_id));
        }
        if has_moved && report.kind != ReportKind::BUST && !self.moved.insert((order, report.execution_id)) {
            return Err((4, format!("{report:?} moves the position again")));
        }
        Ok(())
    }

    /// (8) A number is judged once.
    pub(super) fn judged_once(&mut self, intent: &OrderIntent, verdict: &Verdict) -> Result<(), Broken> {
        if verdict.reasons.contains(Breach::SEQ_REPLAY) || self.judged.insert(intent.seq) {
            return Ok(());
        }
        Err((8, format!("{} is judged again: {verdict:?}", intent.seq)))
    }

    /// (10) No window holds more accepted orders than its rate allows.
    pub(super) fn in_window(&mut self, intent: &OrderIntent, verdict: &Verdict) -> Result<(), Broken> {
        let is_reduction = intent.kind == IntentKind::REPLACE;
        if verdict.accept == 0 || intent.kind == IntentKind::CANCEL || is_reduction {
            return Ok(());
        }
        let settings = &self.limits().settings;
        let at = [i128::from(self.clock()), i128::from(self.now)];
        let (account, instrument) = (u32::from(intent.account), intent.instrument.0);
        let rates = [
            ((0, 0), settings.global_rate),
            ((1, account), settings.account_rates[account as usize]),
            ((2, instrument), settings.instruments[instrument as usize].rate),
        ];
        for (key, rate) in rates {
            let times = self.windows.entry(key).or_default();
            times.push(at);
            if let Some((count, first)) = exceeds(times, rate) {
                return Err((10, format!("{count} orders since {first:?} at {at:?}, rate {key:?}: {rate:?}")));
            }
        }
        Ok(())
    }
}

/// Returns the number of times in a window that ends now and holds too many, and its beginning.
fn exceeds(times: &[[i128; 2]], rate: RateSettings) -> Option<(i128, [i128; 2])> {
    let last = times.last()?;
    let interval = (1_000_000_000 + rate.per_second - 1) / rate.per_second;
    let mut count = 0;
    for first in times.iter().rev() {
        count += 1;
        // On the clock of the world no less time has passed.
        let allowed = |clock: usize| rate.burst + (last[clock] - first[clock]).max(0) / interval;
        if (0..2).any(|clock| count > allowed(clock)) {
            return Some((count, *first));
        }
    }
    None
}
