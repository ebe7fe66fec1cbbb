//! The report: what a venue says about an order.

use crate::{InstrumentId, OrderSide, Price, Qty};

/// One report of an order session or a drop copy: 128 bytes, two cache lines.
///
/// An order is named by account and client id. Only a report frees what an accepted intent has reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Report {
    /// What happened.
    pub kind: ReportKind,
    /// The side of the order.
    pub side: OrderSide,
    /// The account.
    pub account: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The client id of the order's intent.
    pub client_id: u64,
    /// The venue's id of the execution: of a fill, or of the new fill of a correction.
    pub execution_id: u128,
    /// The execution that a bust or a correction undoes.
    pub undone_id: u128,
    /// Lots of this fill.
    pub qty: Qty,
    /// Price of this fill.
    pub px: Price,
    /// Lots of the order that the venue has executed in total; [`Report::NOT_STATED`] if the report has no such field.
    pub executed: Qty,
    /// The order's quantity as the venue has it: of an acknowledgement, a replace, a restatement.
    pub order_qty: Qty,
    /// The order's limit price as the venue has it; zero for none.
    pub limit_px: Price,
    /// The order's trigger price as the venue has it; zero for none.
    pub trigger_px: Price,
    /// The fee of this fill in steps of the instrument's currency; negative for a rebate.
    pub fee: i64,
    /// The venue's number or time of the change that is reported, larger for later changes of an order; zero if the
    /// report has none. [`Report::CURRENT`]: the caller has asked the venue what the order is now.
    pub version: u64,
}

const _: () = assert!(size_of::<Report>() == 128);

impl Report {
    /// [`Report::executed`] of a report that does not state it.
    pub const NOT_STATED: Qty = Qty(-1);

    /// [`Report::version`] of terms that a query has returned: they are later than every report before.
    pub const CURRENT: u64 = u64::MAX;
}

/// What a report says. Any byte may arrive; the gate applies none without a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ReportKind(pub u8);

impl ReportKind {
    /// The venue has accepted the order.
    pub const ACK: Self = Self(0);
    /// A part of the order, or all of it, was executed.
    pub const FILL: Self = Self(1);
    /// The order was cancelled.
    pub const CANCELLED: Self = Self(2);
    /// The venue has rejected the order.
    pub const REJECTED: Self = Self(3);
    /// The order's time is over.
    pub const EXPIRED: Self = Self(4);
    /// The order never left the sender.
    pub const UNSENT: Self = Self(5);
    /// The venue has undone a fill.
    pub const BUST: Self = Self(6);
    /// The venue has replaced a fill by another one.
    pub const CORRECT: Self = Self(7);
    /// The venue has rejected a cancel.
    pub const CANCEL_REJECTED: Self = Self(8);
    /// The venue has rejected a replace.
    pub const REPLACE_REJECTED: Self = Self(9);
    /// The venue has replaced the order's terms.
    pub const REPLACED: Self = Self(10);
    /// The venue has changed the order's terms on its own account.
    pub const RESTATED: Self = Self(11);
}
