//! The way between the venue and the process, with its faults.

use tt_model::{OrderIntent, OrderSide, Price, Qty, Report, ReportKind};

use super::script::Fate;
use super::world::{Event, MS, World};
use crate::draw::Draw;

impl World<'_> {
    pub(super) fn venue_acts(&mut self, is_whim: bool, draw: &mut Draw) {
        let open: Vec<usize> = (0..self.venue.orders.len()).filter(|index| self.venue.orders[*index].is_open).collect();
        if open.is_empty() {
            return;
        }
        let first = self.venue.sent.len();
        let index = draw.pick(&open);
        if is_whim {
            self.venue.whim(index, draw)
        } else {
            self.venue.trade(index, draw)
        }
        self.dispatch(first);
    }

    pub(super) fn enter_by_hand(&mut self, draw: &mut Draw) {
        let first = self.venue.sent.len();
        let row = (draw.below(self.setup().accounts.into()) as u16, draw.below(self.setup().instruments.into()) as u32);
        self.venue.enter_by_hand(row, draw);
        self.dispatch(first);
    }

    pub(super) fn arrive(&mut self, intent: &OrderIntent) {
        self.wire.under_way.remove(&(intent.account, intent.client_id, intent.seq));
        let (first, mut draw) = (self.venue.sent.len(), self.luck());
        self.venue.receive(intent, &mut draw);
        self.dispatch(first);
    }

    /// Sends the venue's new reports on their way.
    fn dispatch(&mut self, first: usize) {
        for index in first..self.venue.sent.len() {
            let mut draw = self.luck();
            let latency = draw.between(100_000, 2 * MS);
            let fate = if self.is_calm { None } else { self.fates.pop_front() };
            let report = self.venue.sent[index].report;
            match fate {
                Some(Fate::Lose) => self.later(draw.between(20, 60) * MS, Event::Deliver(index)),
                Some(Fate::Delay) => self.later(draw.between(3, 40) * MS, Event::Deliver(index)),
                _ => self.later(latency, Event::Deliver(index)),
            }
            match fate {
                Some(Fate::Double) => self.later(latency + draw.below(9 * MS), Event::Deliver(index)),
                Some(Fate::Contradict) if report.kind == ReportKind::FILL => {
                    let other = Report { qty: Qty(report.qty.0 + 1), ..report };
                    self.later(latency + draw.between(1, 9 * MS), Event::Forgery(index, other));
                }
                Some(Fate::Malform) if report.kind == ReportKind::FILL => {
                    self.later(latency - 50_000, Event::Forgery(index, malformed(report, &mut draw)));
                }
                _ => {}
            }
        }
    }

    pub(super) fn deliver(&mut self, index: usize) {
        if self.host.is_some() {
            let report = self.venue.sent[index].report;
            self.rings.reports.push_back((Some(index), report));
            self.later(20_000, Event::Gate);
        }
    }

    /// A copy with other content comes only after the original, an impossible one only where it is impossible.
    pub(super) fn forge(&mut self, index: usize, report: Report) {
        let Some(host) = &self.host else { return };
        let held = host.gate.gate().exposure(report.account, report.instrument).unwrap_or_default();
        let sign = if report.side == OrderSide::Buy { 1 } else { -1 };
        let is_beyond = report.qty.0 == 1 << 61 && held.position.0 * sign > 0;
        let may_be_negative = self.limits().settings.instruments[report.instrument.0 as usize].may_be_negative;
        let is_impossible = (report.px.0 < 0 && !may_be_negative) || report.qty.0 == 0 || is_beyond;
        let contradicts = report.qty.0 < 1 << 61 && report.px.0 > 0 && self.venue.sent[index].is_applied;
        if is_impossible || contradicts {
            self.apply(None, &report);
        }
    }
}

/// An execution that cannot be.
fn malformed(report: Report, draw: &mut Draw) -> Report {
    match draw.below(3) {
        0 => Report { qty: Qty(0), ..report },
        1 => Report { px: Price(-1), ..report },
        _ => Report { qty: Qty(1 << 61), px: Price(1), ..report },
    }
}
