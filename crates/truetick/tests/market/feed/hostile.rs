//! Venues that break the rules of the WebSocket, or never stop: the connection ends with the right word, the next one is
//! made, and the engine has seen nothing of it.

use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::{Compress, Compression, FlushCompress};
use market_feed::Reader;
use tt_market::DropReason;
use tt_model::InstrumentId;

use super::SOON;
use super::venue::{FINAL, Hostile, Line, PING, TEXT, frame, trade};

const PACKED: u8 = 0x40;

/// Waits until the trade of that number is there.
fn see(reader: &Reader, id: u64) {
    let there = || reader.trades(InstrumentId(0)).iter().any(|print| print.trade_id == id);
    assert!(reader.wait(SOON, there), "trade {id}: {:?}", reader.status(0));
}

/// Shows that the connection works.
fn use_line(line: &mut Line, reader: &Reader, id: u64) {
    line.text(&trade(id));
    see(reader, id);
}

fn masked(text: &str) -> Vec<u8> {
    let mut bytes = vec![FINAL | TEXT, 0x80 | text.len() as u8, 1, 2, 3, 4];
    bytes.extend(text.bytes().zip([1, 2, 3, 4].into_iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

#[test]
fn case_m24_broken_frames_close_the_connection_with_their_code() {
    const PROTOCOL: u16 = 1002;
    const INVALID: u16 = 1007;
    const TOO_LONG: u16 = 1009;
    let nine_mebibytes = vec![b' '; 9 << 20];
    let broken: [(&str, Vec<u8>, u16); 13] = [
        ("a reserved bit", frame(FINAL | PACKED | TEXT, b"{}"), PROTOCOL),
        ("another reserved bit", frame(FINAL | 0x20 | TEXT, b"{}"), PROTOCOL),
        ("the third reserved bit", frame(FINAL | 0x10 | TEXT, b"{}"), PROTOCOL),
        ("a reserved bit of a ping", frame(FINAL | PACKED | PING, b""), PROTOCOL),
        ("a kind that there is not", frame(FINAL | 3, b"{}"), PROTOCOL),
        ("a control frame that there is not", frame(FINAL | 11, b""), PROTOCOL),
        ("a masked frame", masked("{}"), PROTOCOL),
        ("a ping in fragments", frame(PING, b"half"), PROTOCOL),
        ("a long ping", frame(FINAL | PING, &[b'x'; 126]), PROTOCOL),
        ("an end without a beginning", frame(FINAL, b"{}"), PROTOCOL),
        ("no UTF-8", frame(FINAL | TEXT, b"{\"channel\":\"\xff\xfe\"}"), INVALID),
        // One byte more than 16 MiB is message, and none is waited for.
        ("a long frame", vec![FINAL | TEXT, 127, 0, 0, 0, 0, 1, 0, 0, 1], TOO_LONG),
        ("long fragments", [frame(TEXT, &nine_mebibytes), frame(FINAL, &nine_mebibytes)].concat(), TOO_LONG),
    ];
    let venue = Hostile::new();
    let running = venue.followed(|_| {});
    let reader = running.reader();
    for (number, (name, bytes, code)) in (1..).zip(&broken) {
        let mut line = venue.established();
        use_line(&mut line, &reader, number);
        let frames = reader.status(0).frames;
        line.send(bytes);
        assert_eq!(line.close_code(), Some(*code), "{name}");
        assert!(reader.wait(SOON, || !reader.status(0).connected), "{name}");
        assert!(reader.status(0).frames <= frames + 4, "{name}: nothing of it was handed in");
    }
    let mut line = venue.established();
    use_line(&mut line, &reader, 100);
    assert_eq!(reader.trades(InstrumentId(0)).len(), broken.len() + 1);
    assert!(reader.wait(SOON, || reader.status(0).reconnects() == broken.len() as u64));
    running.stop();
}

#[test]
fn case_m24_fragments_with_control_frames_between_and_every_length_are_read() {
    let venue = Hostile::new();
    let running = venue.followed(|_| {});
    let reader = running.reader();
    let mut line = venue.established();
    let text = trade(1);
    let (one, rest) = text.as_bytes().split_at(10);
    let (two, three) = rest.split_at(50);
    for part in [
        frame(TEXT, one),
        frame(FINAL | PING, b"first"),
        frame(0, two),
        frame(FINAL | 10, b"a pong without a ping"),
        frame(FINAL | PING, b"second"),
        frame(0, b""),
        frame(FINAL, three),
    ] {
        line.send(&part);
    }
    see(&reader, 1);
    let mut pongs = Vec::new();
    while pongs.last().is_none_or(|last| last != b"second") {
        let (kind, payload) = line.receive().unwrap();
        pongs.extend((kind == 10).then_some(payload));
    }
    // Lengths of two bytes and of eight (RFC 6455 section 5.2), up to the longest.
    for (id, len) in [(2, 300), (3, 65_535), (4, 65_536), (5, 16 << 20)] {
        let mut padded = trade(id);
        padded.push_str(&" ".repeat(len - padded.len()));
        line.text(&padded);
        see(&reader, id);
    }
    assert_eq!(reader.status(0).connections, 1);
    running.stop();
}

#[test]
fn case_m25_a_packed_message_is_read_and_a_bomb_ends_at_the_cap() {
    let mut venue = Hostile::new();
    let pack = |bytes: &[u8]| {
        let mut packed = Vec::with_capacity(bytes.len() / 4 + 1024);
        Compress::new(Compression::best(), false).compress_vec(bytes, &mut packed, FlushCompress::Sync).unwrap();
        packed.truncate(packed.len() - 4);
        frame(FINAL | PACKED | TEXT, &packed)
    };
    let bomb = pack(&vec![b' '; 64 << 20]);
    assert!(bomb.len() < 80_000, "{}", bomb.len());
    let running = venue.followed(|feed| feed.compressed = true);
    venue.extra_head = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";
    let reader = running.reader();
    // The one without compression so far, which is upgraded now.
    for id in 1..=2 {
        let mut line = venue.established();
        assert!(line.head.contains("permessage-deflate"), "{}", line.head);
        line.send(&pack(trade(id).as_bytes()));
        see(&reader, id);
        line.send(&bomb);
        assert_eq!(line.close_code(), Some(1009));
    }
    let mut line = venue.established();
    use_line(&mut line, &reader, 3);
    running.stop();
    // A venue that packs without being asked is no venue.
    let mut venue = Hostile::new();
    let running = venue.followed(|_| {});
    venue.extra_head = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    let reader = running.reader();
    let mut line = venue.upgraded();
    assert!(!line.head.contains("permessage-deflate"), "{}", line.head);
    assert_eq!(line.receive(), None, "nothing is asked of it");
    venue.extra_head = "";
    let mut line = venue.established();
    use_line(&mut line, &reader, 1);
    assert!(reader.wait(SOON, || reader.status(0).connections == 1));
    running.stop();
}

#[test]
fn case_m26_a_head_of_20_megabytes_is_refused_at_its_cap() {
    let venue = Hostile::new();
    let running = venue.followed(|_| {});
    let reader = running.reader();
    let mut line = venue.accepted();
    // An answer before the request would be another fault, with another reason.
    line.read_head();
    line.send(b"HTTP/1.1 101 Switching Protocols\r\nX-Padding: ");
    let refused = (0..20).find(|_| line.stream.write_all(&[b'a'; 1 << 20]).is_err());
    assert!(refused.is_some(), "20 MB were taken");
    let mut line = venue.established();
    use_line(&mut line, &reader, 1);
    assert!(reader.wait(SOON, || reader.status(0).connected));
    let reason = reader.status(0).last_error.unwrap();
    assert!(reason.contains("head"), "{reason}");
    running.stop();
}

#[test]
fn case_m27_a_flood_of_pings_is_read_although_no_pong_is_taken() {
    const PINGS: usize = 200_000;
    let venue = Hostile::new();
    let running = venue.followed(|_| {});
    let reader = running.reader();
    let mut line = venue.established();
    // More pongs than both sockets and the client's own buffer hold: the client goes on without a word.
    let flood = flood();
    for _ in 0..PINGS / 1000 {
        let written = line.stream.write_all(&flood);
        assert!(written.is_ok(), "{written:?}: {:?}", reader.status(0).last_error);
    }
    use_line(&mut line, &reader, 1);
    line.send(&frame(FINAL | PING, b"the last"));
    let mut pongs = 0;
    loop {
        let (kind, payload) = line.receive().unwrap();
        pongs += usize::from(kind == 10);
        if payload == b"the last" {
            break;
        }
    }
    assert!((1..PINGS).contains(&pongs), "{pongs} pongs for {PINGS} pings: the others were bounded");
    assert_eq!(reader.status(0).connections, 1);
    running.stop();
}

/// A thousand pings and a heartbeat, because pings alone are silence.
fn flood() -> Vec<u8> {
    let pings = (0..1000).flat_map(|_| frame(FINAL | PING, &[b'p'; 125]));
    pings.chain(frame(FINAL | TEXT, br#"{"channel":"heartbeat"}"#)).collect()
}

/// The venue floods with pings until no pong can be kept for it, and spoils a book. The request for that book waits until
/// the venue reads again; what it sends is read meanwhile.
#[test]
fn case_m27_a_request_waits_for_a_venue_that_reads_nothing() {
    let venue = Hostile::new();
    let running = venue.followed(|_| {});
    let reader = running.reader();
    let mut line = venue.established();
    let flood = flood();
    for _ in 0..100 {
        line.stream.write_all(&flood).unwrap();
    }
    line.text(&Hostile::spoiled_book());
    for id in 1..=3 {
        use_line(&mut line, &reader, id);
    }
    assert!(
        reader.wait(SOON, || reader.counters(0).drops[DropReason::ChecksumMismatch as usize] > 0),
        "{:?}",
        reader.counters(0)
    );
    let (mut pongs, mut asked) = (0, Vec::new());
    while asked.len() < 2 {
        let (kind, payload) = line.receive().expect("the connection is as it was");
        pongs += usize::from(kind == 10);
        if kind == 1 {
            asked.push(serde_json::from_slice::<serde_json::Value>(&payload).unwrap()["method"].clone());
        }
    }
    assert_eq!(asked, ["unsubscribe", "subscribe"]);
    assert!(pongs > 0);
    assert_eq!(reader.status(0).connections, 1);
    running.stop();
}

#[test]
fn case_m28_half_a_message_is_dropped_with_its_connection() {
    let venue = Hostile::new();
    let running = venue.followed(|_| {});
    let reader = running.reader();
    let text = trade(99);
    let whole = frame(FINAL | TEXT, text.as_bytes());
    let close = frame(FINAL | 8, &1001_u16.to_be_bytes());
    let halves: [Vec<u8>; 4] = [
        whole[..1].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        frame(TEXT, text.as_bytes()),
        [frame(TEXT, text.as_bytes()), close].concat(),
    ];
    for (id, half) in (1..).zip(&halves) {
        let mut line = venue.established();
        use_line(&mut line, &reader, id);
        line.send(half);
        line.hang_up();
    }
    let mut line = venue.established();
    // An end of what was begun before is none on this connection.
    use_line(&mut line, &reader, 50);
    let seen: Vec<u64> = reader.trades(InstrumentId(0)).iter().map(|print| print.trade_id).collect();
    assert_eq!(seen, [1, 2, 3, 4, 50]);
    running.stop();
}

#[test]
fn case_m30_a_venue_that_drops_again_and_again_is_left_alone_for_longer_each_time() {
    const DROPS: u32 = 7;
    let first = Duration::from_millis(20);
    let venue = Hostile::new();
    let running = venue.followed(|feed| {
        feed.timing.backoff_min = first;
        feed.timing.backoff_max = Duration::from_secs(1);
    });
    let reader = running.reader();
    let mut before = None;
    for drop in 0..DROPS {
        let line = venue.upgraded();
        let at = Instant::now();
        if let Some((number, before)) = before {
            // Between half of twice as long each time, and the whole of it.
            let least = first * (1_u32 << number) / 2;
            assert!(at.duration_since(before) >= least.min(Duration::from_millis(500)), "{number}");
        }
        before = Some((drop, Instant::now()));
        line.hang_up();
    }
    // Each topic is asked for once, as `established` looks: nothing of the connections before is left over.
    let mut line = venue.established();
    use_line(&mut line, &reader, 1);
    line.send(&frame(FINAL | PING, b"any more?"));
    loop {
        let (kind, payload) = line.receive().unwrap();
        if kind == 10 && payload == b"any more?" {
            break;
        }
        assert!(
            String::from_utf8_lossy(&payload).contains("ping"),
            "asked twice: {}",
            String::from_utf8_lossy(&payload)
        );
    }
    running.stop();
}
