//! What an accepted intent changes.

use super::{Effect, From};
use crate::{
    gate::Gate,
    orders::{Bits, Phase, Record},
    tree::Node,
    window::part_of,
};
use tt_model::{IntentKind, OrderIntent};

impl Gate {
    /// Counts an accepted message of a strategy, and cancels and replaces.
    fn count_message(&mut self, from: From, intent: &OrderIntent) {
        let From { now_ns, route, .. } = from;
        if let Some(row) = self.tree.rows.get(route as usize) {
            self.tree.nodes[row.node as usize].rate.count(now_ns, u64::MAX);
        }
        if intent.kind == IntentKind::CANCEL || intent.kind == IntentKind::REPLACE {
            let part = part_of(self.horizon_ns, self.rules.cancel_window_ns);
            if let Some(messages) = self.messages.get_mut(intent.instrument.0 as usize) {
                messages.cancels.count(part);
            }
            if let Some(node) = self.tree.node(Node::Account(intent.account)) {
                self.tree.nodes[node].messages.cancels.count(part);
            }
        }
    }

    /// Commits an accepted intent.
    pub(super) fn accept(&mut self, from: From, intent: &OrderIntent, effect: &Effect) {
        let From { now_ns, row, route, .. } = from;
        self.core.count_message(now_ns, intent);
        self.count_message(from, intent);
        match *effect {
            Effect::Order { px, terms } => {
                let limit_px = if intent.kind.is_market() { px } else { intent.limit_px.0 };
                let record = Record { limit_px, route, phase: Phase::Reserved, ..asked(intent) };
                // There is room: an order without has the reason `CAPACITY`.
                if let Some(slot) = self.add_record(row, &record) {
                    self.orders.keep_terms(slot, self.horizon_ns, [intent.limit_px.0, intent.qty.0], terms);
                }
            }
            Effect::Cancel { slot } => {
                let record = &mut self.orders.records[slot as usize];
                record.bits.set(Bits::CANCEL_PENDING);
                record.cancel_ns = now_ns;
            }
            Effect::Replace { slot } => {
                let instrument = self.core.instrument_index(intent.instrument);
                let adds = !self.instruments[instrument].replaces_atomically;
                let record = &mut self.orders.records[slot as usize];
                if adds {
                    record.bits.set(Bits::REPLACE_ADDS);
                }
                self.orders.begin_replace(row, slot, [intent.limit_px.0, intent.qty.0, intent.trigger_px.0]);
                self.settle(row, slot);
            }
            Effect::Message => {}
        }
    }
}

/// Returns the record of an order as it is asked for; it is not open yet.
#[inline(always)]
fn asked(intent: &OrderIntent) -> Record {
    Record {
        client_id: intent.client_id,
        limit_px: intent.limit_px.0,
        trigger_px: intent.trigger_px.0,
        qty: intent.qty.0,
        account: intent.account,
        strategy: intent.strategy,
        instrument: intent.instrument,
        kind: intent.kind,
        side: intent.side,
        tif: intent.tif,
        flags: intent.flags,
        ..Record::FREE
    }
}
