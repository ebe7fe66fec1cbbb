//! The account: own orders, executions, balances, positions.

use super::order_id::OrderId;
use crate::symbol::Symbol;
use tt_model::{Decimal, Nanos, OrderSide};

/// An update of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderUpdate {
    /// The instrument; `None` where the update leaves it out.
    pub symbol: Option<Symbol>,
    /// The venue's identifier.
    pub order_id: OrderId,
    /// Buy or sell; `None` where the update leaves it out.
    pub side: Option<OrderSide>,
    /// The order's state after the update.
    pub status: OrderStatus,
    /// The limit price, zero for a market order; `None` where the update leaves it out.
    pub limit_px: Option<Decimal>,
    /// The whole quantity; `None` where the update leaves it out.
    pub qty: Option<Decimal>,
    /// The quantity executed up to now; `None` where the update leaves it out.
    pub filled_qty: Option<Decimal>,
    /// The execution in the update, if there is one.
    pub fill: Option<Fill>,
    /// The venue's time, Unix epoch; zero in a list that has none, which says what is so now.
    pub ts_event: Nanos,
}

/// One execution of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The venue's identifier of the execution.
    pub trade_id: OrderId,
    /// The price.
    pub px: Decimal,
    /// The quantity.
    pub qty: Decimal,
    /// What was paid for it, negative for a rebate; `None` where the message leaves it out.
    pub fee: Option<Decimal>,
    /// What the fee was paid in; `None` where the message leaves it out.
    pub fee_asset: Option<Symbol>,
    /// Whether the order made the liquidity; `None` where the message leaves it out.
    pub is_maker: Option<bool>,
}

/// The state of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OrderStatus {
    /// Sent, not yet acknowledged by the matching engine.
    Pending,
    /// Open, nothing executed.
    New,
    /// Open, partly executed.
    PartiallyFilled,
    /// Executed in full.
    Filled,
    /// Withdrawn.
    Cancelled,
    /// Refused.
    Rejected,
    /// Ended by its own conditions.
    Expired,
}

impl OrderStatus {
    /// Whether the order can still change.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::New | Self::PartiallyFilled => true,
            Self::Filled | Self::Cancelled | Self::Rejected | Self::Expired => false,
        }
    }
}

/// One execution that the venue sends apart from the order's updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The instrument.
    pub symbol: Symbol,
    /// The venue's identifier of the order.
    pub order_id: OrderId,
    /// The venue's identifier of the execution.
    pub execution_id: OrderId,
    /// Bought or sold.
    pub side: OrderSide,
    /// The price.
    pub px: Decimal,
    /// The quantity.
    pub qty: Decimal,
    /// What was paid for it, negative for a rebate; `None` where the message leaves it out.
    pub fee: Option<Decimal>,
    /// What the fee was paid in; `None` where the message leaves it out.
    pub fee_asset: Option<Symbol>,
    /// Whether the order made the liquidity; `None` where the message leaves it out.
    pub is_maker: Option<bool>,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

/// What the account holds of one asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The asset.
    pub asset: Symbol,
    /// The whole balance, including the locked part; may be negative on margin. `None` if the message has only a change.
    pub total: Option<Decimal>,
    /// What is free to use; `None` where the message leaves it out.
    pub free: Option<Decimal>,
    /// What orders and withdrawals hold; `None` where the message leaves it out.
    pub locked: Option<Decimal>,
    /// The change in the message; `None` if the message has none.
    pub change: Option<Decimal>,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

/// Which of the positions that an account may hold in one instrument at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PositionLeg {
    /// The only one: long or short by its sign.
    #[default]
    Net,
    /// The long one of a hedged account.
    Long,
    /// The short one of a hedged account.
    Short,
}

/// Whether what a message's list leaves out is unchanged, or gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// Only what changed is listed.
    #[default]
    Changed,
    /// A part of all is listed; another message follows.
    Part,
    /// All is listed, or the last part of all: what was in no part is gone.
    All,
}

/// The state of several orders that depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderList {
    /// The instrument.
    pub symbol: Symbol,
    /// The venue's number of the list.
    pub list_id: u64,
    /// The number of its orders; each also has its own update.
    pub orders: u32,
    /// Whether the list can still change.
    pub status: OrderListStatus,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

/// The state of an order list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OrderListStatus {
    /// Placed, or waiting.
    Executing,
    /// No order of it is open.
    AllDone,
    /// Refused.
    Rejected,
}

/// A position as the venue sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionUpdate {
    /// The instrument.
    pub symbol: Symbol,
    /// Which one.
    pub leg: PositionLeg,
    /// What is held, negative when short, in the venue's unit of quantity.
    pub qty: Decimal,
    /// The average entry price; `None` where nothing is held or the message leaves it out.
    pub entry_px: Option<Decimal>,
    /// Unrealised profit or loss as the venue reckons it; `None` where the message leaves it out.
    pub unrealised: Option<Decimal>,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}
