//! Streams of STUN messages and ChannelData, whole and broken, cut into pieces: however it arrives, the same messages.

use tt_net::stream::{Framed, StreamFramer, Turn, frame};

use crate::naive::COOKIE;

/// Builds a stream and cuts from `data`, and holds the framer to what a reading of the whole stream gives.
///
/// # Panics
/// Where they disagree.
pub fn run(data: &[u8]) {
    let (cuts, rest) = data.split_at(data.len().min(4));
    let stream = stream(rest);
    let (expected, is_broken) = read_whole(&stream);
    let room = usize::from(cuts.first().copied().unwrap_or(0) % 5) + 1;
    assert_eq!(cut(&stream, cuts, room), (expected, is_broken));
    for turn in [Turn::First, Turn::Later] {
        match frame(&stream, turn) {
            Ok(Framed::Whole { len, padding }) => assert!(len <= stream.len() && padding < 4),
            Ok(Framed::Part { wants }) => assert!(stream.len() < wants && wants <= 20 + 65_532),
            Err(_) => {}
        }
    }
}

/// A byte says what comes next, another how long it is, and the rest fills it.
fn stream(mut data: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    while let [kind, length, rest @ ..] = data {
        let (body, after) = rest.split_at(rest.len().min(usize::from(length % 32)));
        match kind % 4 {
            0 => stream.extend(body),
            1 => {
                let body = &body[..body.len() & !3];
                stream.extend([kind >> 2, *length, 0, body.len() as u8]);
                stream.extend(COOKIE);
                stream.extend([0x5A; 12]);
                stream.extend(body);
            }
            2 => {
                stream.extend([0x40 | kind >> 2, *length, 0, body.len() as u8]);
                stream.extend(body);
                stream.extend(vec![0xFF; body.len().next_multiple_of(4) - body.len()]);
            }
            // A header whose length is as it comes.
            _ => {
                stream.extend([kind >> 1 & 0x7F, *length]);
                stream.extend(body.iter().take(2));
                stream.extend(COOKIE);
            }
        }
        data = after;
    }
    stream
}

/// RFC 8489 section 6.2.2 and RFC 8656 section 12.5, read from a stream of which all is known: the messages, and
/// whether what follows them can be none.
fn read_whole(stream: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut messages = Vec::new();
    let mut at = 0;
    while at < stream.len() {
        let rest = &stream[at..];
        let length = rest.get(2..4).map(|bytes| usize::from(bytes[0]) << 8 | usize::from(bytes[1]));
        let (len, step) = match (rest[0], length) {
            (0x00..=0x3F, None) => return (messages, false),
            (0x00..=0x3F, Some(length)) => {
                let cookie = &rest[4..rest.len().min(8)];
                if length % 4 != 0 || cookie != &COOKIE[..cookie.len()] {
                    return (messages, true);
                }
                (20 + length, 20 + length)
            }
            (0x40..=0x7F, _) if messages.is_empty() => return (messages, true),
            (0x40..=0x7F, None) => return (messages, false),
            (0x40..=0x7F, Some(length)) => (4 + length, 4 + length.div_ceil(4) * 4),
            (0x80.., _) => return (messages, true),
        };
        let Some(message) = rest.get(..len) else { return (messages, false) };
        messages.push(message.to_vec());
        at += step;
    }
    (messages, false)
}

/// The same stream in pieces of the lengths that `cuts` says, by turns, taken by somebody who has room for `room` messages
/// at a time.
fn cut(stream: &[u8], cuts: &[u8], room: usize) -> (Vec<Vec<u8>>, bool) {
    let mut framer = StreamFramer::default();
    let mut messages = Vec::new();
    let mut rest = stream;
    let mut lengths = cuts.iter().map(|cut| usize::from(cut % 40) + 1).cycle();
    loop {
        let (piece, later) = rest.split_at(lengths.next().unwrap_or(1).min(rest.len()));
        rest = later;
        let mut fresh = piece;
        let mut taken = 0;
        loop {
            match framer.next(&mut fresh, usize::MAX) {
                Ok(Some(message)) => messages.push(message.to_vec()),
                Ok(None) => break,
                Err(_) => return (messages, true),
            }
            taken += 1;
            if taken % room == 0 {
                // No room is left: what is there waits for the next turn.
                framer.hold(fresh);
                fresh = &[];
                assert!(framer.held_len() <= stream.len());
            }
        }
        assert_eq!(framer.has_begun(), !messages.is_empty());
        if rest.is_empty() {
            return (messages, false);
        }
    }
}
