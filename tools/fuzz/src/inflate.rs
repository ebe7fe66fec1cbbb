//! Packed WebSocket messages (RFC 7692): however they are packed, framed and cut, the same messages come out.

use flate2::{Compress, Compression, FlushCompress};
use market_feed::unpack::Unpacker;

use crate::choices::Choices;

const MESSAGE_MAX: usize = 4096;

/// Builds a venue's bytes from `data`, or takes them as they are, with or without a right head, and unpacks them in pieces.
///
/// # Panics
/// A message is not what was packed, or the pieces matter.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let mut choices = Choices(rest);
    if kind.is_multiple_of(2) {
        let (stream, expected) = stream(&mut choices, kind & 2 != 0);
        assert_eq!(unpack(&stream, &mut choices), Ok(expected));
    } else {
        let (cuts, bytes) = rest.split_at(rest.len().min(8));
        let head = if kind & 4 == 0 { head(kind & 2 != 0) } else { Vec::new() };
        let stream = [head.as_slice(), bytes].concat();
        let whole = unpack(&stream, &mut Choices(&[]));
        assert_eq!(unpack(&stream, &mut Choices(cuts)).is_ok(), whole.is_ok(), "the pieces matter");
    }
}

fn head(is_fresh_each: bool) -> Vec<u8> {
    let parameter = if is_fresh_each { "; server_no_context_takeover" } else { "" };
    let fields = format!("Upgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate{parameter}\r\n\r\n");
    format!("HTTP/1.1 101 Switching Protocols\r\n{fields}").into_bytes()
}

/// Messages, packed and plain, and what a library without the extension is to read.
fn stream(choices: &mut Choices, is_fresh_each: bool) -> (Vec<u8>, Vec<u8>) {
    let mut stream = head(is_fresh_each);
    let mut expected = stream.clone();
    let mut packer = Compress::new(Compression::new(u32::from(choices.byte() % 10)), false);
    while !choices.is_spent() && stream.len() < 1 << 16 {
        let opcode = 1 + choices.byte() % 2;
        let repeats = usize::from(choices.byte() % 8) + 1;
        let len = usize::from(choices.byte() % 64);
        let message = choices.bytes(len).repeat(repeats);
        frame(&mut expected, 0x80 | opcode, &message);
        if choices.byte().is_multiple_of(4) {
            frame(&mut stream, 0x80 | opcode, &message);
            continue;
        }
        let packed = pack(&mut packer, &message);
        if is_fresh_each {
            packer.reset();
        }
        let (first, second) = packed.split_at(usize::from(choices.byte()) % (packed.len() + 1));
        if choices.byte().is_multiple_of(2) {
            frame(&mut stream, 0xC0 | opcode, &packed);
        } else {
            frame(&mut stream, 0x40 | opcode, first);
            frame(&mut stream, 0x80, second);
        }
    }
    (stream, expected)
}

/// RFC 7692 section 7.2.1: without the four bytes that end a sync flush.
fn pack(packer: &mut Compress, message: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(message.len() + 64);
    packer.compress_vec(message, &mut packed, FlushCompress::Sync).expect("memory is enough");
    packed.truncate(packed.len().saturating_sub(4));
    packed
}

/// RFC 6455 section 5.2, without a mask.
fn frame(out: &mut Vec<u8>, first: u8, payload: &[u8]) {
    out.push(first);
    match payload.len() {
        len @ ..126 => out.push(len as u8),
        len => {
            out.push(126);
            out.extend((len as u16).to_be_bytes());
        }
    }
    out.extend(payload);
}

/// The bytes that come out of `stream` in pieces of the lengths that `cuts` choose; in one piece without choices.
fn unpack(stream: &[u8], cuts: &mut Choices) -> Result<Vec<u8>, String> {
    let mut unpacker = Unpacker::new(true, MESSAGE_MAX);
    let (mut out, mut rest) = (Vec::new(), stream);
    while !rest.is_empty() {
        let len = if cuts.is_spent() { rest.len() } else { usize::from(cuts.byte()) + 1 };
        let (piece, later) = rest.split_at(len.min(rest.len()));
        unpacker.take(piece, &mut out).map_err(|error| error.to_string())?;
        rest = later;
    }
    Ok(out)
}
