//! Messages on a stream (RFC 8489 section 6.2.2, RFC 8656 section 12.5).

use std::thread;
use std::time::{Duration, Instant};

use tt_turn::codec::{Class, Method, TransactionId, attribute};

use super::check::{Check, Finding, Over, Unmet, expect};
use super::judge::{Judge, LOST_AFTER};
use super::probe::{Delivery, Probe, UDP, channel_data, payload_text};
use super::signature::{Signature, compose};
use crate::client::transaction_id;

const S: &str = "RFC 8656 section 12.5";
const S6: &str = "RFC 8489 section 6.2.2";
const NUMBER: u16 = 0x4000;
/// Time between two pieces, so that they are not joined on the way.
const PAUSE: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(2);
/// Messages in one write.
const JOINED: usize = 20;

pub(super) const CHECKS: &[Check] = &[
    stream("A70", S, "a message in two pieces is answered, wherever it is cut", split),
    stream("A70", S, "a message byte by byte is answered", byte_by_byte),
    stream("A70", S, "twenty messages in one piece get twenty responses", joined),
    stream("R015", S6, "a response comes over the connection of its request", same_connection),
    stream("A70", S, "ChannelData in two pieces reach the peer whole", split_channel_data),
    stream("A70", S, "ChannelData and a request in one piece are both served", mixed),
    stream("R112", S, "ChannelData to the client are padded to four bytes", padded),
    stream("R071", "RFC 8656 section 7.2", "the connection goes on after an error response", after_error),
];

const fn stream(
    id: &'static str,
    section: &'static str,
    title: &'static str,
    judge: fn(&Judge<'_>) -> Finding,
) -> Check {
    Check::must(id, section, title, judge).over(Over::Stream)
}

fn binding() -> Result<(Vec<u8>, TransactionId), Unmet> {
    let message = compose(Method::Binding, Class::Request, &[], &Signature::default())?;
    let id = message.get(8..).and_then(<[u8]>::first_chunk).copied();
    Ok((message, id.unwrap_or(transaction_id()?)))
}

fn expect_response(probe: &mut Probe, id: TransactionId) -> Finding {
    let reply = probe.await_reply(id, Instant::now() + PATIENCE)?;
    reply.map_or(Err(Unmet::failed("a response", "none within 2 s")), |reply| reply.expect_success())
}

fn send_in_pieces(probe: &mut Probe, message: &[u8], cut: usize) -> Finding {
    let (head, tail) = message.split_at_checked(cut).unwrap_or((message, &[]));
    probe.send(head)?;
    thread::sleep(PAUSE);
    probe.send(tail)
}

fn split(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    for cut in 1..20 {
        let (message, id) = binding()?;
        send_in_pieces(&mut probe, &message, cut)?;
        expect_response(&mut probe, id)?;
    }
    Ok(())
}

fn byte_by_byte(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let (message, id) = binding()?;
    for byte in message {
        probe.send(&[byte])?;
    }
    expect_response(&mut probe, id)
}

fn joined(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.stranger()?;
    let (mut bytes, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..JOINED {
        let (message, id) = binding()?;
        bytes.extend(message);
        ids.push(id);
    }
    probe.send(&bytes)?;
    // Responses may come in any order.
    let mut answered = 0;
    let until = Instant::now() + PATIENCE;
    while answered < ids.len() {
        let Some(bytes) = probe.next(until)? else { break };
        answered += usize::from(ids.iter().any(|id| bytes.get(8..20) == Some(&id[..])));
    }
    expect(answered == JOINED, "twenty responses", answered.to_string())
}

fn same_connection(judge: &Judge<'_>) -> Finding {
    let (mut one, mut other) = (judge.stranger()?, judge.stranger()?);
    let ((first, first_id), (second, second_id)) = (binding()?, binding()?);
    one.send(&first)?;
    other.send(&second)?;
    expect_response(&mut one, first_id)?;
    expect_response(&mut other, second_id)
}

fn split_channel_data(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = judge.relaying()?;
    probe.bind(NUMBER, peer.addr())?.expect_success()?;
    for cut in 1..12 {
        let payload = [b'a' + u8::try_from(cut).unwrap_or(0); 7];
        send_in_pieces(&mut probe, &channel_data(NUMBER, &payload, true), cut)?;
        let received = peer.receive(PATIENCE)?.map(|(_, received)| received);
        let text = format!("{} after a cut at {cut}", payload_text(received.as_deref()));
        expect(received.as_deref() == Some(&payload[..]), payload_text(Some(&payload)), text)?;
    }
    Ok(())
}

fn mixed(judge: &Judge<'_>) -> Finding {
    let (mut probe, _, mut peer) = judge.relaying()?;
    probe.bind(NUMBER, peer.addr())?.expect_success()?;
    let (message, id) = binding()?;
    let data = channel_data(NUMBER, b"first", true);
    probe.send(&[&data[..], &message, &data].concat())?;
    expect_response(&mut probe, id)?;
    for _ in 0..2 {
        let received = peer.receive(PATIENCE)?.map(|(_, received)| received);
        expect(received.as_deref() == Some(b"first"), "the payload twice", payload_text(received.as_deref()))?;
    }
    Ok(())
}

/// A response behind unpadded data would be read from the wrong byte.
fn padded(judge: &Judge<'_>) -> Finding {
    let (mut probe, relayed, mut peer) = judge.relaying()?;
    probe.bind(NUMBER, peer.addr())?.expect_success()?;
    for length in 1..=4_usize {
        let payload = vec![0x21; length];
        peer.send(relayed, &payload)?;
        // Whatever follows completes a message that lacks its padding.
        let (message, id) = binding()?;
        let data = probe.data(LOST_AFTER)?;
        probe.send(&message)?;
        expect_response(&mut probe, id)
            .map_err(|_| Unmet::failed("ChannelData padded to four bytes", format!("none of {length} bytes")))?;
        let expected = Delivery::Channel { number: NUMBER, payload };
        let text = data.as_ref().map_or_else(|| "nothing".to_owned(), Delivery::to_string);
        expect(data.as_ref() == Some(&expected), expected.to_string(), text)?;
    }
    Ok(())
}

fn after_error(judge: &Judge<'_>) -> Finding {
    let mut probe = judge.client()?;
    let reply = probe.request(Method::Refresh, &[])?;
    expect(reply.is_error(), "an error response", reply.text())?;
    let signature = probe.signature();
    let reply = probe.signed(Method::Allocate, &[UDP], &signature)?;
    reply.expect_success()?;
    reply.expect_attribute(attribute::XOR_RELAYED_ADDRESS, "XOR-RELAYED-ADDRESS")
}
