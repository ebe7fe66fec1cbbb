//! The walk over attributes: a right header around any bytes, so that every input reaches it.

use crate::naive::COOKIE;

/// Wraps `data` into a message and compares what is read of it.
pub fn run(data: &[u8]) {
    let (kind, body) = data.split_at(data.len().min(2));
    let body = &body[..(body.len() & !3).min(0xFFFC)];
    let mut message = vec![kind.first().copied().unwrap_or(0) & 0x3F, kind.get(1).copied().unwrap_or(1)];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(COOKIE);
    message.extend([0x5A; 12]);
    message.extend(body);
    crate::codec::read(&message);
    crate::receiver::ask(data);
}
