//! Faults of frames between the venue and the client.

use std::collections::VecDeque;

use sim::Venue;
use tt_market::ConnectionId;
use tt_model::Nanos;

use super::script::Ill;
use super::words::{BID_QUANTITY, Kind};

/// Something on its way to the client.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) arrives: Nanos,
    pub(super) connection: ConnectionId,
    /// Steps that its instrument had made when it was sent.
    pub(super) steps: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// A frame.
    Frame { bytes: Vec<u8>, kind: Kind, claim: Claim },
    /// A frame of the instrument with that index that led to that update id of the script was lost here.
    Lost { index: usize, update_id: u64 },
    /// The venue's end of the connection.
    End,
}

/// States that must not be published after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing is wrong with the frame.
    Whole,
    /// It cannot be understood: no book of the connection may stand as verified.
    Unreadable,
    /// It may or may not be understood.
    Marred,
    /// Its checksum does not fit: its book may not stand as verified.
    Mismatched,
    /// It is a best quote that is not the book's at this update id: the book may not stand as verified there.
    Misquoted(u64),
}

/// The faults that wait for the next update of one instrument's book.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) waiting: VecDeque<(Ill, u64)>,
    /// The same for the next best quotes.
    pub(super) quotes: VecDeque<u64>,
    /// The update after the next one, and the steps that it covers.
    swapped: Option<(Vec<u8>, usize)>,
}

impl Layer {
    /// The update that was to come later: a snapshot goes before nothing that it holds.
    pub(super) fn release(&mut self, index: usize) -> Option<(usize, What)> {
        let (bytes, steps) = self.swapped.take()?;
        Some((steps, What::Frame { bytes, kind: Kind::Update(index), claim: Claim::Marred }))
    }

    /// The connection has ended, and what was to come later on it.
    pub(super) fn forget(&mut self) {
        self.swapped = None;
    }

    /// Returns the best quote after `update_id` as it arrives.
    pub(super) fn quote(&mut self, index: usize, frame: Vec<u8>, update_id: u64) -> What {
        let (bytes, claim) = match self.quotes.pop_front() {
            Some(draw) => (flip(frame, BID_QUANTITY.as_bytes(), draw), Claim::Misquoted(update_id)),
            None => (frame, Claim::Whole),
        };
        What::Frame { bytes, kind: Kind::Quote(index), claim }
    }

    /// Returns the frames that arrive for an update, in order. `update_id` is the script's.
    pub(super) fn pass(
        &mut self,
        venue: Venue,
        index: usize,
        frame: Vec<u8>,
        update_id: u64,
        steps: usize,
    ) -> Vec<(usize, What)> {
        let whole = |bytes| What::Frame { bytes, kind: Kind::Update(index), claim: Claim::Whole };
        // A sign of life carries nothing that could be missed.
        if frame.windows(20).any(|part| part == b"\"asks\":[],\"bids\":[],") {
            return vec![(steps, whole(frame))];
        }
        if let Some((late, late_steps)) = self.swapped.take() {
            // The one that is missing is on its way, behind the one that should have followed it.
            return vec![
                (steps, What::Lost { index, update_id }),
                (steps, whole(frame)),
                (late_steps, What::Frame { bytes: late, kind: Kind::Update(index), claim: Claim::Marred }),
            ];
        }
        let marred = |bytes, claim| What::Frame { bytes, kind: Kind::Update(index), claim };
        let Some((ill, draw)) = self.waiting.pop_front() else { return vec![(steps, whole(frame))] };
        let what = match ill {
            Ill::Drop => What::Lost { index, update_id },
            Ill::Swap => {
                self.swapped = Some((frame, steps));
                return Vec::new();
            }
            Ill::Duplicate => return vec![(steps, whole(frame.clone())), (steps, marred(frame, Claim::Marred))],
            Ill::Truncate => marred(frame[..frame.len() / 2].to_vec(), Claim::Unreadable),
            Ill::Garbage => {
                let mut bytes = frame;
                let at = draw as usize % bytes.len();
                bytes[at] = 0xff;
                marred(bytes, Claim::Marred)
            }
            Ill::FlipDigit if venue == Venue::Kraken => marred(flip(frame, QUANTITY, draw), Claim::Marred),
            Ill::Checksum if venue == Venue::Kraken => marred(other_checksum(frame), Claim::Mismatched),
            Ill::FlipDigit | Ill::Checksum | Ill::Misquote => whole(frame),
        };
        vec![(steps, what)]
    }
}

/// Comes before a quantity of Kraken's.
const QUANTITY: &[u8] = b"\"qty\":";

/// Another digit in one of the quantities, which come after `mark`.
fn flip(mut frame: Vec<u8>, mark: &[u8], draw: u64) -> Vec<u8> {
    let quantities: Vec<usize> = frame
        .windows(mark.len())
        .enumerate()
        .filter(|(_, part)| *part == mark)
        .map(|(at, _)| at + mark.len())
        .collect();
    if let Some(&from) = quantities.get(draw as usize % quantities.len().max(1)) {
        let len = frame[from..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        let digits: Vec<usize> = (from..from + len).filter(|&at| frame[at].is_ascii_digit()).collect();
        let at = digits[(draw >> 32) as usize % digits.len()];
        frame[at] = if frame[at] == b'9' { b'1' } else { frame[at] + 1 };
    }
    frame
}

fn other_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    const MARK: &[u8] = b"\"checksum\":";
    if let Some(at) = frame.windows(MARK.len()).position(|part| part == MARK) {
        let digit = &mut frame[at + MARK.len()];
        *digit = if *digit == b'1' { b'2' } else { b'1' };
    }
    frame
}
