//! Messages packed by flate2, framed as RFC 6455 section 5.2 says, whole and byte by byte.

use flate2::{Compress, Compression, FlushCompress};

use super::*;

const MAX: usize = 1 << 20;
const ANSWER: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";

fn pack(packer: &mut Compress, bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(2 * bytes.len() + 1024);
    let before = packer.total_in();
    while packer.total_in() - before < bytes.len() as u64 || !packed.ends_with(&TAIL) {
        let taken = (packer.total_in() - before) as usize;
        packer.compress_vec(&bytes[taken..], &mut packed, FlushCompress::Sync).unwrap();
    }
    assert!(packed.ends_with(&TAIL));
    packed.truncate(packed.len() - TAIL.len());
    packed
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        len @ ..126 => frame.push(len as u8),
        len @ ..65_536 => {
            frame.push(126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

/// What comes out for `input`, given in parts of `step` bytes.
fn unpacked(unpacker: &mut Unpacker, input: &[u8], step: usize) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    for bytes in input.chunks(step) {
        unpacker.take(bytes, &mut out)?;
    }
    Ok(out)
}

/// After an answer that takes the offer.
fn negotiated() -> Unpacker {
    let mut unpacker = Unpacker::new(true, MAX);
    assert_eq!(unpacked(&mut unpacker, ANSWER, ANSWER.len()).unwrap(), ANSWER);
    assert!(!unpacker.is_plain());
    unpacker
}

#[test]
fn packed_fragmented_and_plain_messages_come_out_as_they_were() {
    let long: Vec<u8> = (0..200_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let text = br#"{"channel":"book","type":"update","data":[{"symbol":"BTC/USD"}]}"#;
    let mut packer = Compress::new(Compression::default(), false);
    let mut input = ANSWER.to_vec();
    let mut expected = ANSWER.to_vec();
    for _ in 0..3 {
        // With the window of the message before.
        input.extend(frame(FINAL | PACKED | 1, &pack(&mut packer, text)));
        expected.extend(frame(FINAL | 1, text));
    }
    let packed = pack(&mut packer, &long);
    let (one, rest) = packed.split_at(1000);
    let (two, three) = rest.split_at(70_000);
    input.extend(frame(PACKED | 2, one));
    input.extend(frame(FINAL | 9, b"ping"));
    input.extend(frame(0, two));
    input.extend(frame(FINAL, three));
    expected.extend(frame(FINAL | 9, b"ping"));
    expected.extend(frame(FINAL | 2, &long));
    // What is not packed, fragments too.
    for plain in [frame(1, b"half"), frame(FINAL, b" and half"), frame(FINAL | 1, text), frame(FINAL | 1, b"")] {
        input.extend(&plain);
        expected.extend(&plain);
    }
    // Nothing, as section 7.2.3.6 packs it.
    input.extend(frame(FINAL | PACKED | 1, &[0]));
    expected.extend(frame(FINAL | 1, b""));
    for step in [1, 7, 4096, input.len()] {
        let out = unpacked(&mut Unpacker::new(true, MAX), &input, step).unwrap();
        assert!(out == expected, "in steps of {step}: {} bytes, not {}", out.len(), expected.len());
    }
}

#[test]
fn the_examples_of_rfc_7692_section_7_2_3() {
    let hello = frame(FINAL | 1, b"Hello");
    for packed in [
        // 7.2.3.1: one block; as two fragments.
        &[0xc1, 0x07, 0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
        &[0x41, 0x03, 0xf2, 0x48, 0xcd, 0x80, 0x04, 0xc9, 0xc9, 0x07, 0x00],
        // 7.2.3.3: a block that is not compressed.
        &[0xc1, 0x0b, 0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
        // 7.2.3.4: a last block.
        &[0xc1, 0x08, 0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
        // 7.2.3.5: two blocks.
        &[0xc1, 0x0d, 0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
    ] {
        assert_eq!(unpacked(&mut negotiated(), packed, 1).unwrap(), hello, "{packed:02x?}");
    }
    // 7.2.3.2: the second message refers to the first one.
    let mut unpacker = negotiated();
    for packed in
        [&[0xc1, 0x07, 0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..], &[0xc1, 0x05, 0xf2, 0x00, 0x11, 0x00, 0x00]]
    {
        assert_eq!(unpacked(&mut unpacker, packed, 2).unwrap(), hello, "{packed:02x?}");
    }
}

#[test]
fn messages_packed_each_by_itself_need_no_window() {
    let answer = b"HTTP/1.1 101 X\r\nsec-websocket-extensions: permessage-deflate; server_no_context_takeover; server_max_window_bits=12\r\n\r\n";
    let mut unpacker = Unpacker::new(true, MAX);
    unpacked(&mut unpacker, answer, 5).unwrap();
    for _ in 0..3 {
        let packed = pack(&mut Compress::new(Compression::fast(), false), b"the same words, the same words");
        let out = unpacked(&mut unpacker, &frame(FINAL | PACKED | 1, &packed), 3).unwrap();
        assert_eq!(out, frame(FINAL | 1, b"the same words, the same words"));
    }
}

#[test]
fn case_m25_what_grows_beyond_the_cap_is_given_up_there() {
    let mut packer = Compress::new(Compression::best(), false);
    let bomb = pack(&mut packer, &vec![0; 64 << 20]);
    assert!(bomb.len() < 80_000, "{}", bomb.len());
    let mut unpacker = negotiated();
    let mut out = Vec::new();
    assert_eq!(unpacker.take(&frame(FINAL | PACKED | 1, &bomb), &mut out), Err(Fault::TooLong));
    assert!(
        out.is_empty() && unpacker.message.capacity() <= 2 * (MAX + CHUNK_BYTES),
        "{}",
        unpacker.message.capacity()
    );
    // In fragments that are small by themselves, too.
    let mut unpacker = negotiated();
    let mut input = frame(PACKED | 1, &bomb[..10]);
    bomb[10..].chunks(100).for_each(|part| input.extend(frame(0, part)));
    assert_eq!(unpacked(&mut unpacker, &input, 50), Err(Fault::TooLong));
    // One that says that it will be too long is not waited for.
    let head = [FINAL | PACKED | 1, 127, 0, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(negotiated().take(&head, &mut Vec::new()), Err(Fault::TooLong));
    // To the cap and no byte further.
    for (len, is_taken) in [(MAX, true), (MAX + 1, false)] {
        let packed = pack(&mut Compress::new(Compression::best(), false), &vec![7; len]);
        assert_eq!(
            unpacked(&mut negotiated(), &frame(FINAL | PACKED | 2, &packed), 1 << 20).is_ok(),
            is_taken,
            "{len}"
        );
    }
}

#[test]
fn what_is_no_deflate_or_was_not_offered_is_refused() {
    assert_eq!(unpacked(&mut negotiated(), &frame(FINAL | PACKED | 1, &[0xff; 40]), 8), Err(Fault::Corrupt));
    assert_eq!(unpacked(&mut Unpacker::new(false, MAX), ANSWER, 9), Err(Fault::Extension));
    let unknown = b"HTTP/1.1 101 X\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=9\r\n\r\n";
    assert_eq!(unpacked(&mut Unpacker::new(true, MAX), unknown, 9), Err(Fault::Extension));
    // An answer that does not take the offer.
    let mut plain = Unpacker::new(true, MAX);
    let input = [&b"HTTP/1.1 101 X\r\n\r\n"[..], &frame(FINAL | PACKED | 1, b"x")].concat();
    assert_eq!(unpacked(&mut plain, &input, 4).unwrap(), input);
    assert!(plain.is_plain());
}

#[test]
fn case_m26_a_head_without_an_end_is_given_up_at_its_cap() {
    let mut unpacker = Unpacker::new(false, MAX);
    let mut out = Vec::new();
    unpacker.take(b"HTTP/1.1 101 X\r\nPadding: ", &mut out).unwrap();
    let fault = (0..).find_map(|_| unpacker.take(&[b'a'; 1000], &mut out).err());
    assert_eq!(fault, Some(Fault::Head));
    assert!(out.len() <= HEAD_BYTES_MAX && unpacker.head.len() <= HEAD_BYTES_MAX);
}
