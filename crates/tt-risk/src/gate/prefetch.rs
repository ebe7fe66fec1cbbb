//! Memory that the evaluation of intents will read, asked for ahead.

use super::Gate;
use tt_model::{IntentKind, OrderIntent};
use tt_simd::{prefetch, prefetch_lines};

impl Gate {
    /// Asks the processor for the memory that the evaluation of `intents`, in this order, will read: a hint, nothing
    /// changes. It pays where the tables of all instruments are not in a near cache.
    pub fn prefetch(&self, intents: &[OrderIntent]) {
        for intent in intents {
            self.prefetch_rows(intent);
        }
        // What these places lead to is on its way only now.
        for (ahead, intent) in (0..).zip(intents) {
            let row = self.route_row(intent.account, intent.strategy, intent.instrument);
            self.tree.prefetch_row(row);
            if intent.kind == IntentKind::CANCEL || intent.kind == IntentKind::REPLACE {
                if let Some(slot) = self.orders.find(self.horizon_ns, intent.account, intent.client_id) {
                    self.orders.prefetch_slot(slot);
                }
            } else {
                self.orders.prefetch_free(ahead);
            }
        }
    }

    fn prefetch_rows(&self, intent: &OrderIntent) {
        let (row, is_known) = self.core.row_index(intent.account, intent.instrument);
        if !is_known {
            return;
        }
        let instrument = intent.instrument.0 as usize;
        self.core.prefetch(row, instrument);
        prefetch(&self.rows[row]);
        prefetch_lines(&self.instruments[instrument]);
        prefetch_lines(&self.messages[instrument]);
        prefetch(&self.states[instrument]);
        prefetch(&self.mark_epochs[instrument]);
        self.tree.prefetch(intent.account, intent.strategy, intent.instrument);
        self.orders.prefetch(row, intent.account, intent.client_id);
    }
}
