//! What an intent deserves.

use super::{
    history::Oracle,
    life::{Fact, Life, Sum},
    nodes::dearest,
    settings::{ContractSettings, InstrumentSettings, Quote, RowSettings},
};
use tt_model::{Breach, IntentFlags, IntentKind, OrderIntent, OrderSide};

/// A millisecond: the clocks' difference.
pub(super) const SKEW_NS: i128 = 1_000_000;

/// What the oracle says of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// Every reason.
    pub reasons: Breach,
    /// Whether it passes.
    pub accept: bool,
    /// The worst position after it.
    pub worst: i128,
    /// The notes' bits.
    pub notes: u8,
    /// The level of the first rejecting reason: firm, account, strategy, instrument from 1; 0 for none.
    pub level: u8,
}

/// A list of reasons, those of each level, and notes.
#[derive(Default)]
pub(super) struct Found(pub(super) u64, pub(super) [u64; 4], pub(super) u8);

impl Found {
    pub(super) fn when(&mut self, is_found: bool, reason: Breach) {
        if is_found {
            self.0 |= reason.0;
        }
    }

    pub(super) fn at(&mut self, level: usize, is_found: bool, reason: Breach) {
        self.when(is_found, reason);
        if is_found {
            self.1[level] |= reason.0;
        }
    }

    /// More than `max` is a breach, most of it a note.
    pub(super) fn limit(&mut self, level: usize, value: i128, max: i128, reason: Breach) {
        self.at(level, value > max, reason);
        for (pct, note) in [(70, 4), (90, 8)] {
            if value > 0 && value * 100 >= max * pct {
                self.2 |= note;
            }
        }
    }
}

/// Prices at which an order is looked at.
pub(super) struct Seen {
    worst: Option<i128>,
    collar: Option<i128>,
    pub(super) values: Option<[i128; 2]>,
}

/// An order's terms, in wide integers.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) kind: IntentKind,
    pub(super) side: OrderSide,
    pub(super) flags: IntentFlags,
    pub(super) px: i128,
    pub(super) trigger: i128,
    pub(super) qty: i128,
}

impl Terms {
    pub(super) fn is_market(self) -> bool {
        self.kind == IntentKind::MARKET || self.kind == IntentKind::STOP_MARKET
    }

    fn is_stop(self) -> bool {
        self.kind == IntentKind::STOP_LIMIT || self.kind == IntentKind::STOP_MARKET
    }

    pub(super) fn sign(self) -> i128 {
        if self.side == OrderSide::Buy { 1 } else { -1 }
    }
}

fn part(of: i128, bps: i128) -> i128 {
    of.abs() * bps / 10_000
}

fn is_malformed(intent: &OrderIntent) -> bool {
    let may_have_trigger = [2, 3, 4, 5].contains(&intent.kind.0);
    intent.kind.0 > 5 || intent.tif.0 > 2 || intent.flags.0 >= 8 || (intent.trigger_px.0 != 0 && !may_have_trigger)
}

impl Oracle {
    /// An intent arrives; what is accepted becomes history.
    pub fn evaluate(&mut self, now: u64, producer: u16, intent: &OrderIntent) -> Opinion {
        self.pass(now);
        let now = i128::from(now);
        let mut found = Found::default();
        let next = self.next_seqs.get_mut(usize::from(producer));
        let in_turn = next.as_ref().is_some_and(|next| **next == intent.seq);
        if let Some(next) = next.filter(|_| in_turn) {
            *next += 1;
        }
        found.when(!in_turn, Breach::SEQ_REPLAY);
        found.when(is_malformed(intent), Breach::MALFORMED);
        let mut named: Vec<_> = self.named(self.horizon, intent.account, intent.client_id).collect();
        // An open order before an ended one.
        named.sort_by_key(|index| !self.lives[*index].sum().is_open);
        let target = named.first().copied();
        let (worst, notes) = match intent.kind {
            IntentKind::CANCEL => (0, self.judge_cancel(now, producer, intent, target, &mut found)),
            IntentKind::REPLACE => (self.judge_replace(now, producer, intent, target, &mut found), 0),
            _ => {
                found.when(target.is_some(), Breach::DUP_ID);
                found.when(self.is_full, Breach::CAPACITY);
                found.when(self.count_same(intent) >= self.settings.same_orders, Breach::DUP_ORDER);
                let terms = terms_of(intent, intent.kind, intent.flags);
                self.judge_cancels(intent, &mut found);
                (self.judge_terms(now, producer, intent, (terms, terms.qty, None), &mut found), 0)
            }
        };
        let notes = notes | found.2;
        let row = &self.settings.rows[usize::from(intent.account)][intent.instrument.0 as usize];
        let optional = if row.needs_proof { 0 } else { Breach::BOOK_UNVERIFIED.0 };
        let accept = found.0 & !optional == 0;
        let first = (found.0 & !optional).trailing_zeros();
        let level = (0..4).find(|level| first < 64 && found.1[*level] >> first & 1 == 1).map_or(0, |level| level + 1);
        let level = level as u8;
        if !accept {
            self.refuse(now, producer);
        }
        if accept {
            self.accept(now, producer, intent, target);
        }
        Opinion { reasons: Breach(found.0), accept, worst, notes, level }
    }

    /// Counts a refusal; too many kill the producer's strategies.
    pub(super) fn refuse(&mut self, now: i128, producer: u16) {
        let Some(refusals) = self.refusals.get_mut(usize::from(producer)) else { return };
        if !refusals.is_over(now) {
            return refusals.count(now);
        }
        for (mode, strategy) in self.modes[2].iter_mut().zip(&self.settings.strategies) {
            if strategy.producer == producer {
                *mode = 2;
            }
        }
    }

    pub(super) fn may_send(&self, producer: u16, strategy: u16) -> bool {
        self.settings.strategies.get(usize::from(strategy)).is_some_and(|of| of.producer == producer)
    }

    fn accept(&mut self, now: i128, producer: u16, intent: &OrderIntent, target: Option<usize>) {
        let (account, instrument) = (usize::from(intent.account), intent.instrument.0 as usize);
        self.account_rates[account].count(now);
        self.instrument_rates[instrument].count(now);
        self.global_rate.count(now);
        if self.may_send(producer, intent.strategy) {
            self.strategy_rates[account][usize::from(intent.strategy)].count(now);
        }
        if intent.kind == IntentKind::CANCEL || intent.kind == IntentKind::REPLACE {
            self.cancels.push((self.horizon, intent.account, intent.instrument.0));
        }
        let (px, qty, trigger) = (intent.limit_px.0.into(), intent.qty.0.into(), intent.trigger_px.0.into());
        let target = target.filter(|index| self.lives[*index].sum().is_open);
        match (intent.kind, target) {
            (IntentKind::CANCEL, Some(index)) => self.lives[index].facts.push((now, Fact::CancelAsked)),
            (IntentKind::CANCEL, None) => {}
            (IntentKind::REPLACE, Some(index)) => {
                let adds = !self.settings.instruments[instrument].replaces_atomically;
                self.lives[index].facts.push((now, Fact::ReplaceAsked { px, qty, trigger, adds }));
            }
            _ => {
                let terms = terms_of(intent, intent.kind, intent.flags);
                let quote = self.fresh_quote(instrument);
                let seen = seen(terms, quote.as_ref(), &self.settings.instruments[instrument]);
                let px = dearest(terms, &seen, &self.settings.contracts[instrument]).unwrap_or(px);
                self.lives.push(Life {
                    account: intent.account,
                    strategy: intent.strategy,
                    instrument: intent.instrument.0,
                    client_id: intent.client_id,
                    side: intent.side,
                    kind: intent.kind,
                    flags: intent.flags,
                    asked: Some((self.horizon, intent.limit_px.0, intent.qty.0)),
                    facts: vec![(now, Fact::Reserved { px, qty, trigger })],
                });
            }
        }
    }

    /// Orders of the same route and terms that were accepted a moment ago.
    fn count_same(&self, intent: &OrderIntent) -> i128 {
        let is_same = |life: &&Life| {
            let route = (life.account, life.strategy, life.instrument, life.side, life.kind);
            route == (intent.account, intent.strategy, intent.instrument.0, intent.side, intent.kind)
                && life.asked.is_some_and(|(at, px, qty)| {
                    (px, qty) == (intent.limit_px.0, intent.qty.0) && self.horizon - at < self.settings.same_ns
                })
        };
        self.lives.iter().filter(is_same).count() as i128
    }

    fn modes_of(&self, intent: &OrderIntent) -> [u8; 4] {
        let at = |level: usize, index: usize| self.modes[level].get(index).copied().unwrap_or(0);
        [at(0, 0), at(1, intent.account.into()), at(2, intent.strategy.into()), at(3, intent.instrument.0 as usize)]
    }

    fn judge_cancel(
        &self,
        now: i128,
        producer: u16,
        intent: &OrderIntent,
        target: Option<usize>,
        found: &mut Found,
    ) -> u8 {
        let target = target.map(|index| &self.lives[index]).filter(|life| life.sum().is_open);
        // An order that no intent has made belongs to the account.
        let is_other = |life: &Life| {
            let is_others = life.strategy != intent.strategy || !self.may_send(producer, life.strategy);
            life.instrument != intent.instrument.0 || (life.asked.is_some() && is_others)
        };
        found.when(target.is_some_and(is_other), Breach::NOT_PERMITTED);
        let since = target.and_then(|life| life.sum().cancelled_at);
        // A clock that went back does not shorten the wait.
        let is_repeat = since.is_some_and(|since| (now - since).max(0) < self.settings.cancel_repeat_ns);
        found.when(is_repeat, Breach::RATE_INSTRUMENT);
        let is_forced = self.doubts[usize::from(intent.account)] || self.modes_of(intent) != [0; 4];
        u8::from(target.is_none()) + 2 * u8::from(is_forced)
    }

    fn judge_replace(
        &self,
        now: i128,
        producer: u16,
        intent: &OrderIntent,
        target: Option<usize>,
        found: &mut Found,
    ) -> i128 {
        let target = target.map(|index| &self.lives[index]).filter(|life| life.sum().is_open);
        let Some(life) = target else {
            found.when(true, Breach::ORDER_UNKNOWN);
            let terms = terms_of(intent, intent.kind, intent.flags);
            return self.judge_terms(now, producer, intent, (terms, terms.qty.max(0), None), found);
        };
        let sum = life.sum();
        let is_others = life.asked.is_some() && !self.may_send(producer, life.strategy);
        let is_other = life.strategy != intent.strategy || life.instrument != intent.instrument.0 || is_others;
        found.when(is_other || life.side != intent.side, Breach::NOT_PERMITTED);
        found.when(sum.pending.is_some(), Breach::ORDER_UNKNOWN);
        let terms = terms_of(intent, life.kind, life.flags);
        if is_calmer(life, &sum, terms) {
            return 0;
        }
        found.when(!terms.is_stop() && terms.trigger != 0, Breach::MALFORMED);
        let rules = &self.settings.instruments[intent.instrument.0 as usize];
        let new = (terms.qty - sum.executed()).max(0);
        let adds = if rules.replaces_atomically { (new - sum.reserved()).max(0) } else { new };
        let had_count = found.0 & Breach::OPEN_ORDERS.0;
        let worst = self.judge_terms(now, producer, intent, (terms, adds, Some(&sum)), found);
        found.0 = found.0 & !Breach::OPEN_ORDERS.0 | had_count;
        worst
    }

    fn fresh_quote(&self, instrument: usize) -> Option<Quote> {
        self.quotes[instrument].map(|(quote, _)| quote).filter(|quote| quote.reference > 0)
    }

    fn judge_terms(
        &self,
        now: i128,
        producer: u16,
        intent: &OrderIntent,
        (terms, adds, replaced): (Terms, i128, Option<&Sum>),
        found: &mut Found,
    ) -> i128 {
        let (account, instrument) = (usize::from(intent.account), intent.instrument.0 as usize);
        let row = &self.settings.rows[account][instrument];
        let rules = &self.settings.instruments[instrument];
        let [position, buys, sells, count] = self.known(intent.account, intent.instrument.0);
        let same_side = if terms.side == OrderSide::Buy { buys } else { sells };
        let worst = terms.sign() * position + same_side + adds;
        let quote = self.fresh_quote(instrument);
        let seen = seen(terms, quote.as_ref(), rules);

        self.judge_modes(intent, worst, found);
        judge_prices(terms, quote.as_ref(), rules, row, &seen, found);
        let contract = &self.settings.contracts[instrument];
        judge_sizes(terms, (row, contract), &seen, [worst, terms.sign() * position], found);
        self.judge_tree((now, producer), intent, (terms, adds, replaced), &seen, found);
        let limit = row.position[usize::from(terms.side == OrderSide::Sell)];
        let pos = if terms.side == OrderSide::Buy { Breach::POS_LONG } else { Breach::POS_SHORT };
        found.when(worst > limit.max(0), pos);
        found.when(count >= row.open_orders, Breach::OPEN_ORDERS);
        found.when(!(0..=row.open_qty).contains(&(same_side + adds)), Breach::OPEN_QTY);

        let takes = match self.states[instrument] {
            2 => true,
            1 | 3 => terms.kind == IntentKind::LIMIT,
            _ => false,
        };
        found.at(3, !takes, Breach::INSTRUMENT_HALTED);
        let is_stale = quote.is_none_or(|quote| now > quote.at_ns + rules.mark_age_ns || quote.at_ns > now + SKEW_NS);
        found.at(3, is_stale, Breach::MD_STALE);
        let is_proved = quote.is_some_and(|quote| {
            let may_be = |age: i128| now <= quote.proved_ns + age && quote.proved_ns <= now + SKEW_NS;
            quote.is_verified && rules.proof_age_ns.is_none_or(may_be)
        });
        found.at(3, !is_proved, Breach::BOOK_UNVERIFIED);
        let epoch = self.quotes[instrument].map_or(0, |(_, epoch)| epoch);
        found.when(epoch != self.faults, Breach::CLOCK_FAULT);
        found.when(self.is_journal_lost, Breach::JOURNAL);

        found.at(1, self.account_rates[account].is_over(now), Breach::RATE_ACCOUNT);
        found.at(3, self.instrument_rates[instrument].is_over(now), Breach::RATE_INSTRUMENT);
        found.when(self.global_rate.is_over(now), Breach::RATE_GLOBAL);

        found.when(self.has_expired(now, intent), Breach::EXPIRED);

        found.when(self.meets_own(intent, terms, seen.worst), Breach::SELF_MATCH);
        let may_reduce = worst <= 0 && rules.enforces_reduce_only && terms.flags.0 & 1 == 1;
        found.when(self.doubts[account] && !may_reduce, Breach::UNRECONCILED);
        terms.sign() * worst
    }

    /// Whether an intent is too old, from the future, or its time to live is over.
    pub fn has_expired(&self, now: i128, intent: &OrderIntent) -> bool {
        let made = i128::from(intent.ts_ns);
        let is_over = intent.ttl_ms > 0 && now >= made + i128::from(intent.ttl_ms) * 1_000_000;
        is_over || now - made > self.settings.intent_age_ns || made > now + SKEW_NS
    }

    fn judge_modes(&self, intent: &OrderIntent, worst: i128, found: &mut Found) {
        for (level, mode) in self.modes_of(intent).into_iter().enumerate() {
            found.when(mode == 2, Breach(1 << level));
            if mode == 2 && (level == 1 || level == 3) {
                found.at(level, true, Breach(1 << level));
            }
            found.when(mode == 1 && worst > 0, Breach::REDUCE_ONLY_STATE);
        }
    }

    fn meets_own(&self, intent: &OrderIntent, terms: Terms, worst_px: Option<i128>) -> bool {
        let others = self.lives.iter().filter(|life| {
            (life.account, life.instrument) == (intent.account, intent.instrument.0) && life.side != terms.side
        });
        let meets = |px: i128| worst_px.is_none_or(|worst| terms.sign() * (worst - px) >= 0);
        others.flat_map(Life::resting).any(meets)
    }
}

fn terms_of(intent: &OrderIntent, kind: IntentKind, flags: IntentFlags) -> Terms {
    let (px, trigger, qty) = (intent.limit_px.0.into(), intent.trigger_px.0.into(), intent.qty.0.into());
    Terms { kind, side: intent.side, flags, px, trigger, qty }
}

/// Less, and no more aggressive.
fn is_calmer(life: &Life, sum: &Sum, terms: Terms) -> bool {
    let is_market = life.kind == IntentKind::MARKET || life.kind == IntentKind::STOP_MARKET;
    let sign = if life.side == OrderSide::Buy { 1 } else { -1 };
    let is_calm = is_market || sign * (terms.px - sum.px) <= 0;
    is_calm && (1..=sum.qty).contains(&terms.qty) && terms.trigger == sum.trigger
}

fn seen(terms: Terms, quote: Option<&Quote>, rules: &InstrumentSettings) -> Seen {
    if !terms.is_market() {
        return Seen { worst: Some(terms.px), collar: Some(terms.px), values: Some([terms.px; 2]) };
    }
    let anchor = if terms.is_stop() { Some(terms.trigger) } else { quote.map(|quote| quote.reference) };
    if let (Some(anchor), Some(bps)) = (anchor, rules.slip_bps) {
        let slip = (anchor.abs() * bps + 9_999) / 10_000;
        let px = anchor + terms.sign() * slip;
        return Seen { worst: Some(px), collar: Some(px), values: Some([px; 2]) };
    }
    let values = anchor.map(|anchor| [-1, 1].map(|sign| anchor + sign * part(anchor, rules.collar_bps)));
    let collar = if terms.is_stop() { Some(terms.trigger) } else { touch(terms, quote) };
    Seen { worst: None, collar, values }
}

/// The best price of the other side.
fn touch(terms: Terms, quote: Option<&Quote>) -> Option<i128> {
    let px = quote.map(|quote| if terms.side == OrderSide::Buy { quote.ask } else { quote.bid });
    px.filter(|px| *px > 0)
}

fn judge_prices(
    terms: Terms,
    quote: Option<&Quote>,
    rules: &InstrumentSettings,
    row: &RowSettings,
    seen: &Seen,
    found: &mut Found,
) {
    let mut sent = Vec::new();
    if !terms.is_market() {
        sent.push(terms.px);
    }
    if terms.is_stop() {
        sent.push(terms.trigger);
    }
    for px in sent {
        found.when(px % row.px_step != 0, Breach::PRICE_TICK);
        found.when(px <= 0 && !rules.may_be_negative, Breach::PRICE_NONPOS);
    }
    let is_within = |px: i128, center: i128, bps: i128| (px - center).abs() <= part(center, bps);
    let is_in_collar =
        |px: i128| quote.is_some_and(|quote| px >= 0 && is_within(px, quote.reference, rules.collar_bps));
    if terms.is_stop() {
        let is_near = quote.is_some_and(|quote| is_within(terms.trigger, quote.reference, rules.trigger_bps));
        let follows = seen.collar.is_some_and(|px| is_within(px, terms.trigger, rules.collar_bps));
        found.at(3, !is_near || !follows, Breach::COLLAR_REF);
    } else {
        found.at(3, !seen.collar.is_some_and(is_in_collar), Breach::COLLAR_REF);
    }
    let Some(bps) = rules.touch_bps else { return };
    let touch = touch(terms, quote);
    found.at(3, touch.is_none(), Breach::COLLAR_TOUCH);
    if let Some(touch) = touch {
        let beyond = terms.sign() * (terms.px - touch);
        found.at(3, terms.kind == IntentKind::LIMIT && beyond > part(touch, bps), Breach::COLLAR_TOUCH);
        found.at(3, terms.kind == IntentKind::MARKET && !is_in_collar(touch), Breach::COLLAR_TOUCH);
    }
}

fn judge_sizes(
    terms: Terms,
    (row, contract): (&RowSettings, &ContractSettings),
    seen: &Seen,
    [worst, own]: [i128; 2],
    found: &mut Found,
) {
    let is_whole = terms.flags.0 & 4 != 0 && worst <= 0 && terms.qty == -own;
    found.when(terms.qty % row.qty_step != 0, Breach::QTY_STEP);
    let is_exempt = is_whole || worst == 0;
    found.when(terms.qty <= 0 || (terms.qty < row.qty[0] && !is_exempt), Breach::QTY_MIN);
    found.when(terms.qty > row.qty[1] && !is_whole, Breach::QTY_MAX);
    let values = seen.values.map(|pxs| pxs.map(|px| contract.notionals(px, terms.qty)));
    let is_small = values.is_none_or(|values| values.iter().any(|[value, _]| *value < row.notional[0]));
    let is_large = values.is_none_or(|values| values.iter().any(|[_, value]| *value > row.notional[1]));
    found.when(is_small && worst > 0, Breach::NOTIONAL_MIN);
    found.when(is_large && !is_whole, Breach::NOTIONAL_MAX);
    found.when(terms.flags.0 & 5 != 0 && worst > 0, Breach::REDUCE_ONLY_FLIP);
}
