//! Limits, rules, marks and states, as the caller sets them.

use super::{Gate, Rules};
use crate::{
    controls::{KillSwitch, Mode},
    error::GateError,
    index::NIL,
    instrument::{InstrumentLimits, InstrumentRules, InstrumentState, Mark},
    limits::Limits,
    money::{Contract, Conversion, CurrencyLimits},
    rate::Rate,
    tree::{Node, NodeLimits, Room, Route, RowLimits},
};
use tt_model::InstrumentId;

impl Gate {
    fn known_instrument(&self, instrument: InstrumentId) -> Result<(), GateError> {
        if instrument.0 < self.capacity.instruments { Ok(()) } else { Err(GateError::Unknown) }
    }

    /// Replaces all limits of `account` in `instrument`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::LimitOutOfRange`].
    pub fn set_limits(&mut self, account: u16, instrument: InstrumentId, limits: &Limits) -> Result<u32, GateError> {
        let version = self.core.set_limits(account, instrument, limits)?;
        self.tree.set_account_limits(account, instrument, limits);
        Ok(version)
    }

    /// Replaces the limits of the firm in `instrument`; returns the new version of the limits. Without them, orders in the
    /// instrument have the reason `NOT_PERMITTED`.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_firm_limits(&mut self, instrument: InstrumentId, limits: &RowLimits) -> Result<u32, GateError> {
        self.known_instrument(instrument)?;
        self.tree.set_firm_limits(instrument, limits);
        Ok(self.core.next_version())
    }

    /// Permits a producer to send the orders of a strategy in an instrument, and replaces the strategy's limits there;
    /// returns the new version of the limits. Orders without a route have the reason `NOT_PERMITTED`.
    ///
    /// # Errors
    /// [`GateError::Unknown`], [`GateError::Full`].
    pub fn set_route(&mut self, route: &Route, limits: &RowLimits) -> Result<u32, GateError> {
        self.core.known_row(route.account, route.instrument)?;
        self.tree.set_route(route, limits).ok_or(GateError::Full)?;
        Ok(self.core.next_version())
    }

    /// Replaces the limits of a node in all its instruments; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`]; a strategy is known from its first route on.
    pub fn set_node_limits(&mut self, node: Node, limits: &NodeLimits) -> Result<u32, GateError> {
        let index = self.tree.node(node).ok_or(GateError::Unknown)?;
        let state = &mut self.tree.nodes[index];
        (state.limits, state.room) = (*limits, Room::NONE);
        self.tree.touch(index as u32);
        self.tree.pass_again(self.last_ns);
        Ok(self.core.next_version())
    }

    /// Replaces the message rate of a strategy; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`]; a strategy is known from its first route on.
    pub fn set_strategy_rate(&mut self, account: u16, strategy: u16, rate: Rate) -> Result<u32, GateError> {
        let index = self.tree.node(Node::Strategy { account, strategy }).ok_or(GateError::Unknown)?;
        self.tree.nodes[index].rate.set(rate);
        Ok(self.core.next_version())
    }

    /// Replaces the limits of `instrument` for all accounts; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_instrument_limits(
        &mut self,
        instrument: InstrumentId,
        limits: &InstrumentLimits,
    ) -> Result<u32, GateError> {
        self.core.set_instrument_limits(instrument, limits)
    }

    /// Replaces the rules of `instrument`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_instrument_rules(
        &mut self,
        instrument: InstrumentId,
        rules: &InstrumentRules,
    ) -> Result<u32, GateError> {
        self.known_instrument(instrument)?;
        self.instruments[instrument.0 as usize] = *rules;
        Ok(self.core.next_version())
    }

    /// Sets what a lot of `instrument` is worth, before the first order; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`], also for a currency outside the capacity, and once something is held in the instrument.
    pub fn set_contract(&mut self, instrument: InstrumentId, contract: &Contract) -> Result<u32, GateError> {
        self.known_instrument(instrument)?;
        let currencies = [Some(contract.currency), contract.spot.map(|spot| spot.base)];
        let is_known = currencies.into_iter().flatten().all(|currency| currency <= self.capacity.currencies);
        if !is_known || !self.tree.is_unused(instrument) {
            return Err(GateError::Unknown);
        }
        self.tree.set_contract(instrument, contract, self.last_ns);
        Ok(self.core.next_version())
    }

    /// Replaces what the rate of `currency` may be used for; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`] for currency 0 and outside the capacity, [`GateError::LimitOutOfRange`] for a haircut above
    /// the whole.
    pub fn set_currency_limits(&mut self, currency: u16, limits: &CurrencyLimits) -> Result<u32, GateError> {
        if limits.haircut_bps > 10_000 {
            return Err(GateError::LimitOutOfRange);
        }
        self.tree.set_currency_limits(currency, limits, self.last_ns).ok_or(GateError::Unknown)?;
        Ok(self.core.next_version())
    }

    /// Replaces the message rate of `account`; returns the new version of the limits.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_account_rate(&mut self, account: u16, rate: Rate) -> Result<u32, GateError> {
        self.core.set_account_rate(account, rate)
    }

    /// Replaces the message rate of all accounts together; returns the new version of the limits.
    pub fn set_global_rate(&mut self, rate: Rate) -> u32 {
        self.core.set_global_rate(rate)
    }

    /// Replaces the times that apply to every account; returns the new version of the limits.
    pub fn set_rules(&mut self, rules: &Rules) -> u32 {
        self.rules = *rules;
        for refusals in &mut self.refusals {
            refusals.rate.set(rules.refusal_rate);
        }
        self.core.next_version()
    }

    /// Returns the times that apply to every account.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Sets the reference price of `instrument` at `now_ns`, from which positions have
    /// [`Rules::revalue_max_ns`] to follow it.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_reference(&mut self, now_ns: u64, instrument: InstrumentId, mark: &Mark) -> Result<(), GateError> {
        self.core.set_reference(instrument, mark)?;
        self.tree.set_price(instrument, mark.ref_px.0.max(0), now_ns);
        if mark.ts_ns >= self.fault_ns {
            self.mark_epochs[instrument.0 as usize] = self.epoch;
        }
        Ok(())
    }

    /// Sets what a step of `currency` is worth in the currency of limits. From the time of the gate on, positions have
    /// [`Rules::revalue_max_ns`] to follow it: [`pass_time`](Self::pass_time) before.
    ///
    /// # Errors
    /// [`GateError::Unknown`] for currency 0 and outside the capacity.
    pub fn set_conversion(&mut self, currency: u16, conversion: &Conversion) -> Result<(), GateError> {
        self.tree.set_conversion(currency, conversion, self.last_ns).ok_or(GateError::Unknown)
    }

    /// Sets the venue's total of `account` in `currency`, holds of open orders included. Later fills change it.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_balance(&mut self, account: u16, currency: u16, total: i64) -> Result<(), GateError> {
        let balance = self.tree.balance(account, currency).ok_or(GateError::Unknown)?;
        balance.total = total.into();
        Ok(())
    }

    /// Sets the venue's equity of `account` at `ts_ns`, in steps of currency 0.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_equity(&mut self, account: u16, equity: i64, ts_ns: u64) -> Result<(), GateError> {
        let index = self.tree.node(Node::Account(account)).ok_or(GateError::Unknown)?;
        let state = &mut self.tree.nodes[index];
        (state.equity, state.room) = (Some((equity, ts_ns)), Room::NONE);
        Ok(())
    }

    /// Returns what [`set_journal_lost`](Self::set_journal_lost) has said last.
    #[must_use]
    pub const fn is_journal_lost(&self) -> bool {
        self.is_journal_lost
    }

    /// Says whether the caller can record what the gate does; orders have the reason `JOURNAL` while it cannot.
    pub const fn set_journal_lost(&mut self, is_lost: bool) {
        self.is_journal_lost = is_lost;
    }

    /// Begins a day: daily losses count from the present profits.
    pub fn start_day(&mut self, now_ns: u64) {
        self.pass_time(now_ns);
        self.tree.start_day();
        self.watch_losses();
    }

    /// Lets a strategy continue that executions have stopped.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn enable(&mut self, account: u16, strategy: u16) -> Result<(), GateError> {
        let index = self.tree.node(Node::Strategy { account, strategy }).ok_or(GateError::Unknown)?;
        let node = &mut self.tree.nodes[index];
        (node.is_stopped, node.executions) = (false, crate::window::Window::EMPTY);
        Ok(())
    }

    /// Sets the trading state of `instrument`.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn set_state(&mut self, instrument: InstrumentId, state: InstrumentState) -> Result<(), GateError> {
        self.known_instrument(instrument)?;
        self.states[instrument.0 as usize] = state;
        Ok(())
    }

    /// Continues the numbers of `producer`: its next intent has the number `last_seq` + 1.
    ///
    /// # Errors
    /// [`GateError::Unknown`].
    pub fn resume(&mut self, producer: u16, last_seq: u64) -> Result<(), GateError> {
        let next = self.next_seqs.get_mut(usize::from(producer)).ok_or(GateError::Unknown)?;
        *next = last_seq.wrapping_add(1);
        Ok(())
    }

    /// Returns the next mode that the gate itself has set: for a file that keeps modes.
    pub fn poll_mode_change(&mut self) -> Option<(KillSwitch, Mode)> {
        self.mode_changes.pop()
    }

    /// Puts the node into reduce mode, unless it is in a stricter one.
    pub(super) fn reduce(&mut self, node: Node) {
        let switch = match node {
            Node::Firm => KillSwitch::Global,
            Node::Account(account) => KillSwitch::Account(account),
            Node::Strategy { strategy, .. } => KillSwitch::Strategy(strategy),
        };
        if self.core.controls.reduce(switch) {
            self.note_mode(switch, Mode::Reduce);
        }
    }

    fn note_mode(&mut self, switch: KillSwitch, mode: Mode) {
        // The caller polls after each event, so there is room.
        if self.mode_changes.len() < self.mode_changes.capacity() {
            self.mode_changes.push((switch, mode));
        }
    }

    /// Counts a refusal of `producer`; too many kill its strategies.
    pub(super) fn count_refusal(&mut self, now_ns: u64, producer: u16) {
        let Some(refusals) = self.refusals.get_mut(usize::from(producer)) else { return };
        if !refusals.rate.is_early(now_ns) {
            refusals.rate.count(now_ns, u64::MAX);
            return;
        }
        let generation = self.core.controls.generation();
        if refusals.killed_in == Some(generation) {
            return;
        }
        let controls = self.core.controls.clone();
        let routes = self.tree.routes().filter(|(of, _)| *of == producer).map(|(_, strategy)| strategy);
        for strategy in routes {
            let switch = KillSwitch::Strategy(strategy);
            if controls.kill(switch) && self.mode_changes.len() < self.mode_changes.capacity() {
                self.mode_changes.push((switch, Mode::Kill));
            }
        }
        self.refusals[usize::from(producer)].killed_in = Some(self.core.controls.generation());
    }

    /// Returns the strategy's row of a record; [`NIL`] if it has no route.
    pub(super) fn route_row(&self, account: u16, strategy: u16, instrument: InstrumentId) -> u32 {
        let is_known = account < self.capacity.accounts && instrument.0 < self.capacity.instruments;
        if is_known { self.tree.route(account, strategy, instrument) } else { NIL }
    }
}
