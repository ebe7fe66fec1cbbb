//! Memory of orders, asked for ahead.

use super::{Orders, id_hash};
use tt_simd::{prefetch, prefetch_lines};

impl Orders {
    /// Asks for the ways to the orders of `row`, and to the one of `account` under `client_id`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: usize, account: u16, client_id: u64) {
        self.ids.prefetch(id_hash(account, client_id));
        self.levels.prefetch(row);
        prefetch(&self.row_first[row]);
    }

    /// Asks for a record and its columns.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, slot: u32) {
        let slot = slot as usize;
        let Some(record) = self.records.get(slot) else { return };
        prefetch_lines(record);
        prefetch(&self.counted[slot]);
        prefetch(&self.asked[slot]);
        self.ids.prefetch_link(slot);
        self.terms.prefetch_link(slot);
    }

    /// Asks for the record that the new order after `ahead` others will have, if the free ones follow each other.
    #[inline(always)]
    pub(crate) fn prefetch_free(&self, ahead: u32) {
        self.prefetch_slot(self.free.saturating_add(ahead));
    }
}
