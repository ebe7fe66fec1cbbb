//! Faults of the simulated venues, for visitors of the page.

use std::sync::Arc;

use sim::Fault;
use tt_status::market_feeds::Simulator;

/// The faults that visitors of the page may inject.
pub(super) struct VisitorFaults(pub(super) Arc<sim::Running>);

/// A lost update, a repeated one, two swapped ones, a changed digit, and a connection that goes silent.
const FAULTS: [Fault; 5] = [Fault::Drop, Fault::Duplicate, Fault::Swap, Fault::FlipDigit, Fault::HalfOpen];

impl Simulator for VisitorFaults {
    fn faults(&self) -> Vec<&'static str> {
        FAULTS.map(Fault::name).to_vec()
    }

    fn inject(&self, venue: &str, symbol: &str, fault: &str) -> Result<(), String> {
        let of = sim::Venue::ALL.into_iter().find(|of| of.name() == venue);
        let of = of.ok_or_else(|| format!("no simulated venue `{venue}`"))?;
        let index = self.0.instruments(of).iter().position(|listed| listed.symbol == symbol);
        let index = index.ok_or_else(|| format!("{venue} has no symbol `{symbol}`"))?;
        let fault =
            FAULTS.into_iter().find(|known| known.name() == fault).ok_or_else(|| format!("no fault `{fault}`"))?;
        self.0.fault(of, index, fault);
        Ok(())
    }
}
