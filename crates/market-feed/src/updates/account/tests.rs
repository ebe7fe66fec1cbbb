//! An account's copy against the engine, by messages as Binance documents them.

use std::sync::mpsc;
use std::thread;

use tt_market::candle::CandleSource;
use tt_market::{Capacity, ConnectionId, Engine, InstrumentSpec};
use tt_meter::Off;
use tt_model::Nanos;
use tt_venue::{Symbol, Venue};

use super::super::account_sender::{AccountSender, NEWS_MAX};
use super::super::tests::Kept;
use super::*;

const NOW: Nanos = Nanos::from_millis(1_700_000_000_000);

struct Rig {
    engine: Engine,
    connection: ConnectionId,
    sender: AccountSender,
    copy: AccountCopy,
    counts: Counts,
    kept: Arc<Kept>,
}

impl Rig {
    fn new(venue: Venue, symbol: &str) -> Self {
        let mut engine = Engine::new(Capacity { instruments: 1, pages: 64, ..Capacity::default() });
        let (tick_size, lot_size) = (Decimal::new(1, 1), Decimal::new(1, 3));
        let symbol = Symbol::new(symbol.as_bytes()).unwrap();
        let candles = CandleSource::Trades;
        engine.add_instrument(InstrumentSpec { venue, symbol, tick_size, lot_size, depth_max: None, candles }).unwrap();
        let connection = engine.open_connection(venue, NOW).unwrap();
        let (sender, news) = mpsc::sync_channel(NEWS_MAX);
        let sender = AccountSender::new(venue, sender, thread::current());
        let names = vec!["BTC/USDT".to_owned()];
        let subject = AccountSubject { venue: venue.name(), is_simulated: false, names, board: engine.board() };
        let (mut copy, counts, kept) = (AccountCopy::new(subject, news), Counts::default(), Arc::<Kept>::default());
        copy.subscribe(&(Arc::clone(&kept) as Arc<dyn Sink>), &counts);
        Self { engine, connection, sender, copy, counts, kept }
    }

    fn frame(&mut self, frame: &str) {
        let applied = self.engine.handle_frame(NOW, self.connection, frame.as_bytes(), &mut Off);
        assert!(applied.is_ok(), "{applied:?}: {frame}");
        self.sender.send(&self.engine);
    }

    fn order(&mut self, id: u64, status: &str, filled: &str, trade: i64) {
        let (execution, last) = if trade < 0 { (status, "0") } else { ("TRADE", "0.5") };
        self.frame(&format!(
            "{{\"e\":\"executionReport\",\"E\":1700000000000,\"s\":\"BTCUSDT\",\"c\":\"x\",\"S\":\"BUY\",\"o\":\"LIMIT\",\"f\":\"GTC\",\
             \"q\":\"2.5\",\"p\":\"60000.1\",\"P\":\"0\",\"F\":\"0\",\"g\":-1,\"C\":\"\",\"x\":\"{execution}\",\"X\":\"{status}\",\
             \"r\":\"NONE\",\"i\":{id},\"l\":\"{last}\",\"z\":\"{filled}\",\"L\":\"60000.1\",\"n\":\"0.01\",\"N\":\"BNB\",\
             \"T\":1700000000000,\"t\":{trade},\"I\":1,\"w\":true,\"m\":true,\"M\":false,\"O\":1700000000000,\"Z\":\"0\",\"Y\":\"0\",\
             \"Q\":\"0\",\"W\":1700000000000,\"V\":\"NONE\"}}"
        ));
    }

    /// What the reader got since the last time.
    fn take(&mut self) -> Vec<Value> {
        self.copy.take_news(&self.counts);
        self.copy.flush();
        std::mem::take(&mut *self.kept.0.lock().unwrap())
    }
}

fn kinds(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["type"].as_str().unwrap()).collect()
}

#[test]
fn orders_executions_and_balances_are_those_of_the_messages() {
    let mut rig = Rig::new(Venue::BinanceSpot, "BTCUSDT");
    assert_eq!(kinds(&rig.take()), ["snapshot"]);
    rig.order(7, "NEW", "0", -1);
    rig.order(7, "PARTIALLY_FILLED", "0.5", 41);
    let messages = rig.take();
    assert_eq!(kinds(&messages), ["orders", "orders", "fills"]);
    let order = &messages[1]["orders"][0];
    let expected = json!({
        "order_id": "7", "symbol": "BTC/USDT", "side": "buy", "status": "partially_filled", "limit_px": "60000.1",
        "qty": "2.5", "filled_qty": "0.5", "ts_event": 1_700_000_000_000_000_000_u64,
    });
    assert_eq!(*order, expected);
    let expected = json!({
        "number": 1, "trade_id": "41", "order_id": "7", "symbol": "BTC/USDT", "side": "buy", "px": "60000.1",
        "qty": "0.5", "fee": "0.01", "fee_asset": "BNB", "is_maker": true, "ts_event": 1_700_000_000_000_000_000_u64,
    });
    assert_eq!(messages[2]["fills"], json!([expected]));
    // The venue repeats a message: nothing has changed.
    rig.order(7, "PARTIALLY_FILLED", "0.5", 41);
    assert_eq!(rig.take(), Vec::<Value>::new());
    rig.order(7, "CANCELED", "0.5", -1);
    rig.order(7, "CANCELED", "0.5", -1);
    let messages = rig.take();
    assert_eq!((kinds(&messages), &messages[0]["orders"][0]["status"]), (vec!["orders"], &json!("cancelled")));
    assert_eq!((rig.copy.state().orders.len(), rig.copy.state().fills.len()), (0, 1));
    rig.frame(
        "{\"e\":\"outboundAccountPosition\",\"E\":1564034571105,\"u\":1564034571073,\
         \"B\":[{\"a\":\"ETH\",\"f\":\"10000.000000\",\"l\":\"3.5\"}]}",
    );
    let messages = rig.take();
    let balance = &messages[0]["balances"][0];
    assert_eq!((&balance["asset"], &balance["locked"]), (&json!("ETH"), &json!("3.5")), "{messages:?}");
    assert_eq!(rig.copy.state().balances.len(), 1);
}

#[test]
fn what_found_no_room_comes_with_the_next_message() {
    let mut rig = Rig::new(Venue::BinanceSpot, "BTCUSDT");
    rig.take();
    // Two states of each order: the channel has room for the first half of these messages.
    for id in 0..NEWS_MAX as u64 {
        rig.order(id, "NEW", "0", -1);
        rig.order(id, if id % 3 == 0 { "FILLED" } else { "PARTIALLY_FILLED" }, "0.5", id as i64);
    }
    rig.take();
    let state = rig.copy.state();
    assert!(state.orders.len() < rig.engine.orders_len(), "some found no room");
    rig.order(9_999, "NEW", "0", -1);
    rig.take();
    let state = rig.copy.state();
    assert_eq!(state.orders.len(), rig.engine.orders_len());
    for order in rig.engine.orders() {
        let id = order.order_id.to_string();
        let known = state.orders.iter().find(|known| known.order_id == id).unwrap();
        assert_eq!((known.status, &known.filled_qty), (status(order.status), &order.filled_qty.to_string()));
    }
    let newest = rig.engine.fills().last().unwrap().fill.trade_id.to_string();
    assert_eq!(state.fills.last().unwrap().trade_id, newest);
}
