//! The fields of records, for snapshots.

use super::{Asked, Bits, Orders, Phase, Record, Reserved};
use crate::fields::{Fields, Visit, visit, visit_variants};

visit_variants!(Phase: Free, Reserved, Live, Filled, Ended);
visit!(
    Record: client_id, limit_px, trigger_px, qty, executed, venue_executed, deadline_ns, cancel_ns, replace_px, replace_qty,
    replace_trigger_px, account, strategy, instrument, level, replace_level, row_previous, row_next, executions, route,
    phase, kind, side, tif, flags, bits
);
visit!(Asked: px, qty, accepted_ns);
visit!(Reserved: lots, value, hold);
visit!(
    Orders: records, ids, terms, asked, versions, counted, executions, levels, row_first, free, free_len, ended, gaps
);

impl Visit for Bits {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Self(bits) = self;
        bits.visit(fields);
    }
}
