//! Snapshots: a gate at a place of its journal, so that a start performs only the records behind it.
//!
//! A file `NUMBER.ttsnap`, named by the number of the last record. Integers are little-endian.
//!
//! ```text
//! offset size
//!      0    8  "TTSNAP\r\n"
//!      8    2  version: 3
//!     10    2  zero
//!     12   28  place in the journal
//!     40   32  SHA-256 of what follows
//!     72       version of the program, limits, numbers of the replay, capacity and words of the gate
//! ```

mod words;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use gate_limits::LimitsFile;
use sha2::{Digest as _, Sha256};
use tt_journal::JournalEnd;
use tt_risk::{Capacity, Gate, Mark};

use super::codec::fields::{Take, added, put_limits, put_u16, put_u32, put_u64, set_mark};
use super::replay::Replay;
use words::{WordReader, WordWriter};

const MAGIC: [u8; 8] = *b"TTSNAP\r\n";
/// The version of the layout. It changes with every change of a field's meaning.
const VERSION: u16 = 3;
/// The program that judges: another one may judge otherwise, and has to perform the whole journal.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
const HEAD_BYTES: usize = 12 + JournalEnd::BYTES + 32;

impl Replay {
    /// Returns the snapshot of this gate, which has performed the records up to `place`.
    pub fn snapshot(&mut self, place: &JournalEnd) -> Vec<u8> {
        let state = self.state();
        let mut out = MAGIC.to_vec();
        put_u16(&mut out, VERSION);
        put_u16(&mut out, 0);
        out.extend_from_slice(&place.to_bytes());
        out.extend_from_slice(&Sha256::digest(&state));
        out.extend_from_slice(&state);
        out
    }

    /// Returns the gate of a snapshot, and its place in the journal.
    ///
    /// # Errors
    /// It is damaged, or of another version.
    pub fn restore(snapshot: &[u8]) -> Result<(Self, JournalEnd)> {
        let mut from = Take(snapshot);
        let (magic, version) = (from.array(), from.u16());
        ensure!(magic == Some(MAGIC), "it is no snapshot");
        ensure!(version == Some(VERSION), "it is of another version of the format");
        ensure!(snapshot.len() > HEAD_BYTES && from.u16() == Some(0), "it is damaged");
        let place = JournalEnd::from_bytes(&from.array().context("it is damaged")?);
        let hash: [u8; 32] = from.array().context("it is damaged")?;
        ensure!(*Sha256::digest(from.0) == hash, "it is damaged");
        let mut this = Self::of_state(&mut from)?;
        ensure!(this.state_hash() == hash, "it is not read as it was written");
        ensure!(this.records == place.records, "it is of another place");
        Ok((this, place))
    }

    /// Returns the SHA-256 of everything that decides what the gate does next.
    pub fn state_hash(&mut self) -> [u8; 32] {
        Sha256::digest(self.state()).into()
    }

    fn state(&mut self) -> Vec<u8> {
        let Self { gate, limits, limits_ns, last_seqs, marks, changed_limits, is_journal_lost, records, now_ns } = self;
        let mut out = Vec::new();
        for text in [PROGRAM, limits.text()] {
            put_u32(&mut out, text.len() as u32);
            out.extend_from_slice(text.as_bytes());
        }
        [*limits_ns, *records, *now_ns].into_iter().for_each(|number| put_u64(&mut out, number));
        out.push(u8::from(*is_journal_lost));
        put_u32(&mut out, last_seqs.len() as u32);
        for (producer, last_seq) in last_seqs {
            put_u16(&mut out, *producer);
            put_u64(&mut out, *last_seq);
        }
        put_u32(&mut out, marks.len() as u32);
        for (instrument, (now_ns, mark)) in marks {
            put_u32(&mut out, *instrument);
            put_u64(&mut out, *now_ns);
            set_mark(added(&mut out), mark);
            put_u64(&mut out, mark.proof_ns);
        }
        put_u32(&mut out, changed_limits.len() as u32);
        for ((account, instrument), limits) in changed_limits {
            put_u16(&mut out, *account);
            put_u32(&mut out, *instrument);
            put_limits(&mut out, limits);
        }
        let Capacity { accounts, instruments, producers, orders, executions, routes, currencies } = *gate.capacity();
        [accounts, producers, currencies].into_iter().for_each(|number| put_u16(&mut out, number));
        [instruments, orders, executions, routes].into_iter().for_each(|number| put_u32(&mut out, number));
        let mut words = WordWriter::new(&mut out);
        gate.visit(&mut |column, word| words.put(column, *word));
        words.finish();
        out
    }

    fn of_state(from: &mut Take<'_>) -> Result<Self> {
        ensure!(take_text(from) == Some(PROGRAM), "another version of the program has written it");
        let limits = take_text(from).context("no limits")?;
        let limits = LimitsFile::parse(limits).context("its limits")?;
        Self::of_fields(from, limits).context("a field has a value that this version does not know")
    }

    fn of_fields(from: &mut Take<'_>, limits: LimitsFile) -> Option<Self> {
        let [limits_ns, records, now_ns] = [from.u64()?, from.u64()?, from.u64()?];
        let is_journal_lost = from.bool()?;
        let (mut last_seqs, mut marks, mut changed_limits) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for _ in 0..from.u32()? {
            last_seqs.insert(from.u16()?, from.u64()?);
        }
        for _ in 0..from.u32()? {
            let (instrument, set_ns, mark) = (from.u32()?, from.u64()?, from.mark()?);
            marks.insert(instrument, (set_ns, Mark { proof_ns: from.u64()?, ..mark }));
        }
        for _ in 0..from.u32()? {
            changed_limits.insert((from.u16()?, from.u32()?), from.limits()?);
        }
        let [accounts, producers, currencies] = [from.u16()?, from.u16()?, from.u16()?];
        let [instruments, orders, executions, routes] = [from.u32()?, from.u32()?, from.u32()?, from.u32()?];
        let capacity = Capacity { accounts, instruments, producers, orders, executions, routes, currencies };
        let mut gate = Gate::new(capacity);
        let mut words = WordReader::new(from.0);
        let is_sound = gate.visit(&mut |column, word| *word = words.take(column));
        (is_sound && words.is_at_end()).then_some(Self {
            gate,
            limits,
            limits_ns,
            last_seqs,
            marks,
            changed_limits,
            is_journal_lost,
            records,
            now_ns,
        })
    }
}

fn take_text<'a>(from: &mut Take<'a>) -> Option<&'a str> {
    let len = from.u32()? as usize;
    str::from_utf8(from.bytes(len)?).ok()
}
