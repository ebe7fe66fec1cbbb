//! The gate and its oracle hold the same.

use tt_model::InstrumentId;
use tt_risk::tree::Node;

use super::{Broken, Host, switch, switches};
use crate::gate_world::setup::STRATEGIES;

/// Whether sums in money are as new as the last input.
#[derive(Clone, Copy)]
pub(in crate::gate_world) enum Totals {
    Compared,
    Left,
}

impl Host {
    /// Compares the modes that the gate acts on with those that others see.
    pub(in crate::gate_world) fn compare_switches(&self) -> Result<(), Broken> {
        let (own, others) = (self.gate.gate().controls(), self.gate.switches());
        for at in switches(self.accounts, self.instruments).map(switch) {
            if own.mode(at) != others.mode(at) {
                return Err((1, format!("{at:?} has mode {:?} for {:?}", own.mode(at), others.mode(at))));
            }
        }
        Ok(())
    }

    /// Compares every exposure, doubt, mode and, if asked, every sum in money.
    pub(in crate::gate_world) fn compare(&self, totals: Totals) -> Result<(), Broken> {
        let gate = self.gate.gate();
        for account in 0..self.accounts {
            if gate.is_doubtful(account) != self.oracle.is_doubtful(account) {
                return Err((1, format!("account {account} is in doubt: {}", gate.is_doubtful(account))));
            }
            for instrument in 0..self.instruments {
                let held = gate.exposure(account, InstrumentId(instrument)).unwrap_or_default();
                let got = [held.position.0, held.open_buy_qty.0, held.open_sell_qty.0, held.open_orders.into()];
                let (got, known) = (got.map(i128::from), self.oracle.known(account, instrument));
                if got != known {
                    return Err((1, format!("account {account}, instrument {instrument}: {got:?} for {known:?}")));
                }
            }
        }
        let own = gate.controls();
        for at in switches(self.accounts, self.instruments) {
            let (mode, expected) = (own.mode(switch(at)) as u8, self.oracle.mode(at.0, at.1));
            if mode != expected {
                return Err((1, format!("{:?} has mode {mode} for {expected}", switch(at))));
            }
        }
        if matches!(totals, Totals::Compared) { self.compare_totals() } else { Ok(()) }
    }

    fn compare_totals(&self) -> Result<(), Broken> {
        let strategies = || (0..STRATEGIES).map(Some).chain([None]);
        let accounts = (0..self.accounts).flat_map(|account| strategies().map(move |of| (Some(account), of)));
        for (account, strategy) in accounts.chain([(None, None)]) {
            let node = match (account, strategy) {
                (Some(account), Some(strategy)) => Node::Strategy { account, strategy },
                (Some(account), None) => Node::Account(account),
                _ => Node::Firm,
            };
            let totals = self.gate.gate().totals(node);
            let got = totals.map(|of| [of.gross, of.net[0], of.net[1], of.open_value, of.margin, of.profit]);
            let expected = self.oracle.totals(account, strategy);
            if got != expected {
                return Err((1, format!("{node:?}: {got:?} for {expected:?}")));
            }
        }
        self.compare_sums()
    }

    /// (3) In lots the accounts add up to the firm; strategies have no more than their account.
    fn compare_sums(&self) -> Result<(), Broken> {
        let gate = self.gate.gate();
        let lots = |node: Node, instrument: u32| {
            let held = gate.held(node, InstrumentId(instrument)).unwrap_or_default();
            [held.position.0, held.open_buy_qty.0, held.open_sell_qty.0, held.open_orders.into()]
        };
        let add = |a: [i64; 4], b: [i64; 4]| [0, 1, 2, 3].map(|index: usize| a[index] + b[index]);
        for instrument in 0..self.instruments {
            let mut sum = [0; 4];
            for account in 0..self.accounts {
                let own = lots(Node::Account(account), instrument);
                sum = add(sum, own);
                let strategies = (0..STRATEGIES).map(|strategy| lots(Node::Strategy { account, strategy }, instrument));
                let parts = strategies.fold([0; 4], add);
                if (1..4).any(|index: usize| parts[index] > own[index]) {
                    return Err((3, format!("account {account} has {own:?}, its strategies {parts:?}")));
                }
            }
            let firm = lots(Node::Firm, instrument);
            if firm != sum {
                return Err((3, format!("the firm has {firm:?}, its accounts {sum:?}")));
            }
        }
        Ok(())
    }
}
