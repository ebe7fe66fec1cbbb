//! Operators: modes, limits, states, reconciliation.

use risk_gate::{Answer, Difference, Input};
use tt_model::{InstrumentId, OrderIntent, Report, ReportKind};
use tt_risk::money::{Conversion, Ratio};
use tt_risk::{InstrumentState, Mode};

use super::host::switches;
use super::setup::STRATEGIES;
use super::world::{MS, World};
use crate::draw::Draw;

impl World<'_> {
    pub(super) fn any_switch(&self, draw: &mut Draw) -> (usize, usize) {
        let all: Vec<_> = switches(self.setup().accounts, self.setup().instruments).collect();
        draw.pick(&all)
    }

    pub(super) fn operate(&mut self, draw: &mut Draw) {
        let at = self.any_switch(draw);
        let mode = draw.pick(&[Mode::Active, Mode::Reduce, Mode::Kill, Mode::Kill]);
        self.set_mode(at, mode);
    }

    /// Looks after what the faults have left: accounts in doubt, modes, numbers.
    pub(super) fn look(&mut self) {
        if self.host.is_none() {
            return;
        }
        self.perform(&Input::Time);
        if self.luck().chance(1, 2) {
            self.fresh_money();
        }
        if self.strategies.has_gap && self.rings.intents.occupancy() == 0 {
            self.strategies.has_gap = false;
            let last = self.strategies.seq;
            self.perform(&Input::Resume(0, last));
        }
        for account in 0..self.setup().accounts {
            if self.is_doubtful(account) {
                self.reconcile(account);
            }
        }
        let mut draw = self.luck();
        for at in switches(self.setup().accounts, self.setup().instruments) {
            let Some(host) = &self.host else { return };
            let is_stopped = host.gate.switches().mode(super::host::switch(at)) != Mode::Active;
            if is_stopped && draw.chance(1, 3) {
                self.set_mode(at, Mode::Active);
            }
        }
    }

    pub(super) fn is_doubtful(&self, account: u16) -> bool {
        self.host.as_ref().is_some_and(|host| host.gate.gate().is_doubtful(account))
    }

    /// Compares an account with the venue's statement. Orders that never reached the venue are taken back.
    pub(super) fn reconcile(&mut self, account: u16) -> Vec<Difference> {
        let statement = self.venue.statement(account);
        let Some(Answer::Differences(found)) = self.perform(&Input::Reconcile(statement)) else { return Vec::new() };
        self.say(|| format!("  account {account}: {found:?}"));
        if found.is_empty() {
            self.tally.reconciled += 1;
            self.unsure[usize::from(account)] = false;
        }
        for difference in &found {
            if let Difference::Missing(client_id) = *difference
                && !self.is_under_way(account, client_id)
            {
                self.end_missing(account, client_id);
            }
        }
        found
    }

    /// Ends an order that the venue does not have any more, or never had.
    fn end_missing(&mut self, account: u16, client_id: u64) {
        let order = self.host.as_ref().and_then(|host| host.gate.gate().open_order(account, client_id));
        let Some((instrument, order)) = order else { return };
        let is_it = |intent: &&OrderIntent| (intent.account, intent.client_id) == (account, client_id);
        let seq = self.strategies.orders.iter().find(is_it).map(|intent| intent.seq);
        let found = self.venue.find(account, client_id);
        let found = found.filter(|found| seq.is_none_or(|seq| self.venue.orders[*found].seq == seq));
        let Some(found) = found else {
            let kind = ReportKind::UNSENT;
            return self
                .apply(None, &Report { kind, side: order.side, account, instrument, client_id, ..Report::default() });
        };
        if self.venue.sent.iter().all(|sent| sent.order != found || sent.is_applied) {
            let report = self.venue.restate(found, ReportKind::CANCELLED);
            self.apply(None, &report);
        }
    }

    /// An operator declares an account true, while nothing is on its way that says otherwise.
    pub(super) fn adopt_any(&mut self, draw: &mut Draw) {
        let account = draw.below(self.setup().accounts.into()) as u16;
        let is_awaited = self.venue.sent.iter().any(|sent| sent.report.account == account && !sent.is_applied);
        if !is_awaited {
            self.perform(&Input::Adopt(account));
        }
    }

    /// An operator replaces all limits.
    pub(super) fn reload(&mut self, draw: &mut Draw) {
        let next = self.limits().replaced(self.limits().version + 1, draw);
        let now = self.clock();
        let Some(host) = &mut self.host else { return };
        let loaded = host.load(now, &next);
        self.check(loaded);
        self.say(|| format!("  limits of version {}", next.version));
        self.files.insert(next.version, next);
        self.windows.clear();
        self.tally.reloads += 1;
        self.after_input();
    }

    /// What a feed says of money, right or wrong, and what a day's beginning changes.
    pub(super) fn money(&mut self, draw: &mut Draw) {
        let account = draw.below(self.setup().accounts.into()) as u16;
        let lot = self.setup().lot();
        let worth = lot.saturating_mul(draw.between(0, 3_000).cast_signed());
        let input = match draw.below(8) {
            0 | 1 => {
                let ts_ns = self.clock() + draw.pick(&[0, 0, 20 * MS]);
                let rate = Ratio { num: self.setup().rate_of_other() * draw.between(0, 20), den: 10 };
                Input::Conversion(1, Conversion { rate, ts_ns })
            }
            2 | 3 => Input::Balance(account, draw.below(2) as u16, worth),
            4 | 5 => Input::Equity(account, worth - 100 * lot),
            6 => Input::Day,
            _ => Input::Enable(account, draw.below(STRATEGIES.into()) as u16),
        };
        self.perform(&input);
    }

    /// Rates of now, and more money than is needed.
    pub(super) fn fresh_money(&mut self) {
        let rate = Ratio { num: self.setup().rate_of_other(), den: 1 };
        let ts_ns = self.clock();
        self.perform(&Input::Conversion(1, Conversion { rate, ts_ns }));
        for account in 0..self.setup().accounts {
            let worth = self.setup().lot().saturating_mul(100_000);
            self.perform(&Input::Equity(account, worth));
            for currency in 0..2 {
                self.perform(&Input::Balance(account, currency, worth));
            }
        }
    }

    pub(super) fn set_state(&mut self, draw: &mut Draw) {
        let instrument = InstrumentId(draw.below(self.setup().instruments.into()) as u32);
        let state = draw.pick(&InstrumentState::ALL);
        let state = if draw.chance(1, 2) { InstrumentState::Open } else { state };
        self.perform(&Input::State(instrument, state));
    }
}
