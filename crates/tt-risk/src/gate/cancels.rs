//! Cancels of all orders of a scope, whoever has sent them.

use super::Gate;
use crate::{
    controls::KillSwitch,
    index::NIL,
    orders::{Bits, Record},
};
use tt_model::{IntentKind, OrderIntent, Price, Qty};

impl Gate {
    /// Requests the end of every open order in `scope` at `now_ns`, as an operator may: calls `see` with each cancel.
    ///
    /// It reaches the orders of all producers and strategies, and those that are known from reports alone, which belong to no
    /// strategy. An order whose last cancel is younger than [`Rules::cancel_repeat_ns`](super::Rules::cancel_repeat_ns) is left out. These cancels
    /// count against no rate and no ratio, and have no number of a producer. Only a report frees what an order reserves.
    pub fn cancel_scope(&mut self, now_ns: u64, scope: KillSwitch, mut see: impl FnMut(OrderIntent)) {
        self.pass_time(now_ns);
        for slot in 0..self.orders.records.len() {
            let record = &self.orders.records[slot];
            if !is_in(scope, record) || self.repeats_cancel(now_ns, record) {
                continue;
            }
            let record = &mut self.orders.records[slot];
            record.bits.set(Bits::CANCEL_PENDING);
            record.cancel_ns = now_ns;
            see(OrderIntent {
                ts_ns: now_ns,
                client_id: record.client_id,
                limit_px: Price(record.limit_px),
                qty: Qty(record.qty),
                account: record.account,
                strategy: record.strategy,
                instrument: record.instrument,
                kind: IntentKind::CANCEL,
                side: record.side,
                ..OrderIntent::default()
            });
        }
    }

    /// Calls `see` with the account and the client id of each open order in `scope`.
    pub fn open_in(&self, scope: KillSwitch, mut see: impl FnMut(u16, u64)) {
        let open = self.orders.records.iter().filter(|record| is_in(scope, record));
        open.for_each(|record| see(record.account, record.client_id));
    }
}

/// Returns whether an open order is in a scope.
fn is_in(scope: KillSwitch, record: &Record) -> bool {
    record.is_open()
        && match scope {
            KillSwitch::Global => true,
            KillSwitch::Account(account) => record.account == account,
            // An order that only reports have shown has no route, and so no strategy.
            KillSwitch::Strategy(strategy) => record.strategy == strategy && record.route != NIL,
            KillSwitch::Instrument(instrument) => record.instrument == instrument,
        }
}
