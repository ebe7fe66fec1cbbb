//! The market engine as the control plane shows it.

use tt_market::DropReason;
use tt_market::board::TradePrint;
use tt_market::counters::VenueCounters;
use tt_meter::{Calibration, Histogram};
use tt_model::{Decimal, Nanos, Price};
use tt_venue::BookLevel;
use tt_venue::event::{AggressorSide, UnderlyingHours};
use tt_venue::listing::OptionRight;

use super::arrivals::SilentTopic;
use super::format::level_text;
use super::frame_timings::{Row, Times};
use super::instruments::Instrument;
use super::reader::Reader;
use super::runner::TIMEFRAMES;
use super::topics::Refusal;
use super::updates;
use tt_status::accounting::{Accounting, Count, Quantiles};
use tt_status::decimal_text::steps_text;
use tt_status::market::{
    Account, Book, Candle, Derivative, Feed, IngestRow, Level, Liquidation, MarketHours, MarketStatus, Refused, Terms,
    Trade,
};
use tt_status::timing;

/// What several readers show together; each comes with the number of its first instrument.
pub(super) fn merged(readers: &[(u32, Reader)], now: Nanos, one_in: u32) -> MarketStatus {
    let calibration = tt_os::clock::calibration();
    let (mut times, mut counters, mut feeds, mut books) = (Times::default(), Vec::new(), Vec::new(), Vec::new());
    for (first, reader) in readers {
        times.merge(&reader.times());
        for feed in 0..reader.feeds_len() {
            let of_feed = reader.counters(feed);
            feeds.push(reader.feed_shown(feed, &of_feed));
            counters.push(of_feed);
        }
        let rows = |list: &[Instrument]| {
            let followed = list.iter().filter(|listed| reader.is_followed(listed.id));
            followed.map(|listed| reader.book_row(listed, now)).collect::<Vec<_>>()
        };
        let rows = reader.consistent(rows).into_iter();
        books.extend(rows.map(|book| Book { instrument: first + book.instrument, ..book }));
    }
    MarketStatus {
        ledger: accounting(&counters),
        stages: timing::stages(&times.stages, one_in, calibration),
        feeds,
        books,
        ingest: ingest_rows(&times, calibration),
    }
}

impl Reader {
    /// Everything at `now` (nanoseconds of the Unix epoch), with a pass in `one_in` having been timed.
    #[must_use]
    pub fn snapshot(&self, now: Nanos, one_in: u32) -> MarketStatus {
        merged(&[(0, self.clone())], now, one_in)
    }

    fn feed_shown(&self, index: usize, counters: &VenueCounters) -> Feed {
        let (venue, url) = self.feed(index);
        let status = self.status(index);
        Feed {
            venue: venue.name(),
            url: url.to_owned(),
            connected: status.connected,
            frames: counters.frames,
            gaps: counters.gaps,
            resyncs: counters.resyncs,
            reconnects: status.reconnects(),
            planned_reconnects: status.planned_reconnects,
            silent_topics: status.silent_topics.iter().map(silent_topic).collect(),
            sessions: status.sessions.iter().map(session).collect(),
            refused: status.refusals.into_iter().map(refused).collect(),
            snapshot_matches: counters.snapshot_matches,
            snapshot_mismatches: counters.snapshot_mismatches,
            differences: status.differences,
            incidents: status.incidents,
            account: account_counts(counters),
        }
    }

    fn book_row(&self, listed: &Instrument, now: Nanos) -> Book {
        let top = self.top_of_book(listed.id).unwrap_or_default();
        let depth = self.depth(listed.id).unwrap_or_default();
        let text = |levels: &[BookLevel]| {
            let level = |level: &BookLevel| {
                let (px, qty) = level_text(*level, listed.tick_size, listed.lot_size);
                Level { px, qty }
            };
            levels.iter().map(level).collect()
        };
        let spread_bps = top.bid.zip(top.ask).map(|(bid, ask)| {
            let (bid, ask) = (bid.px.0 as f64, ask.px.0 as f64);
            (ask - bid) / ((ask + bid) / 2.0) * 1e4
        });
        let ms = |age: Nanos| age.0 as f64 / 1e6;
        let known = top.ts_recv.0 != 0;
        Book {
            instrument: listed.id.0,
            venue: listed.venue.name(),
            symbol: listed.name.clone(),
            bids: text(depth.bids()),
            asks: text(depth.asks()),
            spread_bps,
            update_id: top.update_id,
            proof: top.status.proof.name(),
            proof_update_id: top.proof_update_id().unwrap_or(0),
            proof_age_ms: top.proof_update_id().map(|_| ms(top.proof_age(now))),
            venue_symbol: listed.symbol.clone(),
            tick_size: steps_text(1, listed.tick_size),
            lot_size: steps_text(1, listed.lot_size),
            terms: terms(listed),
            candles: self.candles_shown(listed),
            trades: self.trades_shown(listed),
            ts_event: nanos(depth.ts_event),
            ts_recv: nanos(top.ts_recv),
            derivative: self.derivative(listed),
            kind: self.book_kind(listed),
            known_levels: self.snapshot_levels(listed).filter(|_| top.status.is_limited),
            age_ms: known.then(|| ms(now.saturating_sub(top.ts_recv))),
        }
    }
}

impl Reader {
    /// What the venue sends of a contract; mark price and the rest come apart, and either may have an index price.
    fn derivative(&self, listed: &Instrument) -> Option<Derivative> {
        let (board, local) = self.board(listed.id)?;
        let (mark, contract) = (board.mark_price(local), board.contract(local));
        let liquidation = board.liquidation(local);
        if mark.is_none() && contract.is_none() && liquidation.is_none() {
            return None;
        }
        let (of_mark, of_contract) = (mark.unwrap_or_default(), contract.unwrap_or_default());
        let text = |value: Decimal| value.to_string();
        let index_px = (of_mark.index_px.mantissa != 0).then_some(of_mark.index_px).or(of_contract.index_px);
        let next_funding = of_mark.ts_next_funding.max(of_contract.ts_next_funding);
        let newest = liquidation.map_or(Nanos(0), |last| last.ts_recv).max(of_mark.ts_recv).max(of_contract.ts_recv);
        Some(Derivative {
            mark_px: mark.map(|mark| text(mark.mark_px)),
            index_px: index_px.map(text),
            funding_rate: of_mark.funding_rate.or(of_contract.funding_rate).map(text),
            next_funding_unix_ms: nanos(next_funding).map(|at| at / 1_000_000),
            open_interest: of_contract.open_interest.map(text),
            ts_event: nanos(of_mark.ts_event),
            ts_recv: nanos(newest),
            liquidation: liquidation.map(|last| Liquidation {
                number: last.count,
                side: side(last.side),
                px: text(last.px),
                qty: text(last.qty),
                ts_event: last.ts_event.0,
                ts_recv: last.ts_recv.0,
            }),
        })
    }

    fn trades_shown(&self, listed: &Instrument) -> Vec<Trade> {
        let shown = |print: TradePrint| Trade {
            number: print.number,
            trade_id: print.trade_id,
            px: steps_text(print.px.0, listed.tick_size),
            qty: steps_text(print.qty.0, listed.lot_size),
            aggressor: side(print.aggressor),
            is_late: print.is_late,
            is_history: print.is_history,
            event_unix_ns: print.ts_event.0,
            recv_unix_ns: print.ts_recv.0,
        };
        self.trades(listed.id).into_iter().map(shown).collect()
    }

    fn candles_shown(&self, listed: &Instrument) -> Vec<Candle> {
        let Some((board, local)) = self.board(listed.id) else { return Vec::new() };
        let shown = |(index, timeframe): (usize, Nanos)| {
            let candle = board.candle(local, index)?;
            let px = |px: Price| steps_text(px.0, listed.tick_size);
            Some(Candle {
                timeframe_s: timeframe.0 / Nanos::PER_SECOND,
                start_unix_ms: candle.ts_start.0 / 1_000_000,
                open: px(candle.open_px),
                high: px(candle.high_px),
                low: px(candle.low_px),
                close: px(candle.close_px),
                volume: steps_text(candle.volume.0, listed.lot_size),
                trades: candle.updates,
            })
        };
        TIMEFRAMES.into_iter().enumerate().filter(|(_, timeframe)| timeframe.0 > 0).filter_map(shown).collect()
    }
}

/// Nanoseconds of the Unix epoch; `None` for none.
fn nanos(at: Nanos) -> Option<u64> {
    (at.0 != 0).then_some(at.0)
}

const fn side(of: AggressorSide) -> &'static str {
    match of {
        AggressorSide::Buy => "buy",
        AggressorSide::Sell => "sell",
    }
}

fn silent_topic(silent: &SilentTopic) -> tt_status::market::SilentTopic {
    tt_status::market::SilentTopic { symbol: silent.symbol.clone(), topic: silent.topic }
}

fn session(shown: &UnderlyingHours) -> MarketHours {
    MarketHours { market: shown.market.name(), session: shown.session.name() }
}

fn refused(refusal: Refusal) -> Refused {
    Refused { subject: refusal.subject, reason: refusal.reason }
}

fn terms(listed: &Instrument) -> Terms {
    let of = &listed.terms;
    Terms {
        kind: of.kind.name(),
        expiry_unix_ms: of.expiry.map(|expiry| expiry.0 / 1_000_000),
        strike: of.strike.map(|strike| strike.to_string()),
        right: of.right.map(OptionRight::name),
        status: of.status.name(),
        contract: Some(updates::contract(listed.unit)),
    }
}

/// Counts of an account's messages.
#[must_use]
pub const fn account_counts(counters: &VenueCounters) -> Account {
    let VenueCounters { order_updates, executions, balances, positions, .. } = *counters;
    Account { order_updates, executions, balances, positions }
}

/// Frames of all feeds: what was applied, and why the others were dropped.
fn accounting(counters: &[VenueCounters]) -> Accounting {
    let sum = |of: &dyn Fn(&VenueCounters) -> u64| counters.iter().map(of).sum::<u64>();
    let drops = DropReason::ALL
        .into_iter()
        .map(|fault| Count { name: fault.name(), count: sum(&|venue| venue.dropped(fault)) })
        .filter(|drop| drop.count > 0)
        .collect();
    let applied = Count { name: "applied", count: sum(&|venue| venue.applied) };
    Accounting::new("frames", sum(&|venue| venue.frames), vec![applied], drops)
}

/// The rows of the published result, from live traffic.
#[must_use]
pub fn ingest_rows(times: &Times, calibration: &Calibration) -> Vec<IngestRow> {
    let row = |row: Row| IngestRow { name: row.name(), quantiles: quantiles(&times.rows[row as usize], calibration) };
    Row::ALL.into_iter().map(row).collect()
}

/// The distribution in nanoseconds; `None` without a sample.
fn quantiles(cycles: &Histogram, calibration: &Calibration) -> Option<Quantiles> {
    let ns = |cycles: u64| calibration.scale.ns(cycles);
    let at = |per_million: u32| cycles.quantile(per_million, 1).map(ns);
    Some(Quantiles {
        n: cycles.count(),
        mean_ns: calibration.scale.ns_f64(cycles.sum() as f64 / cycles.count().max(1) as f64),
        min_ns: ns(cycles.min()?),
        p50_ns: ns(cycles.quantile(500_000, 0)?),
        p95_ns: at(950_000),
        p99_ns: at(990_000),
        p999_ns: at(999_000),
        max_ns: ns(cycles.max()?),
    })
}
