//! What is asked of a venue on its socket, and what it answers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tt_market::Venue;

/// Topics that one connection carries: Binance allows 1,024 streams.
const TOPICS_MAX: usize = 1000;

/// Topics in one request.
const TOPICS_PER_REQUEST: usize = 300;

/// The id of requests for pings, which nobody waits for.
const PING_ID: u64 = 0;

/// A venue's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The symbol, where the venue names one; else the topics that were asked for.
    pub subject: String,
    /// The venue's words.
    pub reason: String,
}

/// How many symbols one connection can serve.
pub(super) const fn symbols_max(venue: Venue) -> usize {
    TOPICS_MAX / names(venue).len()
}

/// What is asked for each symbol.
const fn names(venue: Venue) -> &'static [&'static str] {
    match venue {
        Venue::BinanceSpot => &["depth@100ms", "bookTicker", "trade"],
        Venue::BinanceUsdm => &["depth@100ms", "bookTicker", "trade", "markPrice@1s"],
        Venue::Kraken => &["book", "ticker", "trade"],
    }
}

/// Requests that wait for their answers.
#[derive(Debug)]
pub(super) struct Requests {
    venue: Venue,
    depth: u32,
    answer_max: Duration,
    last_id: u64,
    waiting: HashMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    answers: usize,
    subject: String,
    until: Instant,
}

impl Requests {
    pub(super) fn new(venue: Venue, depth: u32, answer_max: Duration) -> Self {
        Self { venue, depth, answer_max, last_id: PING_ID, waiting: HashMap::new() }
    }

    /// The requests that follow everything of `symbols`.
    pub(super) fn subscribe(&mut self, symbols: &[String]) -> Vec<String> {
        match self.venue {
            Venue::BinanceSpot | Venue::BinanceUsdm => {
                let lower: Vec<String> = symbols.iter().map(|symbol| symbol.to_ascii_lowercase()).collect();
                let streams: Vec<String> = lower
                    .iter()
                    .flat_map(|symbol| names(self.venue).iter().map(move |name| format!("{symbol}@{name}")))
                    .collect();
                streams.chunks(TOPICS_PER_REQUEST).map(|chunk| self.binance("SUBSCRIBE", chunk)).collect()
            }
            Venue::Kraken => {
                let mut requests = Vec::new();
                for name in names(self.venue) {
                    for chunk in symbols.chunks(TOPICS_PER_REQUEST) {
                        requests.push(self.kraken("subscribe", name, chunk));
                    }
                }
                requests
            }
        }
    }

    /// The request that follows the account's own orders at Binance.
    pub(super) fn subscribe_orders(&mut self, listen_key: &str) -> String {
        self.binance("SUBSCRIBE", &[listen_key.to_owned()])
    }

    /// The requests after which the venue sends the whole book of `symbol` anew.
    pub(super) fn resubscribe(&mut self, symbol: &str) -> Vec<String> {
        let symbols = [symbol.to_owned()];
        match self.venue {
            Venue::BinanceSpot | Venue::BinanceUsdm => Vec::new(),
            Venue::Kraken => {
                vec![self.kraken("unsubscribe", "book", &symbols), self.kraken("subscribe", "book", &symbols)]
            }
        }
    }

    /// The venue's own kind of ping; `None` where it pings itself.
    pub(super) const fn ping(&self) -> Option<&'static str> {
        match self.venue {
            Venue::BinanceSpot | Venue::BinanceUsdm => None,
            Venue::Kraken => Some(r#"{"method":"ping","req_id":0}"#),
        }
    }

    fn expect(&mut self, answers: usize, subject: String) -> u64 {
        self.last_id += 1;
        self.waiting.insert(self.last_id, Waiting { answers, subject, until: Instant::now() + self.answer_max });
        self.last_id
    }

    fn binance(&mut self, method: &str, streams: &[String]) -> String {
        let id = self.expect(1, streams.join(","));
        json!({"method": method, "params": streams, "id": id}).to_string()
    }

    /// Kraken answers each symbol on its own.
    fn kraken(&mut self, method: &str, name: &str, symbols: &[String]) -> String {
        let id = self.expect(symbols.len(), format!("{name} {}", symbols.join(",")));
        let mut params = json!({"channel": name, "symbol": symbols});
        if name == "book" {
            params["depth"] = json!(self.depth);
        }
        if method == "subscribe" && name != "trade" {
            params["snapshot"] = json!(true);
        }
        json!({"method": method, "params": params, "req_id": id}).to_string()
    }

    /// Whether a frame answers a request rather than carrying market data. Known by its first key.
    pub(super) fn is_answer(frame: &str) -> bool {
        ["{\"result\"", "{\"id\"", "{\"error\"", "{\"method\"", "{\"req_id\""].iter().any(|key| frame.starts_with(key))
    }

    /// Takes an answer; a refusal is returned.
    pub(super) fn take(&mut self, frame: &str) -> Option<Refusal> {
        let answer: Value = serde_json::from_str(frame).ok()?;
        let id = answer.get("id").or_else(|| answer.get("req_id")).and_then(Value::as_u64);
        let waiting = id.and_then(|id| self.waiting.get_mut(&id));
        let error = answer.get("error").filter(|error| !error.is_null()).map(|error| {
            let text = error.get("msg").unwrap_or(error);
            text.as_str().map_or_else(|| text.to_string(), str::to_owned)
        });
        let failed = answer.get("success").and_then(Value::as_bool) == Some(false);
        let named = answer.get("symbol").and_then(Value::as_str).map(str::to_owned);
        let refusal = (error.is_some() || failed).then(|| Refusal {
            subject: named.or_else(|| waiting.as_ref().map(|waiting| waiting.subject.clone())).unwrap_or_default(),
            reason: error.unwrap_or_else(|| "no reason given".to_owned()),
        });
        if let Some(waiting) = waiting {
            waiting.answers -= 1;
        }
        self.waiting.retain(|_, waiting| waiting.answers > 0);
        refusal
    }

    /// Whether every request is answered.
    pub(super) fn all_answered(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What was asked for and not answered in time.
    pub(super) fn overdue(&self, now: Instant) -> Option<&str> {
        self.waiting.values().find(|waiting| waiting.until < now).map(|waiting| waiting.subject.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kraken_refuses_one_symbol_of_two() {
        let mut requests = Requests::new(Venue::Kraken, 27, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTC/USD".to_owned(), "NO/USD".to_owned()]);
        assert_eq!(sent.len(), 3);
        let book: Value = serde_json::from_str(&sent[0]).unwrap();
        assert_eq!(book["params"]["depth"], 27);
        let id = book["req_id"].as_u64().unwrap();
        // As Kraken's documentation shows an acknowledgement and an error.
        let accepted = format!(
            r#"{{"method":"subscribe","req_id":{id},"result":{{"channel":"book","depth":10,"snapshot":true,"symbol":"BTC/USD"}},"success":true,"time_in":"2023-10-04T08:26:29.511909Z","time_out":"2023-10-04T08:26:29.511959Z"}}"#
        );
        let refused = format!(
            r#"{{"error":"Currency pair not supported NO/USD","method":"subscribe","req_id":{id},"success":false,"symbol":"NO/USD"}}"#
        );
        assert!(Requests::is_answer(&accepted) && Requests::is_answer(&refused));
        assert_eq!(requests.take(&accepted), None);
        let refusal = requests.take(&refused).unwrap();
        assert_eq!(
            (refusal.subject.as_str(), refusal.reason.as_str()),
            ("NO/USD", "Currency pair not supported NO/USD")
        );
        assert!(!requests.all_answered(), "ticker and trade are still to be answered");
        assert!(requests.overdue(Instant::now()).is_none());
        assert!(requests.overdue(Instant::now() + Duration::from_secs(2)).is_some());
    }

    #[test]
    fn binance_answers_a_request_as_a_whole() {
        let mut requests = Requests::new(Venue::BinanceSpot, 0, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTCUSDT".to_owned()]);
        assert_eq!(
            sent,
            [r#"{"id":1,"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","btcusdt@bookTicker","btcusdt@trade"]}"#]
        );
        assert!(!Requests::is_answer(r#"{"stream":"btcusdt@trade","data":{}}"#));
        assert_eq!(requests.take(r#"{"result":null,"id":1}"#), None);
        assert!(requests.all_answered());
        let refusal = requests.take(r#"{"error":{"code":2,"msg":"Invalid request"},"id":9}"#).unwrap();
        assert_eq!(refusal.reason, "Invalid request");
    }
}
