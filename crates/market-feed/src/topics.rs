//! What is asked of a venue on its socket, and what it answers: the venue's rules, filled in.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tt_venue::Venue;
use tt_venue::rules::{Grouping, Rules, Topic, TopicKind};

/// The id of requests for pings, whose responses are not awaited.
const PING_ID: u64 = 0;

/// A venue's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The symbol, where the venue names one; else the topics that were asked for.
    pub subject: String,
    /// The venue's words.
    pub reason: String,
}

/// Topics that can be requested in addition to the usual ones, and their names.
const NAMES: [(TopicKind, &str); 8] = [
    (TopicKind::BestLevels, "best-levels"),
    (TopicKind::Ticker, "ticker"),
    (TopicKind::Candles, "candles"),
    (TopicKind::MarkPrice, "mark-price"),
    (TopicKind::IndexPrice, "index-price"),
    (TopicKind::Funding, "funding"),
    (TopicKind::OpenInterest, "open-interest"),
    (TopicKind::Liquidations, "liquidations"),
];

/// The kind of topic of a name, for the command line and the configuration.
///
/// # Errors
/// The names that there are.
pub fn topic_of_name(name: &str) -> Result<TopicKind, String> {
    let found = NAMES.iter().find(|known| known.1 == name);
    found.map(|known| known.0).ok_or_else(|| format!("one of {}", NAMES.map(|known| known.1).join(", ")))
}

/// The name of a kind of topic.
pub(super) fn topic_name(kind: TopicKind) -> &'static str {
    let unnamed = || match kind {
        TopicKind::Trades => "trades",
        TopicKind::Heartbeat => "heartbeat",
        TopicKind::Orders => "orders",
        TopicKind::Executions => "executions",
        TopicKind::Balances => "balances",
        TopicKind::Positions => "positions",
        TopicKind::Book
        | TopicKind::BestLevels
        | TopicKind::Ticker
        | TopicKind::Candles
        | TopicKind::MarkPrice
        | TopicKind::IndexPrice
        | TopicKind::Funding
        | TopicKind::OpenInterest
        | TopicKind::Liquidations => "book",
    };
    NAMES.iter().find(|known| known.0 == kind).map_or_else(unnamed, |known| known.1)
}

/// How many symbols one connection can serve with so many topics each.
pub(super) fn symbols_max(venue: Venue, topics: usize) -> usize {
    venue.rules().topics_max as usize / topics.max(1)
}

/// Requests that wait for their answers.
#[derive(Debug)]
pub(super) struct Requests {
    rules: &'static Rules,
    /// The requested topics.
    topics: Vec<&'static Topic>,
    depth: u32,
    answer_max: Duration,
    last_id: u64,
    waiting: HashMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    answers: usize,
    /// What was asked for, one by one.
    items: Vec<String>,
    subject: String,
    until: Instant,
}

impl Requests {
    pub(super) fn new(venue: Venue, topics: Vec<&'static Topic>, depth: u32, answer_max: Duration) -> Self {
        Self { rules: venue.rules(), topics, depth, answer_max, last_id: PING_ID, waiting: HashMap::new() }
    }

    /// The requests that follow everything of `symbols`.
    pub(super) fn subscribe(&mut self, symbols: &[String]) -> Vec<String> {
        let topics = self.topics.clone();
        self.request(self.rules.request.subscribe, &topics, symbols)
    }

    /// The request that follows the account's own orders by their listen key; none where the venue has no such stream.
    pub(super) fn subscribe_orders(&mut self, listen_key: &str) -> Option<String> {
        let topic = self.rules.account?.topics.iter().find(|topic| topic.kind == TopicKind::Orders)?;
        let text = topic.text.replace("{token}", listen_key);
        Some(self.message(self.rules.request.subscribe, vec![text], 1))
    }

    /// The requests after which the venue sends the whole book of `symbol` again.
    pub(super) fn resubscribe(&mut self, symbol: &str) -> Vec<String> {
        let Some(book) = self.rules.topic(TopicKind::Book) else { return Vec::new() };
        let symbols = [symbol.to_owned()];
        let mut requests = self.request(self.rules.request.unsubscribe, &[book], &symbols);
        requests.extend(self.request(self.rules.request.subscribe, &[book], &symbols));
        requests
    }

    fn request(&mut self, method: &str, topics: &[&Topic], symbols: &[String]) -> Vec<String> {
        let most = self.rules.topics_per_request.max(1) as usize;
        match self.rules.request.grouping {
            Grouping::Topics | Grouping::One => {
                let most = if self.rules.request.grouping == Grouping::One { 1 } else { most };
                let each = symbols.iter().flat_map(|symbol| topics.iter().map(move |topic| (symbol, topic)));
                let mut texts: Vec<String> = each.map(|(symbol, topic)| self.fill(topic, symbol)).collect();
                // One that names no symbol is asked for once.
                let mut shared: Vec<&str> = Vec::new();
                let is_new = |text: &String| {
                    let Some(topic) = topics.iter().find(|topic| topic.text == text) else { return true };
                    let is_new = !shared.contains(&topic.text);
                    shared.push(topic.text);
                    is_new
                };
                texts.retain(is_new);
                texts.chunks(most).map(|chunk| self.message(method, chunk.to_vec(), chunk.len())).collect()
            }
            Grouping::Symbols => {
                let mut requests = Vec::new();
                for topic in topics {
                    for chunk in symbols.chunks(most) {
                        let quoted: Vec<String> = chunk.iter().map(|symbol| format!("\"{symbol}\"")).collect();
                        let text = self.fill(topic, "").replace("{symbols}", &quoted.join(","));
                        requests.push(self.message(method, vec![text], chunk.len()));
                    }
                }
                requests
            }
        }
    }

    fn fill(&self, topic: &Topic, symbol: &str) -> String {
        let depth = self.depth.to_string();
        let text = topic.text.replace("{symbol}", symbol).replace("{lower}", &symbol.to_ascii_lowercase());
        text.replace("{depth}", &depth)
    }

    /// A request for `items`, which names so many topics or symbols.
    fn message(&mut self, method: &str, items: Vec<String>, len: usize) -> String {
        self.last_id += 1;
        let subject = items.join(",").replace('"', "");
        let text = self.rules.request.text.replace("{method}", method).replace("{id}", &self.last_id.to_string());
        let text = text.replace("{topics}", &items.join(","));
        let answers = if self.rules.response.is_per_topic { len } else { 1 };
        let waiting = Waiting { answers, items, subject, until: Instant::now() + self.answer_max };
        self.waiting.insert(self.last_id, waiting);
        text
    }

    /// The venue's own kind of ping and how often it is due; `None` where it pings itself.
    pub(super) fn ping(&self) -> Option<(&'static str, Duration)> {
        let (text, every) = self.rules.keep_alive.ping?;
        Some((text, Duration::from_nanos(every.0)))
    }

    /// Whether a frame answers a request rather than carrying market data. Known by how it begins.
    pub(super) fn is_answer(&self, frame: &str) -> bool {
        self.rules.response.starts.iter().any(|start| frame.starts_with(start))
    }

    /// Takes an answer; what it refuses is returned.
    pub(super) fn take(&mut self, frame: &str) -> Option<Refusal> {
        let rule = &self.rules.response;
        let answer: Value = serde_json::from_str(frame).ok()?;
        let text = |pointer: &str| answer.pointer(pointer).filter(|value| !value.is_null()).map(shown);
        let id = match rule.id {
            Some(pointer) => text(pointer).and_then(|id| id.parse().ok()),
            None => self.waiting.keys().min().copied(),
        };
        let waiting = id.and_then(|id| self.waiting.get_mut(&id));
        let is_refused = |(pointer, expected): &(&str, &str)| {
            text(pointer).is_some_and(|found| expected.is_empty() || found == *expected)
        };
        let mut refused = rule.rejected.iter().any(is_refused);
        let mut subject = rule.subject.iter().find_map(|pointer| text(pointer));
        if let (Some(pointer), Some(waiting)) = (rule.accepted, &waiting)
            && let Some(accepted) = answer.pointer(pointer)
        {
            let accepted = accepted.to_string();
            let missing: Vec<&str> =
                waiting.items.iter().filter(|item| !accepted.contains(*item)).map(String::as_str).collect();
            if !missing.is_empty() {
                refused = true;
                subject = Some(missing.join(",").replace('"', ""));
            }
        }
        let refusal = refused.then(|| Refusal {
            subject: subject.or_else(|| waiting.as_ref().map(|waiting| waiting.subject.clone())).unwrap_or_default(),
            reason: rule.reason.iter().find_map(|pointer| text(pointer)).unwrap_or("no reason given".to_owned()),
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

/// A value without quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(venue: Venue) -> Vec<&'static Topic> {
        venue.rules().default_topics().collect()
    }

    #[test]
    fn a_topic_that_names_no_symbol_is_asked_for_once() {
        let topics: Vec<_> = [TopicKind::Trades, TopicKind::Liquidations]
            .map(|kind| Venue::Okx.rules().topic(kind))
            .into_iter()
            .flatten()
            .collect();
        let mut requests = Requests::new(Venue::Okx, topics, 0, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTC-USDT-SWAP".to_owned(), "ETH-USDT-SWAP".to_owned()]);
        let asked: Value = serde_json::from_str(&sent[0]).unwrap();
        let names: Vec<&str> =
            asked["args"].as_array().unwrap().iter().filter_map(|arg| arg["channel"].as_str()).collect();
        assert_eq!((sent.len(), names), (1, vec!["trades", "liquidation-orders", "trades"]));
    }

    #[test]
    fn case_m31_without_an_answer_each_symbol_is_named_at_its_deadline() {
        for venue in [Venue::BinanceSpot, Venue::BybitLinear, Venue::Kraken, Venue::Deribit] {
            let topics = vec![venue.rules().topic(TopicKind::Book).unwrap()];
            let mut requests = Requests::new(venue, topics, 25, Duration::from_secs(1));
            let symbols = ["AAA-BBB".to_owned(), "CCC-DDD".to_owned()];
            let now = Instant::now();
            assert!(!requests.subscribe(&symbols).is_empty() && !requests.all_answered(), "{venue:?}");
            assert_eq!(requests.overdue(now), None, "{venue:?}");
            let late = requests.overdue(now + Duration::from_secs(2)).map(str::to_uppercase);
            assert!(late.is_some_and(|subject| symbols.iter().any(|symbol| subject.contains(symbol))), "{venue:?}");
        }
    }

    #[test]
    fn kraken_refuses_one_symbol_of_two() {
        let mut requests = Requests::new(Venue::Kraken, usual(Venue::Kraken), 27, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTC/USD".to_owned(), "NO/USD".to_owned()]);
        assert_eq!(sent.len(), 3);
        let book: Value = serde_json::from_str(&sent[0]).unwrap();
        assert_eq!(book["params"]["symbol"], serde_json::json!(["BTC/USD", "NO/USD"]));
        assert_eq!(book["params"]["depth"], 27);
        let id = book["req_id"].as_u64().unwrap();
        // As Kraken's documentation shows an acknowledgement and an error.
        let accepted = format!(
            r#"{{"method":"subscribe","req_id":{id},"result":{{"channel":"book","depth":10,"snapshot":true,"symbol":"BTC/USD"}},"success":true,"time_in":"2023-10-04T08:26:29.511909Z","time_out":"2023-10-04T08:26:29.511959Z"}}"#
        );
        let refused = format!(
            r#"{{"error":"Currency pair not supported NO/USD","method":"subscribe","req_id":{id},"success":false,"symbol":"NO/USD"}}"#
        );
        assert!(requests.is_answer(&accepted) && requests.is_answer(&refused));
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
        let mut requests = Requests::new(Venue::BinanceSpot, usual(Venue::BinanceSpot), 0, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTCUSDT".to_owned()]);
        assert_eq!(
            sent,
            [r#"{"id":1,"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","btcusdt@bookTicker","btcusdt@trade"]}"#]
        );
        assert!(!requests.is_answer(r#"{"stream":"btcusdt@trade","data":{}}"#));
        assert_eq!(requests.take(r#"{"result":null,"id":1}"#), None);
        assert!(requests.all_answered());
        let refusal = requests.take(r#"{"error":{"code":2,"msg":"Invalid request"},"id":9}"#).unwrap();
        assert_eq!(refusal.reason, "Invalid request");
    }
}
