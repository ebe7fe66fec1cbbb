//! Setup of a gate for a bench.

use tt_model::{InstrumentId, Price};
use tt_risk::{Evaluator, Exposure, InstrumentLimits, Limits, Mark, Rate};

/// Limits and marks that every account has in every instrument.
#[derive(Clone, Copy, Debug)]
pub struct GateSetup {
    /// Accounts, numbered from 0.
    pub accounts: u16,
    /// Instruments, numbered from 0.
    pub instruments: u32,
    /// Of each account in each instrument.
    pub limits: Limits,
    /// Of each instrument, in 1/10,000 of the reference price.
    pub collar_bps: u32,
    /// Of each account, of each instrument, and of all together.
    pub rate: Rate,
    /// The reference price of an instrument, in steps of its `tick_size`.
    pub reference_px: fn(u32) -> i64,
}

impl GateSetup {
    /// The evaluator with all this set, nothing held and nothing open.
    ///
    /// # Panics
    /// If a limit is out of the gate's range.
    #[must_use]
    pub fn gate(&self) -> Evaluator {
        let mut gate = Evaluator::new(self.accounts, self.instruments);
        gate.set_global_rate(self.rate);
        for instrument in (0..self.instruments).map(InstrumentId) {
            let limits = InstrumentLimits { collar_bps: self.collar_bps, mark_age_max_ns: u64::MAX, rate: self.rate };
            let ref_px = Price((self.reference_px)(instrument.0));
            let mark = Mark { ref_px, is_verified: true, ..Mark::default() };
            gate.set_instrument_limits(instrument, &limits).expect("the instrument is in the table");
            gate.set_reference(instrument, &mark).expect("the instrument is in the table");
            for account in 0..self.accounts {
                gate.set_limits(account, instrument, &self.limits).expect("limits are in range");
                gate.restore(account, instrument, &Exposure::default()).expect("the row is in the table");
            }
        }
        for account in 0..self.accounts {
            gate.set_account_rate(account, self.rate).expect("the account is in the table");
        }
        gate
    }
}
