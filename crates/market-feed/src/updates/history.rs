//! Candles of the past, built from trades.

use std::collections::VecDeque;

use tt_market::board::TradePrint;
use tt_model::{Decimal, Nanos};
use tt_status::decimal_text::steps_text;
use tt_status::market_streams::{CandleHistory, CandleQuestion, HistoryCandle, HistoryGap};

use crate::CandlesKept;

/// Gaps that are kept. What is known begins after the last one that is not.
const GAPS_MAX: usize = 1_000;

/// The trades of a second, a minute, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bar {
    start_s: u64,
    open: i64,
    high: i64,
    low: i64,
    close: i64,
    volume: i128,
    trades: u64,
}

impl Bar {
    /// Adds what came after it; of a bar of the past only high, low, volume and count are certain.
    fn add(&mut self, later: &Self) {
        self.high = self.high.max(later.high);
        self.low = self.low.min(later.low);
        self.volume += later.volume;
        self.trades += later.trades;
    }
}

/// Bars of one length, oldest first, without empty ones.
#[derive(Debug)]
struct Bars {
    length_s: u64,
    len_max: usize,
    bars: VecDeque<Bar>,
    /// Bars before this second were dropped.
    first_s: u64,
}

impl Bars {
    const fn new(length_s: u64, len_max: usize) -> Self {
        Self { length_s, len_max, bars: VecDeque::new(), first_s: 0 }
    }

    /// Adds a trade; returns whether a bar before the newest one has changed.
    fn add(&mut self, trade: Bar, is_late: bool) -> bool {
        let bar = Bar { start_s: trade.start_s / self.length_s * self.length_s, ..trade };
        if bar.start_s < self.first_s {
            return false;
        }
        let is_of_past = self.bars.back().is_some_and(|newest| bar.start_s < newest.start_s);
        match self.bars.binary_search_by_key(&bar.start_s, |known| known.start_s) {
            Ok(at) => {
                let is_newest = at + 1 == self.bars.len();
                let known = &mut self.bars[at];
                known.add(&bar);
                if is_newest && !is_late {
                    known.close = bar.close;
                }
            }
            Err(at) => self.bars.insert(at, bar),
        }
        if self.bars.len() > self.len_max
            && let Some(oldest) = self.bars.pop_front()
        {
            self.first_s = oldest.start_s + self.length_s;
        }
        is_of_past
    }
}

/// The past of one instrument.
#[derive(Debug)]
pub(super) struct History {
    seconds: Bars,
    minutes: Bars,
    /// The instrument is followed since then; zero before.
    since: Nanos,
    /// Times in which trades may be missing; the last one may be open, which is an end of zero.
    gaps: VecDeque<(Nanos, Nanos)>,
    /// When the instrument was last heard of.
    heard: Nanos,
    /// Changes of what was known before: gaps, and trades that came late.
    revision: u64,
}

impl History {
    pub(super) fn new(kept: CandlesKept) -> Self {
        let (seconds, minutes) = (Bars::new(1, kept.seconds), Bars::new(60, kept.minutes));
        Self { seconds, minutes, since: Nanos(0), gaps: VecDeque::new(), heard: Nanos(0), revision: 0 }
    }

    /// Forgets everything.
    pub(super) fn begin_again(&mut self) {
        *self = Self::new(CandlesKept { seconds: self.seconds.len_max, minutes: self.minutes.len_max });
    }

    /// Takes note that the instrument is followed at `now`, or that it is not: trades may be missing until it is.
    pub(super) fn hear(&mut self, now: Nanos, is_followed: bool) {
        if now.0 == 0 {
            return;
        }
        let is_open = self.gaps.back().is_some_and(|gap| gap.1.0 == 0);
        match (is_followed, is_open) {
            (true, true) => {
                self.gaps.back_mut().into_iter().for_each(|gap| gap.1 = now);
                self.revision += 1;
            }
            (false, false) if self.since.0 != 0 => self.add_gap(self.heard, Nanos(0)),
            (true, false) | (false, _) => {}
        }
        if is_followed && self.since.0 == 0 {
            self.since = now;
            self.revision += 1;
        }
        self.heard = now;
    }

    fn add_gap(&mut self, from: Nanos, to: Nanos) {
        if self.gaps.len() == GAPS_MAX
            && let Some((_, end)) = self.gaps.pop_front()
        {
            self.since = self.since.max(end);
        }
        self.gaps.push_back((from, to));
        self.revision += 1;
    }

    /// Takes a trade, before which `lost` others are missing.
    pub(super) fn take(&mut self, print: &TradePrint, lost: u64) {
        if lost > 0 {
            self.add_gap(self.heard, print.ts_recv);
        }
        let at = if print.ts_event.0 == 0 { print.ts_recv } else { print.ts_event };
        // What a venue repeats of the time before is not all of that time.
        if !print.is_history || (self.since.0 != 0 && at >= self.since) {
            let (px, volume) = (print.px.0, i128::from(print.qty.0));
            let start_s = at.0 / Nanos::PER_SECOND;
            let bar = Bar { start_s, open: px, high: px, low: px, close: px, volume, trades: 1 };
            let is_of_past = self.seconds.add(bar, print.is_late) | self.minutes.add(bar, print.is_late);
            self.revision += u64::from(is_of_past);
        }
        self.heard = self.heard.max(print.ts_recv);
    }

    /// Answers a question, in the instrument's steps, as it is at `now`.
    pub(super) fn answer(&self, asked: &CandleQuestion, [tick, lot]: [Decimal; 2], now: Nanos) -> CandleHistory {
        let length = asked.timeframe_s.max(1);
        let bars = if length.is_multiple_of(60) { &self.minutes } else { &self.seconds };
        let mut found: VecDeque<Bar> = VecDeque::new();
        for bar in bars.bars.iter().rev() {
            let start_s = bar.start_s / length * length;
            if asked.to_s.is_some_and(|to| start_s >= to) {
                continue;
            }
            if asked.from_s.is_some_and(|from| start_s < from) {
                break;
            }
            let is_full = found.len() == asked.limit;
            match found.front_mut() {
                // Earlier than what is there: its first price is the open one.
                Some(later) if later.start_s == start_s => {
                    later.add(bar);
                    later.open = bar.open;
                }
                Some(_) if is_full => break,
                Some(_) | None => found.push_front(Bar { start_s, ..*bar }),
            }
        }
        let since = self.since.max(Nanos(bars.first_s * Nanos::PER_SECOND));
        let is_whole = |start_s: u64| {
            let (start, end) = (start_s * Nanos::PER_SECOND, (start_s + length) * Nanos::PER_SECOND);
            let is_cut = |gap: &(Nanos, Nanos)| gap.0.0 < end && (gap.1.0 == 0 || gap.1.0 > start);
            since.0 != 0 && since.0 <= start && end <= now.0 && !self.gaps.iter().any(is_cut)
        };
        let volume = |volume: i128| steps_text(i64::try_from(volume).unwrap_or(i64::MAX), lot);
        let shown = |bar: &Bar| HistoryCandle {
            start_unix_ms: bar.start_s * 1000,
            open: steps_text(bar.open, tick),
            high: steps_text(bar.high, tick),
            low: steps_text(bar.low, tick),
            close: steps_text(bar.close, tick),
            volume: volume(bar.volume),
            trades: bar.trades,
            is_whole: is_whole(bar.start_s),
        };
        let ms = |at: Nanos| (at.0 != 0).then_some(at.0 / 1_000_000);
        let gap = |gap: &(Nanos, Nanos)| HistoryGap { from_unix_ms: gap.0.0 / 1_000_000, to_unix_ms: ms(gap.1) };
        CandleHistory {
            timeframe_s: length,
            known_since_unix_ms: ms(since),
            gaps: self.gaps.iter().map(gap).collect(),
            candles: found.iter().map(shown).collect(),
            revision: self.revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use tt_model::{Price, Qty};
    use tt_venue::event::AggressorSide;

    use super::*;

    fn trade(at_ms: u64, px: i64, qty: i64) -> TradePrint {
        let at = Nanos::from_millis(at_ms);
        TradePrint {
            number: 0,
            trade_id: 0,
            px: Price(px),
            qty: Qty(qty),
            aggressor: AggressorSide::Buy,
            is_late: false,
            is_history: false,
            ts_event: at,
            ts_recv: at,
        }
    }

    fn ask(history: &History, timeframe_s: u64, from_s: Option<u64>, to_s: Option<u64>, limit: usize) -> CandleHistory {
        let asked = CandleQuestion { timeframe_s, from_s, to_s, limit };
        history.answer(&asked, [Decimal::new(1, 1), Decimal::new(1, 0)], Nanos::from_secs(1_000))
    }

    fn rows(answer: &CandleHistory) -> Vec<(u64, [&str; 5], u64, bool)> {
        answer
            .candles
            .iter()
            .map(|candle| {
                let texts = [&candle.open, &candle.high, &candle.low, &candle.close, &candle.volume];
                (candle.start_unix_ms / 1000, texts.map(String::as_str), candle.trades, candle.is_whole)
            })
            .collect()
    }

    #[test]
    fn candles_of_any_timeframe_follow_from_trades() {
        let mut history = History::new(CandlesKept::default());
        history.hear(Nanos::from_secs(60), true);
        for (at_ms, px, qty) in [(61_000, 10, 1), (61_999, 13, 2), (64_000, 9, 3), (119_000, 11, 4), (121_500, 12, 5)] {
            history.take(&trade(at_ms, px, qty), 0);
        }
        let seconds = ask(&history, 1, None, None, 100);
        assert_eq!(rows(&seconds)[0], (61, ["1.0", "1.3", "1.0", "1.3", "3"], 2, true));
        assert_eq!(seconds.candles.len(), 4);
        let fives = ask(&history, 5, None, None, 100);
        assert_eq!(rows(&fives)[0], (60, ["1.0", "1.3", "0.9", "0.9", "6"], 3, true));
        let minutes = ask(&history, 60, None, None, 100);
        let first = (60, ["1.0", "1.3", "0.9", "1.1", "10"], 4, true);
        let second = (120, ["1.2", "1.2", "1.2", "1.2", "5"], 1, true);
        assert_eq!(rows(&minutes), [first, second]);
        assert_eq!(rows(&ask(&history, 60, Some(120), None, 100)), [second]);
        assert_eq!(rows(&ask(&history, 60, None, Some(120), 100)), [first]);
        assert_eq!(rows(&ask(&history, 60, None, None, 1)), [second], "the newest");
        let two = ask(&history, 120, None, None, 100);
        assert_eq!(rows(&two)[0].1, ["1.0", "1.3", "0.9", "1.1", "10"]);
        assert_eq!((rows(&two)[0].3, rows(&two)[1].3), (false, true), "it began before anything was known");
        // One that came late changes neither the first price nor the last.
        history.take(&trade(61_500, 20, 1), 0);
        assert_eq!(rows(&ask(&history, 1, None, Some(62), 1))[0].1, ["1.0", "2.0", "1.0", "1.3", "4"]);
    }

    #[test]
    fn no_more_is_kept_than_was_asked_for_also_after_a_new_beginning() {
        let mut history = History::new(CandlesKept { seconds: 3, minutes: 2 });
        for _ in 0..2 {
            history.hear(Nanos::from_secs(1), true);
            (0..10).for_each(|step| history.take(&trade(1_000 + step * 30_000, 10, 1), 0));
            let starts = |timeframe_s| -> Vec<u64> {
                rows(&ask(&history, timeframe_s, None, None, 100)).iter().map(|row| row.0).collect()
            };
            assert_eq!((starts(1), starts(60)), (vec![211, 241, 271], vec![180, 240]));
            history.begin_again();
        }
    }

    #[test]
    fn gaps_and_the_time_before_are_named() {
        let mut history = History::new(CandlesKept::default());
        let before = TradePrint { is_history: true, ..trade(50_000, 5, 5) };
        history.take(&before, 0);
        assert_eq!(ask(&history, 1, None, None, 10).known_since_unix_ms, None);
        history.hear(Nanos::from_secs(60), true);
        history.take(&before, 0);
        history.take(&trade(61_000, 10, 1), 0);
        history.hear(Nanos::from_millis(62_000), true);
        history.hear(Nanos::from_millis(70_000), false);
        history.hear(Nanos::from_millis(71_000), false);
        let open = ask(&history, 1, None, None, 10);
        assert_eq!(open.gaps, [HistoryGap { from_unix_ms: 62_000, to_unix_ms: None }]);
        history.hear(Nanos::from_millis(80_000), true);
        // The venue repeats what was missed.
        history.take(&TradePrint { is_history: true, ..trade(75_000, 11, 2) }, 0);
        history.take(&trade(90_000, 10, 1), 3);
        let answer = ask(&history, 1, None, None, 10);
        assert_eq!(answer.known_since_unix_ms, Some(60_000));
        let gap = |from_unix_ms, to| HistoryGap { from_unix_ms, to_unix_ms: Some(to) };
        assert_eq!(answer.gaps, [gap(62_000, 80_000), gap(80_000, 90_000)]);
        let whole: Vec<(u64, bool)> = rows(&answer).iter().map(|row| (row.0, row.3)).collect();
        assert_eq!(whole, [(61, true), (75, false), (90, true)]);
    }

    #[test]
    fn the_past_is_bounded_and_says_where_it_begins() {
        let mut history = History::new(CandlesKept::default());
        history.hear(Nanos::from_secs(1), true);
        const SECONDS: usize = 14_400;
        let last = SECONDS as u64 + 100;
        for second in 1..=last {
            history.take(&trade(second * 1000, 1, 1), 0);
        }
        let seconds = ask(&history, 1, None, None, usize::MAX);
        assert_eq!(seconds.candles.len(), SECONDS);
        assert_eq!(seconds.known_since_unix_ms, Some((last - SECONDS as u64 + 1) * 1000));
        assert_eq!(ask(&history, 60, None, None, usize::MAX).known_since_unix_ms, Some(1000));
    }
}
