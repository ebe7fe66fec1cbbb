//! The replacement of all limits between two evaluations.

use super::{Capacity, Gate};
use crate::{
    error::GateError,
    exposure::Exposure,
    index::NIL,
    instrument::InstrumentLimits,
    limits::{LOTS_CEILING, Limits, Prepared},
    money::Contract,
    rate::Rate,
    tree::{Node, NodeLimits, Room},
};
use tt_model::{InstrumentId, Qty};

impl Gate {
    /// Withdraws all limits, permissions and rates: every order is rejected until they are set again. Positions, orders,
    /// ids and what rates have counted stay. Cancels pass.
    pub fn withdraw_limits(&mut self) {
        let version = self.core.limits_version();
        self.core.withdraw_limits();
        self.core.set_version(version);
        self.tree.withdraw_limits();
        self.tree.pass_again(self.last_ns);
    }

    /// Sets the version of the limits that verdicts name, after a replacement.
    pub fn set_limits_version(&mut self, version: u32) {
        self.core.set_version(version);
    }

    /// Replaces the maximum quantity of market orders of `account` in `instrument`, which [`Gate::set_limits`] sets to that
    /// of other orders; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::LimitOutOfRange`].
    pub fn set_market_qty_max(
        &mut self,
        account: u16,
        instrument: InstrumentId,
        qty_max: Qty,
    ) -> Result<u32, GateError> {
        self.core.known_row(account, instrument)?;
        if !(0..=LOTS_CEILING).contains(&qty_max.0) {
            return Err(GateError::LimitOutOfRange);
        }
        let [_, row, _] = self.tree.path(account, instrument, NIL);
        self.tree.rows[row as usize].limits.market_qty_max = qty_max;
        Ok(self.core.next_version())
    }

    /// Returns the sizes of the gate's tables.
    #[must_use]
    pub const fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Returns whether the firm has limits in `instrument`.
    #[must_use]
    pub fn has_firm_limits(&self, instrument: InstrumentId) -> bool {
        instrument.0 < self.capacity.instruments && self.tree.rows[instrument.0 as usize].is_set
    }

    /// Returns whether the position of `account` in `instrument` was restored.
    #[must_use]
    pub fn is_restored(&self, account: u16, instrument: InstrumentId) -> bool {
        self.core.known_row(account, instrument).is_ok_and(|row| self.core.rows[row].state.has_exposure)
    }

    /// Returns the contract of `instrument`; `None` outside the capacity.
    #[must_use]
    pub fn contract(&self, instrument: InstrumentId) -> Option<&Contract> {
        self.tree.contracts.get(instrument.0 as usize)
    }

    /// Returns whether nothing was ever held in `instrument`.
    #[must_use]
    pub fn is_unused(&self, instrument: InstrumentId) -> bool {
        instrument.0 >= self.capacity.instruments || self.tree.is_unused(instrument)
    }

    /// Returns whether a route of the strategy was ever set.
    #[must_use]
    pub fn has_route(&self, account: u16, strategy: u16, instrument: InstrumentId) -> bool {
        self.route_row(account, strategy, instrument) != NIL
    }

    /// Returns the number of routes that can still be added.
    #[must_use]
    pub fn routes_left(&self) -> u32 {
        self.tree.routes_left()
    }

    /// Returns what a node holds in `instrument`; `None` for a node or an instrument that is unknown.
    #[must_use]
    pub fn held(&self, node: Node, instrument: InstrumentId) -> Option<Exposure> {
        if instrument.0 >= self.capacity.instruments {
            return None;
        }
        let row = match node {
            Node::Firm => instrument.0,
            Node::Account(account) if account < self.capacity.accounts => self.tree.path(account, instrument, NIL)[1],
            Node::Account(_) => NIL,
            Node::Strategy { account, strategy } => self.route_row(account, strategy, instrument),
        };
        let held = &self.tree.rows.get(row as usize)?.held;
        Some(Exposure {
            position: Qty(held.position),
            open_buy_qty: Qty(held.open_qty[0]),
            open_sell_qty: Qty(held.open_qty[1]),
            open_orders: held.open_orders,
        })
    }
}

impl Limits {
    /// Checks that a gate takes these limits.
    ///
    /// # Errors
    /// [`GateError::LimitOutOfRange`].
    pub fn check(&self) -> Result<(), GateError> {
        Prepared::of(self).map(drop)
    }
}

impl crate::evaluator::Evaluator {
    fn withdraw_limits(&mut self) {
        let none = Rate { per_second: 0, burst: 0 };
        let known = self.rows.len() - 1;
        for row in &mut self.rows[..known] {
            row.limits = Prepared::NONE;
            row.state.withdraw_limits();
        }
        self.account_rates.iter_mut().for_each(|rate| rate.set(none));
        self.global_rate.set(none);
        let limits = InstrumentLimits { collar_bps: 0, mark_age_max_ns: 0, rate: none };
        for number in 0..known_instruments(self) {
            // The instrument is in the table.
            let _ = self.set_instrument_limits(InstrumentId(number), &limits);
        }
    }
}

fn known_instruments(core: &crate::evaluator::Evaluator) -> u32 {
    core.markets.len() as u32 - 1
}

impl crate::tree::Tree {
    fn withdraw_limits(&mut self) {
        for row in &mut self.rows {
            (row.limits, row.is_set) = (crate::tree::RowLimits::NONE, false);
        }
        for node in &mut self.nodes {
            (node.limits, node.room) = (NodeLimits::OFF, Room::NONE);
            node.rate.set(Rate { per_second: 0, burst: 0 });
        }
    }
}
