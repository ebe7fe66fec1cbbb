use proptest::collection::vec;
use proptest::prelude::*;

use super::{Framed, FramingFault, MESSAGE_LEN_MAX, StreamFramer, Turn, frame};

fn stun(attributes: &[u8]) -> Vec<u8> {
    let length = (attributes.len() as u16).to_be_bytes();
    [&[0x00, 0x01], &length[..], &[0x21, 0x12, 0xA4, 0x42], &[7; 12], attributes].concat()
}

/// ChannelData and the padding behind it.
fn channel_data(payload: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let message = [&[0x40, 0x01], &(payload.len() as u16).to_be_bytes()[..], payload].concat();
    let padding = vec![0xFF; (4 - payload.len() % 4) % 4];
    (message, padding)
}

/// What the framer makes of `pieces`, given one after the other.
fn messages<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>, FramingFault> {
    let mut framer = StreamFramer::default();
    let mut seen = Vec::new();
    for piece in pieces {
        let mut fresh = piece;
        while let Some(message) = framer.next(&mut fresh, usize::MAX)? {
            seen.push(message.to_vec());
        }
        assert!(fresh.is_empty());
    }
    Ok(seen)
}

/// A stream of some messages of both kinds, and the messages.
fn stream() -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut whole = vec![stun(&[])];
    let mut bytes = whole[0].clone();
    for len in [0, 1, 2, 3, 4, 5, 160] {
        let (message, padding) = channel_data(&vec![len as u8; len]);
        bytes.extend([&message[..], &padding].concat());
        whole.push(message);
        let message = stun(&vec![0xAA; len * 4]);
        bytes.extend(&message);
        whole.push(message);
    }
    (bytes, whole)
}

#[test]
fn case_a70_a_stream_cut_at_every_byte_gives_the_same_messages() {
    let (bytes, whole) = stream();
    assert_eq!(messages([&bytes[..]]).unwrap(), whole, "in one piece");
    assert_eq!(messages(bytes.chunks(1)).unwrap(), whole, "byte by byte");
    for cut in 0..=bytes.len() {
        let (one, other) = bytes.split_at(cut);
        assert_eq!(messages([one, other]).unwrap(), whole, "cut at {cut}");
    }
}

#[test]
fn case_a70_a_hundred_messages_in_one_piece_and_in_rooms_of_seven() {
    let (message, padding) = channel_data(b"hello");
    let bytes = [stun(&[]), [&message[..], &padding].concat().repeat(99)].concat();
    assert_eq!(messages([&bytes[..]]).unwrap().len(), 100);
    // A driver that takes seven at a time and has the rest kept.
    let mut framer = StreamFramer::default();
    framer.hold(&bytes);
    let mut count = 0;
    loop {
        let mut fresh: &[u8] = &[];
        let taken = (0..7).take_while(|_| framer.next(&mut fresh, usize::MAX).unwrap().is_some()).count();
        framer.hold(&[]);
        count += taken;
        if taken == 0 {
            break;
        }
    }
    assert_eq!((count, framer.held_len()), (100, 0));
}

#[test]
fn case_a70_a_payload_whose_padding_never_comes_is_a_message() {
    let (message, _) = channel_data(b"hello");
    assert_eq!(messages([&stun(&[])[..], &message]).unwrap()[1], message);
}

#[test]
fn case_a05_a06_lengths_at_the_end_of_their_range_are_no_other_message() {
    for length in [0xFFEC_u16, 0xFFF0, 0xFFFC] {
        let mut bytes = stun(&[0; 60]);
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let wants = 20 + usize::from(length);
        assert_eq!(frame(&bytes, Turn::First), Ok(Framed::Part { wants }));
        assert_eq!(messages([&bytes[..]]).unwrap(), Vec::<Vec<u8>>::new());
        bytes.resize(wants, 0);
        assert_eq!(messages([&bytes[..]]).unwrap(), [&bytes[..]]);
    }
    let mut bytes = [&[0x40, 0x01, 0xFF, 0xFF][..], &[0; 1_000]].concat();
    assert_eq!(frame(&bytes, Turn::Later), Ok(Framed::Part { wants: 65_539 }));
    bytes.resize(65_539, 0);
    assert_eq!(frame(&bytes, Turn::Later), Ok(Framed::Whole { len: 65_539, padding: 1 }));
}

#[test]
fn rejects_non_stun_at_its_first_wrong_byte() {
    let first = |bytes: &[u8]| frame(bytes, Turn::First);
    for junk in [&b"G"[..], b"P", b"\x16\x03", b"\x80", b"\xFF", b"\x40\x01\x00\x00"] {
        let wants = first(junk);
        let is_hello = junk[0] == 0x16;
        assert_eq!(wants, if is_hello { Ok(Framed::Part { wants: 20 }) } else { Err(FramingFault::NotStun) });
    }
    assert!(first(b"\x16\x03\x01\x02\x00\x01").is_err(), "a TLS record has no cookie");
    for (at, right) in (4..8).zip([0x21, 0x12, 0xA4, 0x42]) {
        let mut bytes = stun(&[]);
        assert_eq!(bytes[at], right);
        bytes[at] ^= 1;
        assert_eq!(first(&bytes[..=at]), Err(FramingFault::NotStun));
        assert_eq!(first(&bytes[..at]), Ok(Framed::Part { wants: 20 }));
    }
    for length in [1, 2, 3, 0xFFFD] {
        let mut bytes = stun(&[]);
        bytes[2..4].copy_from_slice(&u16::to_be_bytes(length));
        assert_eq!(first(&bytes), Err(FramingFault::Length));
    }
    assert_eq!(frame(b"\x80", Turn::Later), Err(FramingFault::NotStun));
    assert_eq!(messages([&stun(&[])[..], b"\xC0"]), Err(FramingFault::NotStun));
}

#[test]
fn rejects_a_long_message_by_its_header() {
    let bytes = stun(&[0; 100]);
    let next =
        |len_max| StreamFramer::default().next(&mut &bytes[..8], len_max).map(|message| message.map(<[u8]>::len));
    assert_eq!((next(119), next(120)), (Err(FramingFault::TooLong), Ok(None)));
}

#[test]
fn nothing_is_held_between_messages() {
    let mut framer = StreamFramer::default();
    let bytes = stun(&[1; 8]);
    let mut fresh = &bytes[..25];
    assert_eq!(framer.next(&mut fresh, usize::MAX), Ok(None));
    assert_eq!(framer.held_len(), 25);
    let mut fresh = &bytes[25..];
    assert_eq!(framer.next(&mut fresh, usize::MAX), Ok(Some(&bytes[..])));
    assert_eq!(framer.next(&mut &[][..], usize::MAX), Ok(None));
    assert_eq!((framer.held_len(), framer.held.capacity()), (0, 0));
}

proptest! {
    /// However a stream is cut, and even where it is none, the messages and the fault are the same.
    #[test]
    fn cuts_change_nothing(
        kinds in vec((any::<bool>(), vec(any::<u8>(), 0..40)), 0..20),
        junk in vec(any::<u8>(), 0..30),
        cuts in vec(1_usize..30, 1..40),
    ) {
        let mut bytes = stun(&[]);
        for (is_stun, payload) in kinds {
            let (message, padding) = channel_data(&payload);
            bytes.extend(if is_stun { stun(&payload[..payload.len() / 4 * 4]) } else { [message, padding].concat() });
        }
        bytes.extend(junk);
        let mut rest = &bytes[..];
        let mut pieces = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, other) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = other;
        }
        prop_assert_eq!(messages(pieces), messages([&bytes[..]]));
    }

    #[test]
    fn any_bytes_are_measured_within_bounds(bytes in vec(any::<u8>(), 0..100)) {
        for turn in [Turn::First, Turn::Later] {
            match frame(&bytes, turn) {
                Ok(Framed::Whole { len, padding }) => prop_assert!(len <= bytes.len() && padding < 4 && len >= 4),
                Ok(Framed::Part { wants }) => prop_assert!(bytes.len() < wants && wants <= MESSAGE_LEN_MAX),
                Err(fault) => prop_assert_ne!(fault, FramingFault::TooLong),
            }
        }
    }
}
