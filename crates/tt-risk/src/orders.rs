//! Records of single orders.

mod asked;
mod prefetch;
mod versions;
mod words;

use crate::{
    executions::Executions,
    index::{Index, List, NIL, hash},
    levels::Levels,
    money::Contract,
};
use alloc::{boxed::Box, vec};
use asked::{Asked, Way};
use tt_model::{InstrumentId, IntentFlags, IntentKind, OrderSide, TimeInForce};
use versions::Versions;
pub(crate) use versions::{Cause, Includes};

/// Units of cleaning per event: an execution or a record whose time is over. An event adds at most two.
const CLEANED_PER_EVENT: u32 = 4;

/// Where an order is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The record is free.
    #[default]
    Free,
    /// Accepted; the venue has not answered.
    Reserved,
    /// The venue has the order.
    Live,
    /// Ended by its executions alone: the venue may have enlarged it meanwhile.
    Filled,
    /// Cancelled, rejected, expired, unsent, or filled as the venue has stated.
    Ended,
}

/// An order: two cache lines. Quantities are in lots, prices in price steps.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(crate) struct Record {
    pub(crate) client_id: u64,
    /// The limit price; of a market order the price at which it was checked.
    pub(crate) limit_px: i64,
    pub(crate) trigger_px: i64,
    pub(crate) qty: i64,
    /// Sum of the executions that were applied.
    pub(crate) executed: i64,
    /// The largest sum of executions that the venue has stated.
    pub(crate) venue_executed: i64,
    /// Of an ended order: when its id and its executions are forgotten. With a gap: when the account is in doubt.
    pub(crate) deadline_ns: u64,
    /// When the last cancel passed.
    pub(crate) cancel_ns: u64,
    /// The terms of a pending replace.
    pub(crate) replace_px: i64,
    pub(crate) replace_qty: i64,
    pub(crate) replace_trigger_px: i64,
    pub(crate) account: u16,
    pub(crate) strategy: u16,
    pub(crate) instrument: InstrumentId,
    /// The level at which the order rests, and the one of the pending replace.
    pub(crate) level: u32,
    pub(crate) replace_level: u32,
    /// Neighbours in the list of the row's open orders; `row_next` links free records.
    pub(crate) row_previous: u32,
    pub(crate) row_next: u32,
    /// The first of the order's executions.
    pub(crate) executions: u32,
    /// The row of the order's strategy.
    pub(crate) route: u32,
    pub(crate) phase: Phase,
    pub(crate) kind: IntentKind,
    pub(crate) side: OrderSide,
    pub(crate) tif: TimeInForce,
    pub(crate) flags: IntentFlags,
    pub(crate) bits: Bits,
}

const _: () = assert!(size_of::<Record>() == 128);

/// Bits of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(u16);

impl Bits {
    /// A cancel has passed and was not answered.
    pub(crate) const CANCEL_PENDING: u16 = 1;
    /// A replace has passed and was not answered.
    pub(crate) const REPLACE_PENDING: u16 = 2;
    /// The record waits for executions.
    pub(crate) const GAP_WAITS: u16 = 4;
    /// The record waits in the queue of ended orders.
    pub(crate) const END_QUEUED: u16 = 8;
    /// Known from a fill only: the order's quantity is unknown.
    pub(crate) const UNKNOWN_TERMS: u16 = 16;
    /// Executions that the venue has stated have not come in time.
    pub(crate) const GAP_OVERDUE: u16 = 32;
    /// The venue works the old and the new terms at once while a replace is pending.
    pub(crate) const REPLACE_ADDS: u16 = 64;
    /// The terms that were asked for are in the index.
    pub(crate) const TERMS_KEPT: u16 = 128;
    /// The venue has changed the order, and the versions of its reports are kept.
    pub(crate) const VERSIONS_KEPT: u16 = 256;

    pub(crate) const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    pub(crate) const fn set(&mut self, bit: u16) {
        self.0 |= bit;
    }

    pub(crate) const fn clear(&mut self, bit: u16) {
        self.0 &= !bit;
    }
}

impl Record {
    pub(crate) const FREE: Self = Self {
        client_id: 0,
        limit_px: 0,
        trigger_px: 0,
        qty: 0,
        executed: 0,
        venue_executed: 0,
        deadline_ns: 0,
        cancel_ns: 0,
        replace_px: 0,
        replace_qty: 0,
        replace_trigger_px: 0,
        account: 0,
        strategy: 0,
        instrument: InstrumentId(0),
        level: NIL,
        replace_level: NIL,
        row_previous: NIL,
        row_next: NIL,
        executions: NIL,
        route: NIL,
        phase: Phase::Free,
        kind: IntentKind::LIMIT,
        side: OrderSide::Buy,
        tif: TimeInForce::GOOD_TILL_CANCEL,
        flags: IntentFlags(0),
        bits: Bits(0),
    };

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Reserved | Phase::Live)
    }

    /// Returns what is left of the order's quantity.
    pub(crate) fn leaves(&self) -> i64 {
        self.qty.saturating_sub(self.executed).max(0)
    }

    /// Returns the lots that the venue has executed and no fill has shown yet.
    pub(crate) fn gap(&self) -> i64 {
        self.venue_executed.saturating_sub(self.executed).max(0)
    }

    /// Returns the lots that the order reserves: while it is open the larger of its quantity and that of a pending replace;
    /// after the end the executions that are still to come.
    pub(crate) fn reserved(&self) -> i64 {
        if !self.is_open() {
            return self.gap().min(self.leaves());
        }
        if !self.bits.has(Bits::REPLACE_PENDING) {
            return self.leaves();
        }
        let replaced = self.replace_qty.saturating_sub(self.executed).max(0);
        if self.bits.has(Bits::REPLACE_ADDS) {
            return self.leaves().saturating_add(replaced);
        }
        self.leaves().max(replaced)
    }

    /// Returns the value of the lots that the order reserves, at its own prices.
    pub(crate) fn reserved_value(&self, contract: &Contract) -> i128 {
        let value = |px: i64, lots: i64| contract.cost(px, lots).unwrap_or(i64::MAX.into());
        if !self.is_open() || !self.bits.has(Bits::REPLACE_PENDING) {
            return value(self.limit_px, self.reserved());
        }
        let kept = value(self.limit_px, self.leaves());
        let replaced = value(self.replace_px, self.replace_qty.saturating_sub(self.executed).max(0));
        if self.bits.has(Bits::REPLACE_ADDS) { kept + replaced } else { kept.max(replaced) }
    }

    /// Returns whether an order of these terms rests in the book at its limit price.
    pub(crate) const fn rests(&self) -> bool {
        self.is_open() && !self.kind.is_market()
    }
}

/// What an order has reserved at each node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reserved {
    pub(crate) lots: i64,
    pub(crate) value: i128,
    /// What it holds of the account's balance.
    pub(crate) hold: i128,
}

/// All records with their indexes.
#[derive(Debug)]
pub(crate) struct Orders {
    pub(crate) records: Box<[Record]>,
    ids: Index,
    /// By the terms that were asked for, and these terms by record.
    terms: Index,
    asked: Box<[Asked]>,
    versions: Box<[Versions]>,
    /// By record: what is counted in the sums.
    pub(crate) counted: Box<[Reserved]>,
    pub(crate) executions: Executions,
    pub(crate) levels: Levels,
    /// By row: the first open order.
    row_first: Box<[u32]>,
    free: u32,
    free_len: u32,
    ended: List,
    gaps: List,
}

impl Orders {
    /// Tables for `rows` rows.
    pub(crate) fn new(rows: usize, records: u32, executions: u32) -> Self {
        let next = |slot: u32| if slot + 1 < records { slot + 1 } else { NIL };
        let count = records as usize;
        Self {
            records: (0..records).map(|slot| Record { row_next: next(slot), ..Record::FREE }).collect(),
            ids: Index::new(count),
            terms: Index::new(count),
            asked: vec![Asked::default(); count].into_boxed_slice(),
            versions: vec![Versions::default(); count].into_boxed_slice(),
            counted: vec![Reserved::default(); count].into_boxed_slice(),
            executions: Executions::new(executions),
            // An order rests at one price, and its replace at another.
            levels: Levels::new(rows, count * 2),
            row_first: vec![NIL; rows].into_boxed_slice(),
            free: if records > 0 { 0 } else { NIL },
            free_len: records,
            ended: List::new(count),
            gaps: List::new(count),
        }
    }

    /// Returns the number of further orders for which there is room.
    pub(crate) const fn free_len(&self) -> u32 {
        self.free_len
    }

    /// Returns the orders of `account` under `client_id` that are not forgotten at `now_ns`, latest first.
    fn named(&self, now_ns: u64, account: u16, client_id: u64) -> impl Iterator<Item = u32> {
        self.ids.chain(id_hash(account, client_id)).filter(move |slot| {
            let record = &self.records[*slot as usize];
            let is_it = record.client_id == client_id && record.account == account;
            is_it && (!record.bits.has(Bits::END_QUEUED) || now_ns < record.deadline_ns)
        })
    }

    /// Returns the order of `account` under `client_id`; an open one before an ended one.
    pub(crate) fn find(&self, now_ns: u64, account: u16, client_id: u64) -> Option<u32> {
        let mut named = self.named(now_ns, account, client_id);
        let first = named.next()?;
        let is_open = |slot: &u32| self.records[*slot as usize].is_open();
        if is_open(&first) { Some(first) } else { named.find(is_open).or(Some(first)) }
    }

    /// Returns the order of `account` in `instrument` under `client_id`.
    pub(crate) fn find_in(&self, now_ns: u64, account: u16, instrument: InstrumentId, client_id: u64) -> Option<u32> {
        self.named(now_ns, account, client_id).find(|slot| self.records[*slot as usize].instrument == instrument)
    }

    /// Adds `record`, an order of `row`, to the table, the list of the row and the levels; `None` without room.
    pub(crate) fn add(&mut self, row: usize, record: &Record) -> Option<u32> {
        let slot = self.free;
        let entry = self.records.get_mut(slot as usize)?;
        self.free = entry.row_next;
        self.free_len -= 1;
        *entry = Record { row_previous: NIL, row_next: NIL, ..*record };
        self.counted[slot as usize] = Reserved::default();
        self.ids.insert(id_hash(record.account, record.client_id), slot);
        if record.is_open() {
            self.open(row, slot);
        }
        Some(slot)
    }

    /// Adds an open record to the list of its row and to the levels.
    pub(crate) fn open(&mut self, row: usize, slot: u32) {
        let first = self.row_first[row];
        if let Some(first) = self.records.get_mut(first as usize) {
            first.row_previous = slot;
        }
        self.row_first[row] = slot;
        let record = &mut self.records[slot as usize];
        (record.row_previous, record.row_next) = (NIL, first);
        if record.rests() {
            record.level = self.levels.add(row, record.side, record.limit_px);
        }
    }

    /// Ends an open order in `phase`: it leaves the list of its row and the levels.
    pub(crate) fn close(&mut self, row: usize, slot: u32, phase: Phase) {
        self.drop_replace(row, slot);
        let record = &mut self.records[slot as usize];
        let Record { row_previous, row_next, level, side, .. } = *record;
        record.phase = phase;
        record.level = NIL;
        record.bits.clear(Bits::CANCEL_PENDING);
        if level != NIL {
            self.levels.remove(row, side, level);
        }
        match self.records.get_mut(row_previous as usize) {
            Some(previous) => previous.row_next = row_next,
            None => self.row_first[row] = row_next,
        }
        if let Some(next) = self.records.get_mut(row_next as usize) {
            next.row_previous = row_previous;
        }
    }

    /// Keeps the terms of a replace (price, quantity, trigger) until it is answered.
    pub(crate) fn begin_replace(&mut self, row: usize, slot: u32, [px, qty, trigger_px]: [i64; 3]) {
        let record = &mut self.records[slot as usize];
        (record.replace_px, record.replace_qty, record.replace_trigger_px) = (px, qty, trigger_px);
        record.bits.set(Bits::REPLACE_PENDING);
        if record.rests() {
            let side = record.side;
            let level = self.levels.add(row, side, px);
            self.records[slot as usize].replace_level = level;
        }
    }

    /// Forgets a pending replace.
    pub(crate) fn drop_replace(&mut self, row: usize, slot: u32) {
        let record = &mut self.records[slot as usize];
        record.bits.clear(Bits::REPLACE_PENDING);
        record.bits.clear(Bits::REPLACE_ADDS);
        let level = core::mem::replace(&mut record.replace_level, NIL);
        if level != NIL {
            let side = record.side;
            self.levels.remove(row, side, level);
        }
    }

    /// Moves an open order to another limit price.
    pub(crate) fn move_level(&mut self, row: usize, slot: u32, px: i64) {
        let record = &mut self.records[slot as usize];
        let (side, level) = (record.side, record.level);
        if px == record.limit_px || level == NIL {
            record.limit_px = px;
            return;
        }
        record.limit_px = px;
        self.levels.remove(row, side, level);
        let level = self.levels.add(row, side, px);
        self.records[slot as usize].level = level;
    }

    /// Keeps an ended order's id and executions until `deadline_ns`.
    pub(crate) fn keep_until(&mut self, slot: u32, deadline_ns: u64) {
        let record = &mut self.records[slot as usize];
        record.deadline_ns = deadline_ns;
        if !record.bits.has(Bits::END_QUEUED) {
            record.bits.set(Bits::END_QUEUED);
            self.ended.push(slot);
        }
    }

    /// Keeps an ended order that the venue has again.
    pub(crate) fn keep_open(&mut self, slot: u32) {
        let record = &mut self.records[slot as usize];
        if record.bits.has(Bits::END_QUEUED) {
            record.bits.clear(Bits::END_QUEUED);
            self.ended.remove(slot);
        }
    }

    /// Starts or ends the wait for the executions that an order lacks.
    pub(crate) fn update_gap(&mut self, slot: u32, deadline_ns: u64) {
        let record = &mut self.records[slot as usize];
        let (waits, is_overdue) = (record.bits.has(Bits::GAP_WAITS), record.bits.has(Bits::GAP_OVERDUE));
        match (record.gap() > 0, waits) {
            (true, false) if !is_overdue => {
                record.bits.set(Bits::GAP_WAITS);
                record.deadline_ns = deadline_ns;
                self.gaps.push(slot);
            }
            (false, _) => {
                record.bits.clear(Bits::GAP_WAITS);
                record.bits.clear(Bits::GAP_OVERDUE);
                if waits {
                    self.gaps.remove(slot);
                }
            }
            _ => {}
        }
    }

    /// Returns the next order that has lacked executions for too long; it waits no longer.
    #[inline(always)]
    pub(crate) fn poll_gap(&mut self, now_ns: u64) -> Option<u32> {
        let slot = self.gaps.first()?;
        (now_ns >= self.records[slot as usize].deadline_ns).then(|| self.end_gap(slot))
    }

    #[inline(never)]
    fn end_gap(&mut self, slot: u32) -> u32 {
        let record = &mut self.records[slot as usize];
        record.bits.clear(Bits::GAP_WAITS);
        record.bits.set(Bits::GAP_OVERDUE);
        self.gaps.remove(slot);
        slot
    }

    /// Frees records and executions whose time is over; returns the account of a record that was freed.
    #[inline(always)]
    pub(crate) fn clean(&mut self, now_ns: u64, freed: impl FnMut(u16)) {
        // Most events find nothing: the loop is elsewhere, so that they need not prepare it.
        if let Some(slot) = self.ended.first()
            && now_ns >= self.records[slot as usize].deadline_ns
        {
            self.clean_ended(now_ns, freed);
        }
    }

    #[inline(never)]
    fn clean_ended(&mut self, now_ns: u64, mut freed: impl FnMut(u16)) {
        for _ in 0..CLEANED_PER_EVENT {
            let Some(slot) = self.ended.first() else { return };
            let record = &mut self.records[slot as usize];
            if now_ns < record.deadline_ns {
                return;
            }
            if record.executions != NIL {
                self.executions.remove_first(&mut record.executions);
                continue;
            }
            self.ended.remove(slot);
            let Record { account, client_id, bits, .. } = *record;
            if bits.has(Bits::TERMS_KEPT) {
                let hash = self.asked[slot as usize].hash(&Way::of(record));
                self.terms.remove(hash, slot);
            }
            self.ids.remove(id_hash(account, client_id), slot);
            *record = Record { row_next: self.free, ..Record::FREE };
            self.free = slot;
            self.free_len += 1;
            freed(account);
        }
    }

    /// Returns the first open order of `row`.
    pub(crate) fn first_open(&self, row: usize) -> Option<u32> {
        Some(self.row_first[row]).filter(|slot| *slot != NIL)
    }

    /// Returns the open order after `slot` in its row.
    pub(crate) fn next_open(&self, slot: u32) -> Option<u32> {
        Some(self.records[slot as usize].row_next).filter(|next| *next != NIL)
    }
}

const fn id_hash(account: u16, client_id: u64) -> u64 {
    hash(client_id, account as u64)
}
