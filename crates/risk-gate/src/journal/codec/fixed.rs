//! Records of the inputs that come all the time: their length is known, so that they are made and copied without a loop.
//!
//! They have the bytes that [`encode`](super::encode) gives.

use tt_journal::segments::HEAD_BYTES;
use tt_model::{InstrumentId, OrderIntent, Report, Verdict};
use tt_risk::{GateError, Mark, Outcome};

use super::fields::{set_intent, set_mark, set_report, set_verdict};
use super::{INTENT, MARK_PROOF, REPORT, byte_of};

/// A record of `BYTES` bytes with its head and the zeros behind its body of `BODY` bytes.
pub(in crate::journal) struct Fixed<const BODY: usize, const BYTES: usize> {
    pub(in crate::journal) kind: u16,
    pub(in crate::journal) bytes: [u8; BYTES],
}

impl<const BODY: usize, const BYTES: usize> Fixed<BODY, BYTES> {
    /// The part of `LEN` bytes at `at` of the body.
    #[inline(always)]
    fn part<const LEN: usize>(&mut self, at: usize) -> &mut [u8; LEN] {
        self.bytes[HEAD_BYTES + at..].first_chunk_mut().expect("a part is within its record")
    }
}

/// An intent with its verdict.
#[inline(always)]
pub(in crate::journal) fn judged(
    (producer, generation): (u16, u32),
    intent: &OrderIntent,
    verdict: &Verdict,
) -> Fixed<134, 168> {
    let mut record = Fixed { kind: INTENT, bytes: [0; _] };
    *record.part(0) = producer.to_le_bytes();
    *record.part(2) = generation.to_le_bytes();
    set_intent(record.part(6), intent);
    set_verdict(record.part(70), verdict);
    record
}

/// A mark with the time of its proof.
#[inline(always)]
pub(in crate::journal) fn marked(
    instrument: InstrumentId,
    mark: &Mark,
    applied: &Result<(), GateError>,
) -> Fixed<46, 80> {
    let mut record = Fixed { kind: MARK_PROOF, bytes: [0; _] };
    *record.part(0) = instrument.0.to_le_bytes();
    set_mark(record.part(4), mark);
    *record.part(37) = mark.proof_ns.to_le_bytes();
    *record.part(45) = [byte_of(applied)];
    record
}

/// A report without a fee or a version.
#[inline(always)]
pub(in crate::journal) fn reported(report: &Report, outcome: Outcome) -> Fixed<97, 136> {
    let mut record = Fixed { kind: REPORT, bytes: [0; _] };
    set_report(record.part(0), report);
    *record.part(96) = [outcome as u8];
    record
}
