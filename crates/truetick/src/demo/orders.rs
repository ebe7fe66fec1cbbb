//! Open orders of the strategy, and a simulated venue that fills or cancels them after a while.

use std::time::Duration;

use tt_model::{OrderIntent, Qty, Report, ReportKind, SplitMix64, Verdict};

/// An order stays open for at least this part of the longest time.
const OPEN_LEAST: u64 = 8;

/// Of 100 orders, the number filled at once and in two parts; the others are cancelled.
const FILLED: u64 = 50;
const FILLED_IN_PARTS: u64 = 15;

/// An open order and the time of its next report.
#[derive(Clone, Copy, Debug)]
struct OpenOrder {
    intent: OrderIntent,
    due_ns: u64,
    fills_left: u8,
    executed: i64,
}

/// Intents without a verdict, and open orders.
#[derive(Debug)]
pub(super) struct Orders {
    /// Longest time to the next report of an order.
    open_max: Duration,
    pending: Vec<OrderIntent>,
    open: Vec<OpenOrder>,
}

impl Orders {
    pub(super) const fn new(open_max: Duration) -> Self {
        Self { open_max, pending: Vec::new(), open: Vec::new() }
    }

    fn open_ns(&self, random: &mut SplitMix64) -> u64 {
        let most_ns = u64::try_from(self.open_max.as_nanos()).unwrap_or(u64::MAX);
        let least_ns = most_ns / OPEN_LEAST;
        least_ns + random.below((most_ns - least_ns).max(1))
    }

    /// Stores `intent` until its verdict comes.
    pub(super) fn add_sent(&mut self, intent: OrderIntent) {
        self.pending.push(intent);
    }

    /// Returns the intent of an accepting verdict; removes a rejected one.
    pub(super) fn take_accepted(&mut self, verdict: &Verdict) -> Option<OrderIntent> {
        let index = self.pending.iter().position(|intent| intent.client_id == verdict.client_id)?;
        let intent = self.pending.swap_remove(index);
        (verdict.accept == 1).then_some(intent)
    }

    /// Opens an order at the venue.
    pub(super) fn open(&mut self, intent: &OrderIntent, now_ns: u64, random: &mut SplitMix64) {
        let intent = *intent;
        let draw = random.below(100);
        let fills_left = match draw {
            _ if draw < FILLED => 1,
            _ if draw < FILLED + FILLED_IN_PARTS && intent.qty.0 > 1 => 2,
            _ => 0,
        };
        let due_ns = now_ns.saturating_add(self.open_ns(random));
        self.open.push(OpenOrder { intent, due_ns, fills_left, executed: 0 });
    }

    /// The venue takes a cancel: the order ends with its next report.
    pub(super) fn cancel(&mut self, cancel: &OrderIntent, now_ns: u64) {
        if let Some(order) = self.open.iter_mut().find(|order| order.intent.client_id == cancel.client_id) {
            (order.due_ns, order.fills_left) = (now_ns, 0);
        }
    }

    /// Returns the time of the next report.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.open.iter().map(|order| order.due_ns).min()
    }

    /// Returns a report that is due at `now_ns`.
    pub(super) fn poll_report(&mut self, now_ns: u64, random: &mut SplitMix64) -> Option<Report> {
        let index = self.open.iter().position(|order| order.due_ns <= now_ns)?;
        let next_ns = now_ns.saturating_add(self.open_ns(random));
        let order = &mut self.open[index];
        let OrderIntent { account, instrument, client_id, side, qty, limit_px, .. } = order.intent;
        let left = qty.0 - order.executed;
        let report = Report {
            side,
            account,
            instrument,
            client_id,
            executed: Qty(order.executed),
            order_qty: qty,
            limit_px,
            ..Report::default()
        };
        if order.fills_left == 0 {
            self.open.swap_remove(index);
            return Some(Report { kind: ReportKind::CANCELLED, ..report });
        }
        let part = if order.fills_left == 1 { left } else { left / 2 };
        order.executed += part;
        order.fills_left -= 1;
        order.due_ns = next_ns;
        let executed = order.executed;
        if order.fills_left == 0 {
            self.open.swap_remove(index);
        }
        // The order's first and second execution; no other execution of the order has the number.
        let execution_id = u128::from(executed.cast_unsigned());
        Some(Report {
            kind: ReportKind::FILL,
            execution_id,
            qty: Qty(part),
            px: limit_px,
            executed: Qty(executed),
            ..report
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_quantity_is_filled_or_cancelled() {
        let (mut orders, mut random) = (Orders::new(Duration::from_millis(2_500)), SplitMix64::new(7));
        let mut open = 0;
        for client_id in 0..1000 {
            let qty = Qty(1 + random.below(9).cast_signed());
            orders.add_sent(OrderIntent { client_id, qty, ..OrderIntent::default() });
            let accept = u8::from(client_id % 3 != 0);
            open += i64::from(accept) * qty.0;
            if let Some(intent) = orders.take_accepted(&Verdict { client_id, accept, ..Verdict::default() }) {
                orders.open(&intent, client_id, &mut random);
            }
        }
        while let Some(now_ns) = orders.poll_timeout() {
            let report = orders.poll_report(now_ns, &mut random).expect("a report is due");
            open -= match report.kind {
                ReportKind::FILL => report.qty.0,
                _ => report.order_qty.0 - report.executed.0,
            };
        }
        assert_eq!(open, 0);
        assert!(orders.pending.is_empty());
    }
}
