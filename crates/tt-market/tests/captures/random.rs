//! Frames drawn at random in the forms that the venues document, whole and broken: scanner, general path and JSON
//! library read the same.

use crate::parsers::compare;
use proptest::prelude::*;
use tt_market::Venue;

/// Forms of frames: `N` stands for a number, `I` for a whole one, `S` for a symbol, `T` for a time, `L` for the word of
/// a side; `[x*]` for a list of any length.
const FORMS: [(Venue, &str); 19] = [
    (Venue::CoinbaseExchange, r#"{"type":"l2update","product_id":"S","changes":[["L","N","N"]*],"time":"T"}"#),
    (Venue::CoinbaseExchange, r#"{"type":"snapshot","product_id":"S","asks":[["N","N"]*],"bids":[["N","N"]*]}"#),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"snapshot","product_id":"S","bids":[["N","N"]*],"asks":[["N","N"]*],"time":"T"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"match","trade_id":I,"maker_order_id":"m","taker_order_id":"t","side":"L","size":"N","price":"N","product_id":"S","sequence":I,"time":"T"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"ticker","sequence":I,"product_id":"S","price":"N","open_24h":"1","volume_24h":"1","low_24h":"1","high_24h":"1","volume_30d":"1","best_bid":"N","best_ask":"N","side":"L","time":"T","trade_id":I,"last_size":"1"}"#,
    ),
    (
        Venue::CoinbaseExchange,
        r#"{"type":"ticker","sequence":I,"product_id":"S","price":"N","open_24h":"1","volume_24h":"1","low_24h":"1","high_24h":"1","volume_30d":"1","best_bid":"N","best_bid_size":"N","best_ask":"N","best_ask_size":"N","side":"L","time":"T","trade_id":I,"last_size":"1"}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"l2_data","client_id":"","timestamp":"T","sequence_num":I,"events":[{"type":"update","product_id":"S","updates":[{"side":"bid","event_time":"T","price_level":"N","new_quantity":"N"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"l2_data","timestamp":"T","sequence_num":I,"events":[{"type":"snapshot","product_id":"S","updates":[{"side":"offer","event_time":"T","price_level":"N","new_quantity":"N"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"market_trades","timestamp":"T","sequence_num":I,"events":[{"type":"update","trades":[{"trade_id":"I","product_id":"S","price":"N","size":"N","side":"SELL","time":"T"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"ticker","timestamp":"T","sequence_num":I,"events":[{"type":"update","tickers":[{"product_id":"S","price":"N","best_bid":"N","best_bid_quantity":"N","best_ask":"N","best_ask_quantity":"N"}*]}]}"#,
    ),
    (
        Venue::CoinbaseAdvanced,
        r#"{"channel":"candles","timestamp":"T","sequence_num":I,"events":[{"type":"update","candles":[{"start":"1775521800","high":"N","low":"N","open":"N","close":"N","volume":"N","product_id":"S"}*]}]}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"l2Book","data":{"coin":"S","time":1737918843542,"levels":[[{"px":"N","sz":"N","n":I}*],[{"px":"N","sz":"N","n":I}*]]}}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"trades","data":[{"coin":"S","side":"B","px":"N","sz":"N","time":1737918794873,"hash":"0x0","tid":I,"users":["0x1","0x2"]}*]}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"bbo","data":{"coin":"S","time":1737918794873,"bbo":[{"px":"N","sz":"N","n":1},{"px":"N","sz":"N","n":I}]}}"#,
    ),
    (
        Venue::Hyperliquid,
        r#"{"channel":"activeAssetCtx","data":{"coin":"S","ctx":{"funding":"-N","openInterest":"N","oraclePx":"N","markPx":"N","midPx":"N","premium":"-N"}}}"#,
    ),
    (Venue::Hyperliquid, r#"{"channel":"allMids","data":{"mids":{"S":"N","BTC":"N","@142":"N"}}}"#),
    (
        Venue::Hyperliquid,
        r#"{"channel":"candle","data":{"t":1737918780000,"T":1737918839999,"s":"S","i":"1m","o":"N","c":"N","h":"N","l":"N","v":"N","n":I}}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"ticker","type":"update","data":[{"symbol":"S","bid":N,"bid_qty":N,"ask":N,"ask_qty":N,"last":N,"volume":N,"vwap":N,"low":N,"high":N,"change":-N,"change_pct":N,"timestamp":"T"}]}"#,
    ),
    (
        Venue::Kraken,
        r#"{"channel":"trade","type":"update","data":[{"symbol":"S","side":"buy","price":N,"qty":N,"ord_type":"limit","trade_id":I,"timestamp":"T"}*]}"#,
    ),
];

const NUMBERS: [&str; 16] = [
    "0",
    "0.00000000",
    "1",
    "105944.20",
    "0.00001303",
    "1234567.12345678",
    "12345678.5",
    "1e-8",
    "1.5E+3",
    "9223372036854775807",
    "9223372036854775808",
    "0.123456789",
    "00.1",
    "1.",
    "-1",
    "-0",
];
const WHOLE: [&str; 8] =
    ["0", "7", "12345678", "9007199254740993", "18446744073709551615", "18446744073709551616", "1.5", "007"];
const SYMBOLS: [&str; 5] = ["BTC-USD", "X", "BTC/USD", "12345678901234567890123", "123456789012345678901234"];
const TIMES: [&str; 7] = [
    "2026-04-07T14:30:00Z",
    "2026-04-07T14:30:00.123456Z",
    "2024-02-29T23:59:59.123456789Z",
    "2023-02-29T00:00:00Z",
    "2026-04-07T14:30:00.1234567890Z",
    "2026-04-07 14:30:00Z",
    "2026-12-31T23:59:59.9Z",
];
const SIDES: [&str; 3] = ["buy", "sell", "hold"];

/// Draws numbers one after the other.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Mostly one of the first `usual`, now and then any of them.
    fn of<'a>(&mut self, words: &[&'a str], usual: usize) -> &'a str {
        let end = if self.below(24) == 0 { words.len() } else { usual };
        words[self.below(end)]
    }

    /// The form without its places and lists.
    fn frame(&mut self, form: &str) -> String {
        let mut text = String::new();
        let mut rest = form;
        // A list's element reaches from the bracket before it to the star.
        while let Some(star) = rest.find('*') {
            let start = element_start(&rest[..star]);
            text.push_str(&rest[..start]);
            let element = &rest[start..star];
            text.push_str(&vec![element; self.below(5)].join(","));
            rest = &rest[star + 1..];
        }
        text.push_str(rest);
        self.fill(&text)
    }

    fn fill(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut previous = ' ';
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            // A place stands alone between marks; letters of words do not.
            let alone = matches!(previous, '"' | ':' | '-')
                && letters.peek().is_some_and(|next| matches!(next, '"' | ',' | '}'));
            match letter {
                'N' if alone => out.push_str(self.of(&NUMBERS, 6)),
                'I' if alone => out.push_str(self.of(&WHOLE, 5)),
                'S' if alone => out.push_str(self.of(&SYMBOLS, 4)),
                'T' if alone
                    && letters.peek() == Some(&'"')
                    && previous == '"'
                    && !text_is_key(&mut letters.clone()) =>
                {
                    out.push_str(self.of(&TIMES, 3));
                }
                'L' if alone => out.push_str(self.of(&SIDES, 2)),
                _ => out.push(letter),
            }
            previous = letter;
        }
        out
    }
}

/// Whether the quote that comes next ends a key.
fn text_is_key(letters: &mut impl Iterator<Item = char>) -> bool {
    letters.next();
    letters.next() == Some(':')
}

/// Where the bracketed element that ends here begins.
fn element_start(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices().rev() {
        match letter {
            ']' | '}' => depth += 1,
            '[' | '{' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    panic!("an element begins nowhere: {text}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_frames_read_the_same_three_ways(seed in any::<u64>(), edit in prop::option::weighted(0.3, (any::<u16>(), any::<u8>()))) {
        let mut draw = Draw(seed);
        let (venue, form) = FORMS[draw.below(FORMS.len())];
        let mut frame = draw.frame(form).into_bytes();
        if let Some((at, byte)) = edit {
            let at = usize::from(at) % frame.len();
            match byte {
                0..80 => frame[at] = byte,
                80..160 => { frame.remove(at); }
                _ => frame.insert(at, byte - 128),
            }
        }
        compare(venue, &frame);
    }
}

#[test]
fn most_random_frames_are_whole_and_scanned() {
    for (venue, form) in FORMS {
        let (mut read, mut scanned) = (0, 0);
        for seed in 0..400 {
            let frame = Draw(seed * 7919).frame(form);
            let mut buffer = tt_market::EventBuffer::new(64, 64);
            read += u32::from(venue.parse(frame.as_bytes(), &mut buffer).is_ok());
            scanned += u32::from(!buffer.is_general());
        }
        assert!(read > 100, "{read} {form}");
        let has_scanner = !["market_trades", "\"ticker\",\"timestamp", "candle", "bbo", "activeAssetCtx", "allMids"]
            .iter()
            .any(|topic| form.contains(topic));
        assert_eq!(scanned > 40, has_scanner, "{scanned} {form}");
    }
}
