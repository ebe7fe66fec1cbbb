//! The evaluation of intents.

mod acceptance;
mod findings;
mod unrecorded;

use super::{
    Gate, Rules,
    terms::{OrderSize, Priced},
};
use crate::{
    controls::is_expired,
    index::NIL,
    limits::Limits,
    money::Contract,
    orders::{Bits, Orders, Record},
    tree::{Ask, Node, Row, Said, Unseen, Witness},
};
use tt_meter::{Probe, Stage};
use tt_model::{Breach, IntentFlags, IntentKind, Notes, OrderIntent, OrderSide, Verdict};

/// Reasons that a cancel can have.
const OF_CANCELS: u64 = Breach::INSTRUMENT_UNKNOWN.0
    | Breach::NOT_PERMITTED.0
    | Breach::RATE_INSTRUMENT.0
    | Breach::SEQ_REPLAY.0
    | Breach::MALFORMED.0;

/// Reasons that reject whatever the limits enable.
const ALWAYS: u64 = !Limits::OPTIONAL.0;

/// What was found about an intent, and what becomes of it if it is accepted.
struct Judgement {
    reasons: u64,
    worst_pos: i64,
    notes: u8,
    /// Reasons of the firm, the account and the strategy, and of the instrument.
    levels: [u64; 4],
    /// Whether a node had too little room to judge the order without its sums.
    is_near: bool,
    effect: Effect,
}

/// The effect of an accepted intent.
enum Effect {
    /// A new order, valued at this price, with the hash of its terms.
    Order { px: i64, terms: u64 },
    /// A cancel of an order that the gate knows.
    Cancel { slot: u32 },
    /// A replace of the order.
    Replace { slot: u32 },
    /// A message to the venue, and no more.
    Message,
}

impl Gate {
    /// Evaluates `intent` of `producer` at `now_ns`; an accepted intent is added to the exposure and the rates.
    ///
    /// `now_ns` is on the clock of [`Mark::ts_ns`](crate::Mark::ts_ns) and of the intent. If it goes back, orders have the
    /// reason `CLOCK_FAULT` until the instrument has a mark of that time or later.
    pub fn evaluate(&mut self, now_ns: u64, producer: u16, intent: &OrderIntent, probe: &mut impl Probe) -> Verdict {
        probe.begin();
        // Before any mode is read: a later change has another generation.
        let generation = self.core.controls.generation();
        self.pass_time(now_ns);
        let is_in_turn = self.take_number(producer, intent.seq);
        probe.mark(Stage::Parse);

        let (row, _) = self.core.row_index(intent.account, intent.instrument);
        let target = self.orders.find(self.horizon_ns, intent.account, intent.client_id);
        probe.mark(Stage::LookUp);

        let from = From { now_ns, row, producer, route: self.permitted_route(producer, intent) };
        let judgement = self.judge(from, intent, target, &mut Unseen);
        let turn = if is_in_turn { 0 } else { Breach::SEQ_REPLAY.0 };
        let reasons = judgement.reasons | turn;
        let rejecting = reasons & (self.core.rows[row].limits.enabled | ALWAYS);
        if rejecting == 0 {
            self.accept(from, intent, &judgement.effect);
        } else {
            self.count_refusal(now_ns, producer);
        }
        if judgement.is_near {
            self.tree.find_rooms(self.tree.path(intent.account, intent.instrument, from.route));
        }
        probe.mark(Stage::Build);

        let first_bit = rejecting.trailing_zeros();
        let verdict = Verdict {
            seq: self.core.count(first_bit),
            intent_seq: intent.seq,
            client_id: intent.client_id,
            reasons: Breach(reasons),
            now_ns,
            worst_pos: judgement.worst_pos,
            generation,
            limits_version: self.core.limits_version(),
            first_bit: first_bit as u8,
            first_level: level_of(first_bit, &judgement.levels),
            accept: u8::from(rejecting == 0),
            notes: Notes(judgement.notes),
            producer,
            zero: 0,
        };
        probe.mark(Stage::Serialize);
        probe.end();
        verdict
    }

    /// Returns whether `seq` is the next number of `producer`, and then expects the following one.
    fn take_number(&mut self, producer: u16, seq: u64) -> bool {
        let Some(next) = self.next_seqs.get_mut(usize::from(producer)) else { return false };
        let is_next = *next == seq;
        *next = next.wrapping_add(u64::from(is_next));
        is_next
    }

    #[inline(always)]
    fn judge(&self, from: From, intent: &OrderIntent, target: Option<u32>, witness: &mut impl Witness) -> Judgement {
        match intent.kind {
            IntentKind::CANCEL => self.judge_cancel(from, intent, target),
            IntentKind::REPLACE => self.judge_replace(from, intent, target, witness),
            _ => self.judge_order(from, intent, target.is_some(), witness),
        }
    }

    fn judge_order(&self, from: From, intent: &OrderIntent, is_used: bool, witness: &mut impl Witness) -> Judgement {
        let mut judgement = self.judge_terms(from, intent, Adds { lots: intent.qty.0, replaces: None }, witness);
        let account = &self.accounts[self.core.account_index(intent.account)];
        let is_full = account.records >= self.capacity.orders
            || self.orders.free_len() == 0
            || self.orders.executions.free_len() <= self.capacity.executions / 8;
        let Rules { same_orders_max, same_window_ns, .. } = self.rules;
        let hash = Orders::terms_hash(intent);
        let same = self.orders.count_same(self.horizon_ns, (same_window_ns, same_orders_max), (intent, hash));
        if let Effect::Order { terms, .. } = &mut judgement.effect {
            *terms = hash;
        }
        judgement.reasons |= bit(is_used, Breach::DUP_ID) | bit(is_full, Breach::CAPACITY);
        judgement.reasons |= bit(same >= same_orders_max, Breach::DUP_ORDER);
        self.judge_cancels(intent, &mut judgement, witness);
        judgement
    }

    /// Compares the cancels of the account, and of the instrument, with their fills.
    fn judge_cancels(&self, intent: &OrderIntent, judgement: &mut Judgement, witness: &mut impl Witness) {
        let (now_ns, width_ns) = (self.horizon_ns, self.rules.cancel_window_ns);
        let Some(node) = self.tree.node(Node::Account(intent.account)) else { return };
        let account = &self.tree.nodes[node];
        let rules = &self.instruments[self.core.instrument_index(intent.instrument)];
        let instrument =
            self.messages.get(intent.instrument.0 as usize).map(|messages| (messages, rules.cancels_per_fill_max_pct));
        let of_account = Some((&account.messages, account.limits.cancels_per_fill_max_pct));
        for (level, checked) in [(1, of_account), (3, instrument)] {
            if let Some((messages, Some(max_pct))) = checked
                && messages.are_cancels_over(now_ns, width_ns, max_pct)
            {
                judgement.reasons |= Breach::CANCEL_RATIO.0;
                judgement.levels[level] |= Breach::CANCEL_RATIO.0;
                witness.see(if level == 1 { node as u32 } else { NIL }, Breach::CANCEL_RATIO, None);
            }
        }
    }

    /// Judges a new order, or the new terms of a replaced one.
    fn judge_terms(&self, from: From, intent: &OrderIntent, adds: Adds, witness: &mut impl Witness) -> Judgement {
        let From { now_ns, row, .. } = from;
        let kind = intent.kind;
        let instrument = self.core.instrument_index(intent.instrument);
        let rules = &self.instruments[instrument];
        let market = &self.core.quoted(instrument);
        let checked = self.core.find(now_ns, intent, adds.lots);
        let reduces = checked.worst <= 0;
        let row_ref = &self.core.rows[row];
        let contract = self.tree.contracts.get(instrument).unwrap_or(&Contract::DEFAULT);
        let (of, row_of) = ((market, rules, contract), (row_ref, checked.worst));
        let Priced { prices, size, found } = match kind {
            // The compiler leaves out what other kinds need.
            IntentKind::LIMIT => Priced::of(IntentKind::LIMIT, intent, of, row_of),
            kind => Priced::of_any(kind, intent, of, row_of),
        };
        let mut reasons = checked.reasons | found;
        reasons |= self.find_time(now_ns, intent) | bit(is_malformed(intent), Breach::MALFORMED);
        if reduces {
            reasons &= !(Breach::REDUCE_ONLY_STATE.0 | Breach::POS_LONG.0 | Breach::POS_SHORT.0);
        }
        let is_met = self.orders.levels.is_met(row, intent.side, prices.worst) || self.rows[row].unnamed > 0;
        let account = &self.accounts[self.core.account_index(intent.account)];
        let venue_reduces = reduces && rules.enforces_reduce_only && intent.flags.contains(IntentFlags::REDUCE_ONLY);
        reasons |= bit(is_met, Breach::SELF_MATCH)
            | bit(account.is_doubtful && !venue_reduces, Breach::UNRECONCILED)
            | bit(!self.states[instrument].takes(kind), Breach::INSTRUMENT_HALTED)
            | bit(market.is_proof_old(now_ns, rules), Breach::BOOK_UNVERIFIED)
            | bit(self.mark_epochs[instrument] != self.epoch, Breach::CLOCK_FAULT)
            | bit(self.is_journal_lost, Breach::JOURNAL)
            | bit(self.tree.is_behind(now_ns, self.rules.revalue_max_ns), Breach::MD_STALE);
        if reasons & Breach::RATE_ACCOUNT.0 != 0
            && let Some(node) = self.tree.node(Node::Account(intent.account))
        {
            witness.see(node as u32, Breach::RATE_ACCOUNT, None);
        }
        let judgement = Judgement {
            reasons,
            worst_pos: checked.worst_pos,
            notes: 0,
            levels: [0, reasons & (Breach::KILL_ACCOUNT.0 | Breach::RATE_ACCOUNT.0), 0, reasons & OF_INSTRUMENTS],
            is_near: false,
            effect: Effect::Order { px: size.px, terms: 0 },
        };
        self.judge_nodes(from, intent, judgement, (adds, &size), witness)
    }

    /// Adds what the firm, the account and the strategy say.
    fn judge_nodes(
        &self,
        from: From,
        intent: &OrderIntent,
        judgement: Judgement,
        of: (Adds, &OrderSize),
        witness: &mut impl Witness,
    ) -> Judgement {
        let (Adds { lots, replaces }, size) = of;
        let mut judgement = judgement;
        let is_known = intent.account < self.capacity.accounts && intent.instrument.0 < self.capacity.instruments;
        if !is_known {
            return judgement;
        }
        judgement.reasons |= bit(from.route == NIL, Breach::NOT_PERMITTED);
        let contract = &self.tree.contracts[intent.instrument.0 as usize];
        let value = match replaces {
            None => contract.cost(size.px, intent.qty.0.max(0)),
            Some(slot) => self.replaced_value(slot, intent, size.px),
        };
        let reach = self.tree.reach(intent.instrument.0, lots, value);
        let ask = Ask {
            side: intent.side,
            qty: intent.qty.0,
            adds: lots,
            value,
            reach,
            notional: size.notional_max,
            notional_word: size.notional_max.and_then(|notional| i64::try_from(notional).ok()),
            is_market: intent.kind.is_market(),
            closes: size.closes,
            is_new: replaces.is_none(),
            now_ns: from.now_ns,
            equity_age_max_ns: self.rules.equity_age_max_ns,
        };
        for (level, row) in self.tree.path(intent.account, intent.instrument, from.route).into_iter().enumerate() {
            if row != NIL {
                let Said { reasons, notes, is_near } = self.tree.judge(row, &ask, witness);
                judgement.reasons |= reasons;
                judgement.levels[level] |= reasons;
                judgement.notes |= notes;
                judgement.is_near |= is_near;
            }
        }
        let (found, notes) = self.tree.judge_balance(intent.account, intent.instrument, &ask, witness);
        judgement.reasons |= found;
        judgement.notes |= notes;
        if let Some(row) = self.tree.rows.get(from.route as usize)
            && self.tree.nodes[row.node as usize].rate.is_early(from.now_ns)
        {
            judgement.reasons |= Breach::RATE_ACCOUNT.0;
            judgement.levels[2] |= Breach::RATE_ACCOUNT.0;
            witness.see(row.node, Breach::RATE_ACCOUNT, None);
        }
        judgement
    }

    /// Returns the value by which a replace raises the reservation of the order at `slot`.
    fn replaced_value(&self, slot: u32, intent: &OrderIntent, px: i64) -> Option<i128> {
        let record = &self.orders.records[slot as usize];
        let instrument = intent.instrument.0 as usize;
        let leaves = intent.qty.0.saturating_sub(record.executed).max(0);
        let value = self.tree.contracts[instrument].cost(px, leaves)?;
        // An order of another instrument, which must not be named, reserves nothing in this one.
        let is_here = record.instrument == intent.instrument;
        let counted = if is_here { self.orders.counted[slot as usize].value } else { 0 };
        Some(if self.instruments[instrument].replaces_atomically { (value - counted).max(0) } else { value })
    }

    /// Returns the route of `intent`; [`NIL`] if `producer` has none.
    fn permitted_route(&self, producer: u16, intent: &OrderIntent) -> u32 {
        let row = self.route_row(intent.account, intent.strategy, intent.instrument);
        let is_permitted = self.tree.rows.get(row as usize).is_some_and(|row| row.producer == producer);
        if is_permitted { row } else { NIL }
    }

    /// Returns `EXPIRED` for an intent that is too old, or from the future.
    fn find_time(&self, now_ns: u64, intent: &OrderIntent) -> u64 {
        bit(is_expired(now_ns, intent, self.rules.intent_age_max_ns), Breach::EXPIRED)
    }

    fn judge_cancel(&self, from: From, intent: &OrderIntent, target: Option<u32>) -> Judgement {
        let From { now_ns, row, .. } = from;
        let target = target.filter(|slot| self.orders.records[*slot as usize].is_open());
        let record = target.map(|slot| &self.orders.records[slot as usize]);
        let state = &self.core.rows[row].state;
        let is_known = intent.account < self.capacity.accounts && intent.instrument.0 < self.capacity.instruments;
        let is_repeat = record.is_some_and(|record| self.repeats_cancel(now_ns, record));
        let barred = if is_known { 0 } else { state.barred };
        let reasons = barred
            | bit(record.is_some_and(|record| self.belongs_to_other(from, record, intent)), Breach::NOT_PERMITTED)
            | bit(is_repeat, Breach::RATE_INSTRUMENT)
            | bit(is_malformed(intent), Breach::MALFORMED);
        let instrument = self.core.instrument_index(intent.instrument);
        let kills = self.core.controls.kill_bits(intent.account, intent.strategy, instrument);
        let is_doubtful = self.accounts[self.core.account_index(intent.account)].is_doubtful;
        let forced = kills != 0 || is_doubtful || state.barred != 0;
        let unknown = if record.is_none() { Notes::ORDER_UNKNOWN.0 } else { 0 };
        Judgement {
            reasons: reasons & OF_CANCELS,
            worst_pos: 0,
            notes: unknown | if forced { Notes::FORCED.0 } else { 0 },
            levels: [0; 4],
            is_near: false,
            effect: target.map_or(Effect::Message, |slot| Effect::Cancel { slot }),
        }
    }

    pub(super) fn repeats_cancel(&self, now_ns: u64, record: &Record) -> bool {
        record.bits.has(Bits::CANCEL_PENDING) && now_ns.saturating_sub(record.cancel_ns) < self.rules.cancel_repeat_ns
    }

    fn judge_replace(
        &self,
        from: From,
        intent: &OrderIntent,
        target: Option<u32>,
        witness: &mut impl Witness,
    ) -> Judgement {
        let target = target.filter(|slot| self.orders.records[*slot as usize].is_open());
        let Some(slot) = target else {
            let adds = Adds { lots: intent.qty.0.max(0), replaces: None };
            let judgement = self.judge_terms(from, intent, adds, witness);
            return Judgement { reasons: judgement.reasons | Breach::ORDER_UNKNOWN.0, ..judgement };
        };
        let record = &self.orders.records[slot as usize];
        let is_foreign = self.is_of_other_route(from, record, intent) || record.side != intent.side;
        let is_pending = record.bits.has(Bits::REPLACE_PENDING);
        let always = bit(is_foreign, Breach::NOT_PERMITTED)
            | bit(intent.instrument.0 >= self.capacity.instruments, Breach::INSTRUMENT_UNKNOWN)
            | bit(is_pending, Breach::ORDER_UNKNOWN)
            | bit(is_malformed(intent), Breach::MALFORMED);
        let effect = Effect::Replace { slot };
        if is_reduction(record, intent) {
            return Judgement { reasons: always, worst_pos: 0, notes: 0, levels: [0; 4], is_near: false, effect };
        }
        let rules = &self.instruments[self.core.instrument_index(intent.instrument)];
        let leaves = intent.qty.0.saturating_sub(record.executed).max(0);
        let adds = if rules.replaces_atomically { (leaves - record.reserved()).max(0) } else { leaves };
        let terms = OrderIntent { kind: record.kind, flags: record.flags, ..*intent };
        let judgement = self.judge_terms(from, &terms, Adds { lots: adds, replaces: Some(slot) }, witness);
        // The order is counted already.
        let reasons = judgement.reasons & !Breach::OPEN_ORDERS.0;
        Judgement { reasons: reasons | always, effect, ..judgement }
    }

    /// Returns whether the order at `record` belongs to another strategy, instrument or producer.
    fn is_of_other_route(&self, from: From, record: &Record, intent: &OrderIntent) -> bool {
        let is_other = |row: &Row| row.producer != from.producer;
        record.strategy != intent.strategy
            || record.instrument != intent.instrument
            || self.tree.rows.get(record.route as usize).is_some_and(is_other)
    }

    /// Returns whether a cancel names an order of another strategy, instrument or producer. Every strategy of the account may
    /// cancel an order that the gate knows from reports alone.
    fn belongs_to_other(&self, from: From, record: &Record, intent: &OrderIntent) -> bool {
        let has_route = (record.route as usize) < self.tree.rows.len();
        record.instrument != intent.instrument || (has_route && self.is_of_other_route(from, record, intent))
    }
}

/// Where an intent comes from: its time, its row in the evaluator, its producer, and its route or [`NIL`].
#[derive(Clone, Copy)]
struct From {
    now_ns: u64,
    row: usize,
    producer: u16,
    route: u32,
}

/// The lots that an intent adds to the reservation of its side, and the order that it replaces.
#[derive(Clone, Copy)]
struct Adds {
    lots: i64,
    replaces: Option<u32>,
}

/// Reasons that only an instrument has.
const OF_INSTRUMENTS: u64 = Breach::KILL_INSTRUMENT.0
    | Breach::INSTRUMENT_HALTED.0
    | Breach::COLLAR_REF.0
    | Breach::COLLAR_TOUCH.0
    | Breach::MD_STALE.0
    | Breach::BOOK_UNVERIFIED.0
    | Breach::RATE_INSTRUMENT.0;

/// Returns the level of a reason: 1 firm, 2 account, 3 strategy, 4 instrument, 0 for none.
fn level_of(bit: u32, levels: &[u64; 4]) -> u8 {
    if bit == u64::BITS {
        return 0;
    }
    let has = |level: &u64| level.checked_shr(bit).is_some_and(|level| level & 1 == 1);
    levels.iter().position(has).map_or(0, |level| level as u8 + 1)
}

const fn bit(is_found: bool, reason: Breach) -> u64 {
    if is_found { reason.0 } else { 0 }
}

/// Returns whether a field has a value without a meaning.
fn is_malformed(intent: &OrderIntent) -> bool {
    let has_trigger = intent.kind.is_stop() || intent.kind == IntentKind::REPLACE;
    !intent.kind.is_known()
        || !intent.tif.is_known()
        || !IntentFlags::ALL.contains(intent.flags)
        || (intent.trigger_px.0 != 0 && !has_trigger && intent.kind != IntentKind::CANCEL)
}

/// Returns whether a replace only lowers the order's quantity, at no more aggressive a price.
fn is_reduction(record: &Record, intent: &OrderIntent) -> bool {
    let is_calmer = match record.side {
        OrderSide::Buy => intent.limit_px.0 <= record.limit_px,
        OrderSide::Sell => intent.limit_px.0 >= record.limit_px,
    };
    let is_less = intent.qty.0 >= 1 && intent.qty.0 <= record.qty;
    let keeps_trigger = intent.trigger_px.0 == record.trigger_px;
    is_less && keeps_trigger && (is_calmer || record.kind.is_market())
}
