//! What the gate has published, as the control plane shows it.

use tt_market::Decimal;
use tt_model::{Breach, OrderSide};

use super::policy::{ACCOUNT_RATE, COLLAR_BPS};
use super::published::{Judgement, Published, Standing};
use super::{RING_SLOTS, Tradable};
use crate::http::snapshot::{Count, Ledger, LimitsRow, Ring, Risk, VerdictRow};
use crate::market::steps_text;
use crate::timing;

impl Published {
    /// Everything at one instant.
    #[must_use]
    pub fn snapshot(&self) -> Risk {
        // Popped is read first: nothing can be popped that was not pushed before.
        let tally = self.tally();
        let (pushed, full) = self.pushes();
        let timings = self.timings();
        let outcomes =
            vec![Count { name: "accepted", count: tally.accepted }, Count { name: "refused", count: tally.refused }];
        let reasons = Breach::NAMES.iter().zip(tally.reasons).map(|(&(name, _), count)| Count { name, count });
        Risk {
            ledger: Ledger::new("intents", tally.intents, outcomes, Vec::new()),
            stages: timing::stages(&timings.stages, 1),
            journey: timing::ns_quantiles(&timings.journey),
            ring: Ring { capacity: RING_SLOTS as u64, pushed, popped: tally.intents, full },
            reasons: reasons.collect(),
            verdicts: self.judgements().iter().filter_map(|judgement| self.verdict_row(judgement)).collect(),
            limits: self.standings().map(|(tradable, standing)| limits_row(tradable, &standing)).collect(),
        }
    }

    fn verdict_row(&self, judgement: &Judgement) -> Option<VerdictRow> {
        let tradable = self.tradables.iter().find(|tradable| tradable.instrument == judgement.instrument)?;
        Some(VerdictRow {
            seq: judgement.seq,
            at_unix_ms: judgement.at_ns / 1_000_000,
            symbol: tradable.symbol.clone(),
            venue: tradable.venue,
            side: match judgement.side {
                OrderSide::Buy => "buy",
                OrderSide::Sell => "sell",
            },
            px: steps_text(judgement.px.0, tradable.tick_size),
            qty: steps_text(judgement.qty.0, tradable.lot_size),
            accept: judgement.is_accepted,
            reasons: judgement.reasons.names().collect(),
            journey_ns: judgement.journey_ns,
        })
    }
}

fn limits_row(tradable: &Tradable, standing: &Standing) -> LimitsRow {
    let lots = |lots: i64| steps_text(lots, tradable.lot_size);
    let notional = i64::try_from(standing.notional_max).unwrap_or(i64::MAX);
    LimitsRow {
        symbol: tradable.symbol.clone(),
        venue: tradable.venue,
        position: lots(standing.position),
        position_max: lots(standing.position_max),
        open_orders: standing.open_orders,
        open_orders_max: standing.open_orders_max,
        qty_max: lots(standing.qty_max),
        notional_max: steps_text(notional, size_of_notional(tradable)),
        collar_bps: COLLAR_BPS,
        rate_per_s: ACCOUNT_RATE.per_second,
    }
}

/// The step of a price times a quantity.
fn size_of_notional(tradable: &Tradable) -> Decimal {
    let Tradable { tick_size, lot_size, .. } = tradable;
    Decimal::new(tick_size.mantissa.saturating_mul(lot_size.mantissa), tick_size.decimals + lot_size.decimals)
}
