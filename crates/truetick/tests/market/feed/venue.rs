//! A venue that speaks Kraken's words over a WebSocket of raw bytes, so that it can break every rule.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use market_feed::{self as market, FeedConfig, MarketConfig, RecordingConfig};
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};
use tt_venue::Venue;

/// Everything that is waited for happens within this time, also on a busy machine.
const SOON: Duration = Duration::from_secs(60);

pub(crate) const SYMBOL: &str = "BTC/USD";
pub(crate) const FINAL: u8 = 0x80;
pub(crate) const TEXT: u8 = 1;
pub(crate) const PING: u8 = 9;

/// A frame of a server, RFC 6455 section 5.2.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
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

/// A trade in Kraken's words.
pub(crate) fn trade(id: u64) -> String {
    format!(
        r#"{{"channel":"trade","type":"update","data":[{{"symbol":"{SYMBOL}","side":"buy","price":61800.1,"qty":0.5,"ord_type":"market","trade_id":{id},"timestamp":"2026-08-01T12:00:00.000000Z"}}]}}"#
    )
}

/// The venue.
pub(crate) struct Hostile {
    listener: TcpListener,
    /// Additional headers of its response.
    pub(crate) extra_head: &'static str,
}

impl Hostile {
    pub(crate) fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").unwrap(), extra_head: "" }
    }

    /// A client, after it has subscribed the instrument.
    pub(crate) fn followed(&self, change: impl FnOnce(&mut FeedConfig)) -> market::Runner {
        self.recorded(None, change)
    }

    /// The same, with a recording.
    pub(crate) fn recorded(
        &self,
        recording: Option<RecordingConfig>,
        change: impl FnOnce(&mut FeedConfig),
    ) -> market::Runner {
        let streams = format!("ws://{}/v2", self.listener.local_addr().unwrap()).parse().unwrap();
        let mut feed = FeedConfig::at(Venue::Kraken, streams, vec![SYMBOL.to_owned()]);
        feed.timing.backoff_min = Duration::from_millis(10);
        feed.timing.backoff_max = Duration::from_millis(640);
        change(&mut feed);
        let config = MarketConfig { feeds: vec![feed], recording, ..MarketConfig::default() };
        let started = thread::spawn(move || market::start(config).unwrap());
        let mut line = self.upgraded();
        let asked = line.receive().unwrap();
        assert!(String::from_utf8_lossy(&asked.1).contains("instrument"), "{asked:?}");
        line.text(&Self::list(0.1));
        started.join().unwrap()
    }

    /// Its list of instruments.
    pub(crate) fn list(tick_size: f64) -> String {
        let pair = json!({"symbol": SYMBOL, "price_increment": tick_size, "qty_increment": 1e-8});
        json!({"channel": "instrument", "type": "snapshot", "data": {"assets": [], "pairs": [pair]}}).to_string()
    }

    /// A book whose checksum is that of another one.
    pub(crate) fn spoiled_book() -> String {
        let level = |px: f64| json!([{"price": px, "qty": 1.0}]);
        let book = json!({"symbol": SYMBOL, "bids": level(100.0), "asks": level(100.1), "checksum": 1});
        json!({"channel": "book", "type": "snapshot", "data": [book]}).to_string()
    }

    /// The next connection, before anything is read of it.
    pub(crate) fn accepted(&self) -> Line {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.set_write_timeout(Some(SOON)).unwrap();
        Line { stream, head: String::new() }
    }

    /// The next connection as a WebSocket.
    pub(crate) fn upgraded(&self) -> Line {
        let mut line = self.accepted();
        line.read_head();
        let mut fields = line.head.lines().filter_map(|text| text.split_once(':'));
        let key = fields.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key")).map(|(_, key)| key.trim());
        let digest = Sha1::new().chain_update(key.unwrap()).chain_update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
        let accept = base64::engine::general_purpose::STANDARD.encode(digest.finalize());
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{}\r\n",
            self.extra_head
        );
        line.send(answer.as_bytes());
        line
    }

    /// The next connection, with everything that it asks for accepted.
    pub(crate) fn established(&self) -> Line {
        let mut line = self.upgraded();
        for topic in ["book", "ticker", "trade"] {
            let (_, asked) = line.receive().unwrap();
            let asked: Value = serde_json::from_slice(&asked).unwrap();
            assert_eq!((&asked["method"], &asked["params"]["channel"]), (&json!("subscribe"), &json!(topic)));
            let result = json!({"channel": topic, "symbol": SYMBOL});
            line.text(
                &json!({"method": "subscribe", "req_id": asked["req_id"], "result": result, "success": true})
                    .to_string(),
            );
        }
        line
    }
}

/// One connection.
pub(crate) struct Line {
    pub(crate) stream: TcpStream,
    /// The head of its request.
    pub(crate) head: String,
}

impl Line {
    pub(crate) fn read_head(&mut self) {
        while !self.head.ends_with("\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).unwrap();
            self.head.push(char::from(byte[0]));
        }
    }

    /// Sends bytes; the client may have gone.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.send(&frame(FINAL | TEXT, text.as_bytes()));
    }

    /// The client's next frame: its kind and what it holds; `None` when the connection is over.
    pub(crate) fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.read(&mut head)?;
        assert_eq!(head[1] & 0x80, 0x80, "clients mask their frames");
        let len = match head[1] & 0x7f {
            126 => {
                let mut two = [0; 2];
                self.read(&mut two)?;
                usize::from(u16::from_be_bytes(two))
            }
            127 => panic!("a client has nothing to say that is so long"),
            len => usize::from(len),
        };
        let mut mask = [0; 4];
        self.read(&mut mask)?;
        let mut payload = vec![0; len];
        self.read(&mut payload)?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        Some((head[0] & 0x0f, payload))
    }

    fn read(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self.stream.read_exact(bytes) {
            Ok(()) => Some(()),
            Err(error) => {
                assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "nothing came in time");
                None
            }
        }
    }

    /// The code that the client closes with, after whatever else it sends.
    pub(crate) fn close_code(&mut self) -> Option<u16> {
        loop {
            let (kind, payload) = self.receive()?;
            if kind == 8 {
                return payload.first_chunk().map(|code| u16::from_be_bytes(*code));
            }
        }
    }

    pub(crate) fn hang_up(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
