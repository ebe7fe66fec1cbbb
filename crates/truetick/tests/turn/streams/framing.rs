//! What arrives in pieces, in heaps, or wrong.

use std::net::Shutdown;

use super::{count, peer, probe, read_to_end, shown, start};
use crate::stream_client::{StreamClient, connect};
use testkit::turn_client::{COOKIE, XOR_MAPPED_ADDRESS, parse};

#[test]
fn case_a70_a_stream_in_single_bytes_is_the_same_stream() {
    let server = start(&[]);
    let mut client = StreamClient::new(connect(server.tcp[0]));
    let relayed = client.allocate().unwrap();
    let peer = peer();
    assert_eq!(client.bind_channel(0x4001, peer.local_addr().unwrap()), 0);
    let mut bytes = client.binding_request();
    for len in [0_usize, 1, 2, 3, 4, 5] {
        bytes.extend([0x40, 0x01, 0, len as u8]);
        bytes.extend(vec![len as u8; len.next_multiple_of(4)]);
        bytes.extend(client.binding_request());
    }
    for byte in &bytes {
        client.write(std::slice::from_ref(byte));
    }
    for _ in 0..7 {
        let (_, answer) = parse(&client.receive().unwrap());
        assert_eq!(answer.address(XOR_MAPPED_ADDRESS).unwrap(), client.stream.local_addr().unwrap());
    }
    let mut received = [0; 64];
    for len in [0_usize, 1, 2, 3, 4, 5] {
        let (length, from) = peer.recv_from(&mut received).unwrap();
        assert_eq!((&received[..length], from), (&vec![len as u8; len][..], relayed));
    }
    assert_eq!(server.stop().dropped, 0);
}

#[test]
fn case_a70_a_stream_cut_anywhere_is_the_same_stream() {
    let server = start(&[]);
    let mut client = StreamClient::new(connect(server.tcp[0]));
    client.allocate().unwrap();
    let peer = peer();
    assert_eq!(client.bind_channel(0x4001, peer.local_addr().unwrap()), 0);
    let payload = b"seven b";
    let mut received = [0; 64];
    let one = [&[0x40, 0x01, 0, 7][..], payload, &[0], &client.binding_request()].concat();
    for cut in 1..one.len() {
        client.write(&one[..cut]);
        // Once the other connection was answered, what came before on this one has been read.
        StreamClient::new(connect(server.tcp[0])).binding();
        client.write(&one[cut..]);
        let (length, _) = peer.recv_from(&mut received).unwrap();
        assert_eq!(&received[..length], payload, "cut at {cut}");
        assert_eq!(client.receive().unwrap()[..2], [0x01, 0x01], "cut at {cut}");
    }
    assert_eq!(server.stop().dropped, 0);
}

#[test]
fn case_a70_a_hundred_messages_at_once_and_padding_that_never_comes() {
    let server = start(&[]);
    let mut client = StreamClient::new(connect(server.tcp[0]));
    let requests: Vec<_> = (0..100).map(|_| client.binding_request()).collect();
    client.write(&requests.concat());
    for request in &requests {
        assert_eq!(client.receive().unwrap()[8..20], request[8..20], "in order");
    }
    client.allocate().unwrap();
    let peer = peer();
    assert_eq!(client.bind_channel(0x4001, peer.local_addr().unwrap()), 0);
    client.write(b"\x40\x01\x00\x05hello");
    client.stream.shutdown(Shutdown::Write).unwrap();
    let mut received = [0; 64];
    let (length, _) = peer.recv_from(&mut received).unwrap();
    assert_eq!(&received[..length], b"hello");
    assert_eq!(client.receive(), None);
    assert_eq!(server.stop().dropped, 0);
}

#[test]
fn case_a05_a_stun_length_at_the_end_of_its_range_is_no_other_message() {
    let server = start(&[]);
    for length in [0xFFEC_u16, 0xFFF0, 0xFFFC] {
        let mut client = StreamClient::new(connect(server.tcp[0]));
        let hidden = client.binding_request();
        let header = [&[0x00, 0x01][..], &length.to_be_bytes(), &COOKIE, &[7; 12]].concat();
        client.write(&[&header[..], &hidden].concat());
        assert_eq!(client.receive(), None, "closed, and what is behind the header is not answered");
    }
    let streams = shown(&server, "streams", |streams| streams["open"] == 0);
    assert_eq!(count(&streams["ended"], "too_long"), 3, "{streams}");
    // With an allocation it is waited for, whole, and its content is not a separate message.
    let mut client = StreamClient::new(connect(server.tcp[0]));
    client.allocate().unwrap();
    let hidden = client.binding_request();
    let header = [&[0x00, 0x16][..], &[0xFF, 0xFC], &COOKIE, &[7; 12]].concat();
    client.write(&[&header[..], &hidden, &vec![0; 65_532 - hidden.len()]].concat());
    assert_eq!(client.binding(), client.stream.local_addr().unwrap(), "the first answer is the next request's");
    probe(&server);
}

#[test]
fn case_a06_a_channel_length_at_the_end_of_its_range_is_no_short_frame() {
    let server = start(&[]);
    let mut client = StreamClient::new(connect(server.tcp[0]));
    client.allocate().unwrap();
    let peer = peer();
    assert_eq!(client.bind_channel(0x4001, peer.local_addr().unwrap()), 0);
    let hidden = client.binding_request();
    client.write(&[&[0x40, 0x01, 0xFF, 0xFF][..], &hidden].concat());
    // The rest of the 65,535 bytes, and the padding: no datagram carries as much.
    client.write(&vec![0; 65_536 - hidden.len()]);
    assert_eq!(client.binding(), client.stream.local_addr().unwrap(), "the first answer is the next request's");
    let ledger = shown(&server, "drops", |ledger| ledger["closes"] == true && ledger["in"] == 5);
    assert_eq!((count(&ledger["drops"], "send_too_large"), &ledger["dropped"]), (1, &1.into()), "{ledger}");
    // The largest that a datagram carries goes through.
    client.send_channel(0x4001, &[9; 65_507]);
    let mut received = vec![0; 65_536];
    let (length, _) = peer.recv_from(&mut received).unwrap();
    assert_eq!(received[..length], [9; 65_507]);
    probe(&server);
}

#[test]
fn case_a07_an_attribute_past_the_end_is_dropped_and_the_stream_goes_on() {
    let server = start(&[]);
    let mut client = StreamClient::new(connect(server.tcp[0]));
    let request = |attributes: &[u8]| {
        let length = (attributes.len() as u16).to_be_bytes();
        [&[0x00, 0x01][..], &length, &COOKIE, &[7; 12], attributes].concat()
    };
    for attribute in [[0x80, 0x22, 0, 8, 1, 2, 3, 4], [0x80, 0x22, 0xFF, 0xFF, 1, 2, 3, 4]] {
        client.write(&request(&attribute));
    }
    assert_eq!(client.binding(), client.stream.local_addr().unwrap(), "the first answer is the next request's");
    let ledger = shown(&server, "drops", |ledger| ledger["in"] == 3);
    assert_eq!((count(&ledger["drops"], "attribute"), &ledger["closes"]), (2, &true.into()), "{ledger}");
    // One to three stray bytes make a length that no STUN message has: the stream cannot be followed.
    client.write(&request(&[1, 2]));
    assert_eq!(client.receive(), None);
    probe(&server);
}

#[test]
fn what_is_no_stun_is_closed_at_once_and_counted() {
    let server = start(&[]);
    let junk: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: turn\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x80\x01",
        b"\x40\x01\x00\x04abcd",
        b"\x16\x03\x01\x00",
    ];
    for bytes in junk {
        let mut stream = connect(server.tcp[0]);
        std::io::Write::write_all(&mut stream, bytes).unwrap();
        assert_eq!(read_to_end(&mut stream), b"", "{bytes:?}");
    }
    let streams = shown(&server, "streams", |streams| streams["open"] == 0);
    assert_eq!(count(&streams["ended"], "not_stun"), 4, "{streams}");
    assert_eq!(count(&streams["ended"], "no_certificate"), 1, "{streams}");
    assert_eq!((&streams["accepted"], &streams["messages_in"]), (&5.into(), &0.into()), "{streams}");
    probe(&server);
}
