//! Limits and sums of a node.

use super::{room::Room, worth::Worth};
use crate::{rate::Bucket, window::Window};
use tt_model::{Breach, InstrumentId, Notional, Qty};

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// All accounts.
    Firm,
    /// An account.
    Account(u16),
    /// A strategy of an account.
    Strategy {
        /// The account.
        account: u16,
        /// The strategy's number.
        strategy: u16,
    },
}

/// A reason that a node has, with its value and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The node; `None` for the instrument.
    pub node: Option<Node>,
    /// The reason.
    pub reason: Breach,
    /// Value and limit, in the units of the limit; a position as seen from the order's side. `None` if the reason has no
    /// numbers, or if the value is not known. Leverage: gross exposure times 100, and the equity times its limit.
    pub values: Option<[i128; 2]>,
}

/// A producer's permission to send the orders of a strategy in an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The producer.
    pub producer: u16,
    /// The account.
    pub account: u16,
    /// The strategy's number.
    pub strategy: u16,
    /// The instrument.
    pub instrument: InstrumentId,
}

/// Limits of the firm, or of a strategy, in one instrument. A value equal to a limit passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimits {
    /// Maximum quantity of an order with a limit price.
    pub qty_max: Qty,
    /// Maximum quantity of a market order.
    pub market_qty_max: Qty,
    /// Maximum notional of an order.
    pub notional_max: Notional,
    /// Maximum long position if all open buys and no open sells are filled.
    pub position_long_max: Qty,
    /// Maximum short position, as a positive number, if all open sells and no open buys are filled.
    pub position_short_max: Qty,
    /// Maximum open quantity per side.
    pub open_qty_max: Qty,
    /// Maximum number of open orders.
    pub open_orders_max: u32,
}

impl RowLimits {
    /// No order passes.
    pub(crate) const NONE: Self = Self {
        qty_max: Qty(0),
        market_qty_max: Qty(0),
        notional_max: Notional(0),
        position_long_max: Qty(0),
        position_short_max: Qty(0),
        open_qty_max: Qty(0),
        open_orders_max: 0,
    };

    /// Every order passes.
    pub const UNLIMITED: Self = Self {
        qty_max: Qty(i64::MAX),
        market_qty_max: Qty(i64::MAX),
        notional_max: Notional(i128::MAX),
        position_long_max: Qty(i64::MAX),
        position_short_max: Qty(i64::MAX),
        open_qty_max: Qty(i64::MAX),
        open_orders_max: u32::MAX,
    };
}

/// Limits of a node in all its instruments, in steps of currency 0. `None`: not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// Maximum sum of the values of positions, each with the open orders that enlarge it most.
    pub gross_max: Option<i64>,
    /// Maximum distance from zero of the sum of the signed values of positions, with the open orders of the order's side.
    pub net_max: Option<i64>,
    /// Maximum value of open orders, at their own prices.
    pub open_value_max: Option<i64>,
    /// Maximum loss since the start of the day. A larger one puts the node into reduce mode.
    pub daily_loss_max: Option<i64>,
    /// Maximum loss since the highest profit. A larger one puts the node into reduce mode.
    pub drawdown_max: Option<i64>,
    /// Accounts: whether initial margin may not exceed the equity.
    pub checks_margin: bool,
    /// Accounts: maximum gross exposure in hundredths of the equity.
    pub leverage_max_pct: Option<u32>,
    /// Accounts: whether an order in a spot instrument must be covered by the venue's balance.
    pub checks_balance: bool,
    /// Accounts: maximum number of cancels and replaces per fill, in hundredths, within
    /// [`Rules::cancel_window_ns`](crate::Rules::cancel_window_ns).
    pub cancels_per_fill_max_pct: Option<u32>,
    /// Strategies: number of executions within [`Rules::exec_window_ns`](crate::Rules::exec_window_ns) that stops the
    /// strategy until [`Gate::enable`](crate::Gate::enable).
    pub executions_stop: Option<u32>,
}

impl NodeLimits {
    /// Nothing is checked.
    pub const OFF: Self = Self {
        gross_max: None,
        net_max: None,
        open_value_max: None,
        daily_loss_max: None,
        drawdown_max: None,
        checks_margin: false,
        leverage_max_pct: None,
        checks_balance: false,
        cancels_per_fill_max_pct: None,
        executions_stop: None,
    };
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self::OFF
    }
}

/// Cancels and replaces, and fills, of an account or an instrument.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Windows {
    pub(crate) cancels: Window,
    pub(crate) fills: Window,
}

impl Windows {
    /// Returns whether cancels exceed `max_pct` hundredths of the fills and one.
    pub(crate) fn are_cancels_over(&self, now_ns: u64, width_ns: u64, max_pct: u32) -> bool {
        let most = |fills: u64| u64::from(max_pct) * (fills + 1);
        let cancels = self.cancels.sum(now_ns, width_ns) * 100;
        // Fills only raise the limit.
        cancels > most(0) && cancels > most(self.fills.sum(now_ns, width_ns))
    }
}

/// What a node holds in money: sums over its instruments, in steps of currency 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Gross exposure.
    pub gross: i128,
    /// Net exposure with all open buys filled, and with all open sells.
    pub net: [i128; 2],
    /// Value of open orders.
    pub open_value: i128,
    /// Initial margin; zero where it is not checked.
    pub margin: i128,
    /// Profit since the positions were restored, less fees.
    pub profit: i128,
}

/// A node with its sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeState {
    pub(crate) limits: NodeLimits,
    pub(crate) account: u16,
    pub(crate) strategy: u16,
    pub(super) sum: Worth,
    pub(crate) room: Room,
    /// Rows whose value is not known.
    pub(super) unknown: u32,
    pub(crate) day_start: i128,
    pub(crate) peak: i128,
    /// Whether the present loss has put the node into reduce mode.
    pub(crate) is_latched: bool,
    pub(super) is_touched: bool,
    /// The venue's equity of an account, and its time.
    pub(crate) equity: Option<(i64, u64)>,
    pub(crate) messages: Windows,
    pub(crate) executions: Window,
    /// Whether executions have stopped the strategy.
    pub(crate) is_stopped: bool,
    /// Of a strategy.
    pub(crate) rate: Bucket,
}

impl NodeState {
    pub(crate) const NEW: Self = Self {
        limits: NodeLimits::OFF,
        account: 0,
        strategy: 0,
        sum: Worth::ZERO,
        room: Room::NONE,
        unknown: 0,
        day_start: 0,
        peak: 0,
        is_latched: false,
        is_touched: false,
        equity: None,
        messages: Windows { cancels: Window::EMPTY, fills: Window::EMPTY },
        executions: Window::EMPTY,
        is_stopped: false,
        rate: Bucket::CLOSED,
    };

    /// Returns the node's profit; `None` while the value of a row is not known.
    pub(crate) const fn profit(&self) -> Option<i128> {
        if self.unknown == 0 { Some(self.sum.profit) } else { None }
    }

    /// Returns the sums; `None` while the value of a row is not known.
    pub(crate) fn totals(&self) -> Option<Totals> {
        let Worth { gross, net, reserved, margin, .. } = self.sum;
        Some(Totals { gross, net, open_value: reserved, margin, profit: self.profit()? })
    }

    /// Follows the highest profit; returns whether a loss begins to exceed its limit.
    pub(crate) fn watch_losses(&mut self) -> bool {
        let Some(profit) = self.profit() else { return false };
        self.peak = self.peak.max(profit);
        if self.room.is_there() {
            // Each loss is at most half of its limit.
            self.is_latched = false;
            return false;
        }
        let NodeLimits { daily_loss_max, drawdown_max, .. } = self.limits;
        let over = |from: i128, max: Option<i64>| max.is_some_and(|max| from - profit > max.into());
        let is_over = over(self.day_start, daily_loss_max) || over(self.peak, drawdown_max);
        !core::mem::replace(&mut self.is_latched, is_over) && is_over
    }

    /// Counts the day's loss from the present profit.
    pub(crate) fn start_day(&mut self) {
        self.day_start = self.profit().unwrap_or(self.day_start);
    }
}

crate::fields::visit!(
    RowLimits: qty_max, market_qty_max, notional_max, position_long_max, position_short_max, open_qty_max, open_orders_max
);
crate::fields::visit!(
    NodeLimits: gross_max, net_max, open_value_max, daily_loss_max, drawdown_max, checks_margin, leverage_max_pct,
    checks_balance, cancels_per_fill_max_pct, executions_stop
);
crate::fields::visit!(Windows: cancels, fills);
crate::fields::visit!(
    NodeState: limits, account, strategy, sum, room, unknown, day_start, peak, is_latched, is_touched, equity, messages,
    executions, is_stopped, rate
);
