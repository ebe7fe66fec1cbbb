//! Inputs and answers as bytes. All integers are little-endian.

pub(super) mod fields;
pub(super) mod fixed;

use gate_limits::LimitsFile;
use tt_model::{InstrumentId, Report};
use tt_os::clock::WallTime;
use tt_risk::money::{Conversion, Ratio};
use tt_risk::{GateError, InstrumentState, KillSwitch, Mark, Mode, Outcome};

use crate::input::{Answer, Input};
use fields::{
    Take, added, put_difference, put_i64, put_late_fields, put_limits, put_statement, put_u16, put_u32, put_u64,
    set_intent, set_mark, set_report, set_verdict,
};

/// The layout of the bodies. It changes if the meaning of a known kind changes.
const LAYOUT: u16 = 1;

const BEGIN: u16 = 1;
const RESTART: u16 = 2;
const INTENT: u16 = 3;
const REPORT: u16 = 4;
const MARK: u16 = 5;
const MODE: u16 = 6;
const STATE: u16 = 7;
const RESUME: u16 = 8;
const ADOPT: u16 = 9;
const RECONCILE: u16 = 10;
const TIME: u16 = 11;
const JOURNAL_LOST: u16 = 12;
const LIMITS: u16 = 13;
/// A report with a fee.
const REPORT_FEE: u16 = 14;
const LOAD: u16 = 15;
const CONVERSION: u16 = 16;
const BALANCE: u16 = 17;
const EQUITY: u16 = 18;
const DAY: u16 = 19;
const ENABLE: u16 = 20;
const CANCEL_SCOPE: u16 = 21;
/// A report with a fee and a version.
const REPORT_VERSION: u16 = 22;
/// A mark with the time of its proof.
const MARK_PROOF: u16 = 23;
const SUSPENDED: u16 = 24;
const WALL: u16 = 25;
/// Limits with the wall time that decides which temporary ones are in force.
const LOAD_WALL: u16 = 26;
const REFUSALS: u16 = 27;

/// The error of a wall clock that is not known.
const NO_ERROR: u64 = u64::MAX;

const MODES: [Mode; 3] = [Mode::Active, Mode::Reduce, Mode::Kill];
const ERRORS: [GateError; 5] = [
    GateError::Unknown,
    GateError::LimitOutOfRange,
    GateError::QtyOutOfRange,
    GateError::UnknownOrder,
    GateError::Full,
];

/// Adds `input` and `answer` to the end of `out`; returns the record's kind.
pub(super) fn encode(out: &mut Vec<u8>, input: &Input, answer: &Answer) -> u16 {
    let kind = encode_input(out, input);
    match answer {
        Answer::Verdict(verdict) => set_verdict(added(out), verdict),
        Answer::Outcome(outcome) => out.push(*outcome as u8),
        Answer::Differences(differences) => {
            put_u32(out, differences.len() as u32);
            differences.iter().for_each(|difference| put_difference(out, *difference));
        }
        Answer::Applied(applied) => out.push(byte_of(applied)),
    }
    kind
}

#[inline(always)]
fn byte_of(applied: &Result<(), GateError>) -> u8 {
    match applied {
        Ok(()) => 0,
        Err(error) => 1 + ERRORS.iter().position(|known| known == error).unwrap_or(0) as u8,
    }
}

fn encode_input(out: &mut Vec<u8>, input: &Input) -> u16 {
    match input {
        Input::Begin { limits } => {
            put_u16(out, LAYOUT);
            put_u32(out, limits.len() as u32);
            out.extend_from_slice(limits.as_bytes());
            BEGIN
        }
        Input::Restart => RESTART,
        Input::Intent { producer, generation, intent } => {
            put_u16(out, *producer);
            put_u32(out, *generation);
            set_intent(added(out), intent);
            INTENT
        }
        Input::Report(report) => {
            set_report(added(out), report);
            put_late_fields(out, report)
        }
        Input::Mark(instrument, mark) => {
            put_u32(out, instrument.0);
            set_mark(added(out), mark);
            if mark.proof_ns == 0 {
                return MARK;
            }
            put_u64(out, mark.proof_ns);
            MARK_PROOF
        }
        Input::Mode(switch, mode) => {
            put_switch(out, *switch);
            out.push(*mode as u8);
            MODE
        }
        Input::State(instrument, state) => {
            put_u32(out, instrument.0);
            out.push(*state as u8);
            STATE
        }
        Input::Resume(producer, last_seq) => {
            put_u16(out, *producer);
            put_u64(out, *last_seq);
            RESUME
        }
        Input::Adopt(account) => {
            put_u16(out, *account);
            ADOPT
        }
        Input::Reconcile(statement) => {
            put_statement(out, statement);
            RECONCILE
        }
        Input::Time => TIME,
        Input::Limits(account, instrument, limits) => {
            put_u16(out, *account);
            put_u32(out, instrument.0);
            put_limits(out, limits);
            LIMITS
        }
        Input::Load(..)
        | Input::Conversion(..)
        | Input::Balance(..)
        | Input::Equity(..)
        | Input::Day
        | Input::Enable(..)
        | Input::CancelScope(_)
        | Input::JournalLost(_)
        | Input::Suspended
        | Input::Refusals(..)
        | Input::Wall(_) => encode_limits_input(out, input),
    }
}

/// Writes the inputs that belong to a limits file of format 2, and what came after it.
fn encode_limits_input(out: &mut Vec<u8>, input: &Input) -> u16 {
    if let Input::Load(limits, wall_ns) = input {
        out.extend_from_slice(limits.hash());
        put_u32(out, limits.text().len() as u32);
        out.extend_from_slice(limits.text().as_bytes());
        let Some(wall_ns) = wall_ns else { return LOAD };
        put_u64(out, *wall_ns);
        return LOAD_WALL;
    }
    if let Input::Conversion(currency, Conversion { rate: Ratio { num, den }, ts_ns }) = input {
        put_u16(out, *currency);
        [num, den, ts_ns].iter().for_each(|value| put_u64(out, **value));
        return CONVERSION;
    }
    if let Input::Balance(account, currency, total) = input {
        put_u16(out, *account);
        put_u16(out, *currency);
        put_i64(out, *total);
        return BALANCE;
    }
    if let Input::Equity(account, equity) = input {
        put_u16(out, *account);
        put_i64(out, *equity);
        return EQUITY;
    }
    if let Input::Enable(account, strategy) = input {
        put_u16(out, *account);
        put_u16(out, *strategy);
        return ENABLE;
    }
    if let Input::CancelScope(scope) = input {
        put_switch(out, *scope);
        return CANCEL_SCOPE;
    }
    if let Input::JournalLost(is_lost) = input {
        out.push(u8::from(*is_lost));
        return JOURNAL_LOST;
    }
    if let Input::Refusals(producer, due_ns) = input {
        put_u16(out, *producer);
        put_u64(out, *due_ns);
        return REFUSALS;
    }
    if let Input::Wall(WallTime { unix_ns, error_ns }) = input {
        put_u64(out, *unix_ns);
        put_u64(out, error_ns.unwrap_or(NO_ERROR));
        return WALL;
    }
    if let Input::Suspended = input { SUSPENDED } else { DAY }
}

/// Writes the level of a switch, and its number there.
fn put_switch(out: &mut Vec<u8>, switch: KillSwitch) {
    let (level, number) = match switch {
        KillSwitch::Global => (0, 0),
        KillSwitch::Account(account) => (1, account.into()),
        KillSwitch::Strategy(strategy) => (2, strategy.into()),
        KillSwitch::Instrument(instrument) => (3, instrument.0),
    };
    out.push(level);
    put_u32(out, number);
}

fn take_switch(from: &mut Take<'_>) -> Option<KillSwitch> {
    let (level, number) = (from.u8()?, from.u32()?);
    match level {
        0 => Some(KillSwitch::Global),
        1 => Some(KillSwitch::Account(u16::try_from(number).ok()?)),
        2 => Some(KillSwitch::Strategy(u16::try_from(number).ok()?)),
        3 => Some(KillSwitch::Instrument(InstrumentId(number))),
        _ => None,
    }
}

/// Reads a record. `None` for an unknown kind or layout, or a body that does not have the form of its kind.
pub(super) fn decode(kind: u16, body: &[u8]) -> Option<(Input, Answer)> {
    let mut from = Take(body);
    let input = decode_input(kind, &mut from)?;
    let answer = match kind {
        INTENT => Answer::Verdict(from.verdict()?),
        REPORT | REPORT_FEE | REPORT_VERSION => {
            let number = usize::from(from.u8()?);
            Answer::Outcome(Outcome::NAMES.get(number)?.1)
        }
        RECONCILE => {
            let count = from.u32()?;
            Answer::Differences((0..count).map(|_| from.difference()).collect::<Option<_>>()?)
        }
        _ => Answer::Applied(match from.u8()? {
            0 => Ok(()),
            number => Err(*ERRORS.get(usize::from(number) - 1)?),
        }),
    };
    from.0.is_empty().then_some((input, answer))
}

fn decode_input(kind: u16, from: &mut Take<'_>) -> Option<Input> {
    Some(match kind {
        BEGIN => {
            let layout = from.u16()?;
            let len = from.u32()? as usize;
            let text = from.bytes(len)?;
            let limits = String::from_utf8(text.to_vec()).ok().filter(|_| layout == LAYOUT)?;
            Input::Begin { limits }
        }
        RESTART => Input::Restart,
        INTENT => Input::Intent { producer: from.u16()?, generation: from.u32()?, intent: from.intent()? },
        REPORT => Input::Report(from.report()?),
        REPORT_FEE => {
            let report = from.report()?;
            Input::Report(Report { fee: from.i64()?, ..report })
        }
        REPORT_VERSION => {
            let report = from.report()?;
            Input::Report(Report { fee: from.i64()?, version: from.u64()?, ..report })
        }
        MARK => {
            let instrument = InstrumentId(from.u32()?);
            Input::Mark(instrument, from.mark()?)
        }
        MARK_PROOF => {
            let instrument = InstrumentId(from.u32()?);
            let mark = from.mark()?;
            Input::Mark(instrument, Mark { proof_ns: from.u64()?, ..mark })
        }
        MODE => {
            let switch = take_switch(from)?;
            Input::Mode(switch, *MODES.get(usize::from(from.u8()?))?)
        }
        STATE => Input::State(InstrumentId(from.u32()?), *InstrumentState::ALL.get(usize::from(from.u8()?))?),
        RESUME => Input::Resume(from.u16()?, from.u64()?),
        ADOPT => Input::Adopt(from.u16()?),
        RECONCILE => Input::Reconcile(from.statement()?),
        TIME => Input::Time,
        JOURNAL_LOST => Input::JournalLost(from.bool()?),
        LIMITS => Input::Limits(from.u16()?, InstrumentId(from.u32()?), from.limits()?),
        LOAD => Input::Load(take_limits(from)?, None),
        LOAD_WALL => Input::Load(take_limits(from)?, Some(from.u64()?)),
        CONVERSION => {
            let currency = from.u16()?;
            let rate = Ratio { num: from.u64()?, den: from.u64()? };
            Input::Conversion(currency, Conversion { rate, ts_ns: from.u64()? })
        }
        BALANCE => Input::Balance(from.u16()?, from.u16()?, from.i64()?),
        EQUITY => Input::Equity(from.u16()?, from.i64()?),
        DAY => Input::Day,
        ENABLE => Input::Enable(from.u16()?, from.u16()?),
        CANCEL_SCOPE => Input::CancelScope(take_switch(from)?),
        SUSPENDED => Input::Suspended,
        REFUSALS => Input::Refusals(from.u16()?, from.u64()?),
        WALL => {
            let (unix_ns, error_ns) = (from.u64()?, from.u64()?);
            Input::Wall(WallTime { unix_ns, error_ns: Some(error_ns).filter(|error_ns| *error_ns != NO_ERROR) })
        }
        _ => return None,
    })
}

fn take_limits(from: &mut Take<'_>) -> Option<Box<LimitsFile>> {
    let hash: [u8; 32] = from.array()?;
    let len = from.u32()? as usize;
    let text = str::from_utf8(from.bytes(len)?).ok()?;
    LimitsFile::parse(text).ok().filter(|limits| *limits.hash() == hash).map(Box::new)
}

#[cfg(test)]
mod tests;
