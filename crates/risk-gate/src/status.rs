//! The gate's status for HTTP.

use tt_model::{Breach, Decimal, InstrumentId, OrderSide};
use tt_risk::tree::Node;
use tt_status::accounting::{Accounting, Count};
use tt_status::decimal_text::steps_text;
use tt_status::risk::{LevelRow, LimitsRow, Ring, RiskStatus, VerdictRow};
use tt_status::timing;

use crate::board::{AccountStatus, Board, BoardRow, Judgement};
use crate::levels::LevelStatus;

impl Board {
    /// Returns the gate's status.
    #[must_use]
    pub fn status(&self) -> RiskStatus {
        // Read the popped count first: it must not exceed the pushed count.
        let tally = self.tally();
        let (pushed, full) = self.pushes();
        let timings = self.timings();
        let outcomes =
            vec![Count { name: "accepted", count: tally.accepted }, Count { name: "rejected", count: tally.rejected }];
        let reasons = Breach::NAMES.iter().zip(tally.reasons).map(|(&(name, _), count)| Count { name, count });
        RiskStatus {
            ledger: Accounting::new("intents", tally.intents, outcomes, Vec::new()),
            stages: timing::stages(&timings.stages, self.sample_one_in, tt_os::clock::calibration()),
            journey: timing::ns_quantiles(&timings.journey),
            ring: Ring { capacity: self.ring_slots as u64, pushed, popped: tally.intents, full },
            reasons: reasons.collect(),
            verdicts: self.judgements().iter().filter_map(|judgement| self.verdict_row(judgement)).collect(),
            levels: self.levels.statuses().filter_map(|(node, id, status)| self.level_row(node, id, &status)).collect(),
            limits: self.account_statuses().map(|(row, status)| limits_row(row, &status)).collect(),
        }
    }

    /// An account has its row among the limits.
    fn level_row(&self, node: Node, instrument: InstrumentId, status: &LevelStatus) -> Option<LevelRow> {
        let row = self.rows.iter().find(|row| row.instrument == instrument)?;
        let (level, account, strategy) = match node {
            Node::Firm => ("firm", None, None),
            Node::Account(_) => return None,
            Node::Strategy { account, strategy } => ("strategy", Some(account), Some(strategy)),
        };
        let lots = |lots: i64| steps_text(lots, row.lot_size);
        Some(LevelRow {
            level,
            account,
            strategy,
            symbol: row.symbol.clone(),
            venue: row.venue,
            position: lots(status.position),
            position_long_max: lots(status.position_long_max),
            position_short_max: lots(status.position_short_max),
            open_orders: status.open_orders,
            open_orders_max: status.open_orders_max,
        })
    }

    fn verdict_row(&self, judgement: &Judgement) -> Option<VerdictRow> {
        let row = self.rows.iter().find(|row| row.instrument == judgement.instrument)?;
        Some(VerdictRow {
            seq: judgement.seq,
            at_unix_ms: judgement.at_ns / 1_000_000,
            account: judgement.account,
            symbol: row.symbol.clone(),
            venue: row.venue,
            side: match judgement.side {
                OrderSide::Buy => "buy",
                OrderSide::Sell => "sell",
            },
            px: steps_text(judgement.px.0, row.tick_size),
            qty: steps_text(judgement.qty.0, row.lot_size),
            accept: judgement.is_accepted,
            reasons: judgement.reasons.names().collect(),
            journey_ns: judgement.journey_ns,
            book_update_id: (judgement.book_ns > 0).then_some(judgement.book_update_id),
            book_age_us: (judgement.book_ns > 0).then(|| judgement.at_ns.saturating_sub(judgement.book_ns) / 1_000),
        })
    }
}

fn limits_row(row: &BoardRow, status: &AccountStatus) -> LimitsRow {
    let lots = |lots: i64| steps_text(lots, row.lot_size);
    let notional = i64::try_from(status.notional_max).unwrap_or(i64::MAX);
    LimitsRow {
        account: row.account,
        symbol: row.symbol.clone(),
        venue: row.venue,
        position: lots(status.position),
        position_long_max: lots(status.position_long_max),
        position_short_max: lots(status.position_short_max),
        open_orders: status.open_orders,
        open_orders_max: status.open_orders_max,
        open_qty_max: lots(status.open_qty_max),
        qty_max: lots(status.qty_max),
        notional_max: steps_text(notional, notional_step(row)),
        collar_bps: row.collar_bps,
        rate_per_s: row.rate_per_s,
    }
}

/// Returns the step of price times quantity.
fn notional_step(row: &BoardRow) -> Decimal {
    let BoardRow { tick_size, lot_size, .. } = row;
    Decimal::new(tick_size.mantissa.saturating_mul(lot_size.mantissa), tick_size.decimals + lot_size.decimals)
}
