//! Intents that come over a TCP connection, as from another process.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use anyhow::Context as _;
use tt_model::{InstrumentId, IntentFlags, IntentKind, OrderIntent, OrderSide, Price, Qty, TimeInForce, Verdict};

use super::Line;

/// Bytes of an intent on the wire.
const BYTES: usize = size_of::<OrderIntent>();

/// Intents of one read at most.
const READ_MAX: usize = 64;

/// A client, the gateway that reads its intents, and the line into which the gateway puts them. Client and gateway are
/// one thread; the kernel takes each intent through the whole of TCP in between.
pub(super) struct TcpLine<'a, L> {
    line: &'a mut L,
    client: TcpStream,
    gateway: TcpStream,
    received: [u8; BYTES * READ_MAX],
    /// Bytes of `received` that came, and those of them that went on.
    came: usize,
    taken: usize,
    /// Bytes that the client has written and the gateway has not read.
    on_the_way: usize,
    failed: Option<io::Error>,
}

impl<'a, L: Line> TcpLine<'a, L> {
    /// Connects a client on the loopback interface.
    ///
    /// # Errors
    /// There is no loopback interface.
    pub(super) fn connect(line: &'a mut L) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on the loopback interface")?;
        let client =
            TcpStream::connect(listener.local_addr()?).context("cannot connect over the loopback interface")?;
        let (gateway, _) = listener.accept()?;
        client.set_nodelay(true)?;
        gateway.set_nonblocking(true)?;
        let received = [0; BYTES * READ_MAX];
        Ok(Self { line, client, gateway, received, came: 0, taken: 0, on_the_way: 0, failed: None })
    }

    /// What the connection failed with.
    ///
    /// # Errors
    /// It failed.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.failed.map_or(Ok(()), |error| Err(error).context("the connection failed"))
    }

    /// Reads what has come and sends on every whole intent.
    #[inline(always)]
    fn forward(&mut self) {
        if self.on_the_way > 0 {
            match self.gateway.read(&mut self.received[self.came..]) {
                Ok(read) => {
                    self.came += read;
                    self.on_the_way -= read;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => self.failed = Some(error),
            }
        }
        while let Some(bytes) = self.received[self.taken..self.came].first_chunk()
            && self.line.send(decode(bytes))
        {
            self.taken += BYTES;
        }
        if self.taken == self.came {
            (self.taken, self.came) = (0, 0);
        }
    }
}

impl<L: Line> Line for TcpLine<'_, L> {
    #[inline(always)]
    fn send(&mut self, intent: OrderIntent) -> bool {
        match self.client.write_all(&encode(&intent)) {
            Ok(()) => self.on_the_way += BYTES,
            Err(error) => self.failed = Some(error),
        }
        true
    }

    #[inline(always)]
    fn poll(&mut self) -> Option<Verdict> {
        self.forward();
        self.line.poll()
    }
}

/// The intent as eight little-endian words.
#[inline(always)]
fn encode(intent: &OrderIntent) -> [u8; BYTES] {
    let OrderIntent { seq, ts_ns, client_id, limit_px, qty, trigger_px, .. } = *intent;
    let OrderIntent { account, strategy, instrument, kind, side, tif, flags, ttl_ms, .. } = *intent;
    let subject = u64::from(account) | u64::from(strategy) << 16 | u64::from(instrument.0) << 32;
    let order = u64::from_le_bytes([kind.0, side as u8, tif.0, flags.0, 0, 0, 0, 0]) | u64::from(ttl_ms) << 32;
    let [limit, qty, trigger] = [limit_px.0, qty.0, trigger_px.0].map(i64::cast_unsigned);
    let mut bytes = [0; BYTES];
    let words = [seq, ts_ns, client_id, limit, qty, trigger, subject, order];
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes
}

#[inline(always)]
fn decode(bytes: &[u8; BYTES]) -> OrderIntent {
    let mut words = [0; BYTES / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let [seq, ts_ns, client_id, limit, qty, trigger, subject, order] = words;
    let [kind, side, tif, flags, ..] = order.to_le_bytes();
    let [limit, qty, trigger] = [limit, qty, trigger].map(u64::cast_signed);
    OrderIntent {
        seq,
        ts_ns,
        client_id,
        limit_px: Price(limit),
        qty: Qty(qty),
        trigger_px: Price(trigger),
        account: subject as u16,
        strategy: (subject >> 16) as u16,
        instrument: InstrumentId((subject >> 32) as u32),
        kind: IntentKind(kind),
        side: if side == 0 { OrderSide::Buy } else { OrderSide::Sell },
        tif: TimeInForce(tif),
        flags: IntentFlags(flags),
        ttl_ms: (order >> 32) as u32,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Takes every other intent only at the second try.
    #[derive(Default)]
    struct Stubborn {
        came: VecDeque<OrderIntent>,
        tries: usize,
    }

    impl Line for Stubborn {
        fn send(&mut self, intent: OrderIntent) -> bool {
            self.tries += 1;
            let takes = self.tries.is_multiple_of(2);
            if takes {
                self.came.push_back(intent);
            }
            takes
        }

        fn poll(&mut self) -> Option<Verdict> {
            None
        }
    }

    #[test]
    fn every_field_of_every_intent_arrives_in_order() {
        let intent = OrderIntent {
            seq: 0x0102_0304_0506_0708,
            ts_ns: u64::MAX - 1,
            client_id: 3,
            limit_px: Price(-4),
            qty: Qty(i64::MAX),
            trigger_px: Price(i64::MIN),
            account: 0xfedc,
            strategy: 0x1234,
            instrument: InstrumentId(0x89ab_cdef),
            kind: IntentKind(5),
            side: OrderSide::Sell,
            tif: TimeInForce(2),
            flags: IntentFlags(7),
            ttl_ms: 0xdead_beef,
        };
        let sent: Vec<OrderIntent> = (0..200).map(|client_id| OrderIntent { client_id, ..intent }).collect();
        let mut line = Stubborn::default();
        let mut over_tcp = TcpLine::connect(&mut line).unwrap();
        for intent in &sent {
            assert!(over_tcp.send(*intent));
        }
        while over_tcp.line.came.len() < sent.len() {
            assert_eq!(over_tcp.poll().map(|verdict| verdict.client_id), None);
        }
        over_tcp.end().unwrap();
        assert_eq!(line.came, sent);
    }
}
