//! What is asked of a venue on its socket, and what it answers: the venue's rules, filled in.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;
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
pub(super) fn symbols_max(rules: &Rules, topics: usize) -> usize {
    rules.topics_max as usize / topics.max(1)
}

/// A message that waits to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) text: String,
    /// The request's number; zero if no answer is awaited.
    id: u64,
}

impl Outgoing {
    /// A message that is not a request for topics.
    pub(super) fn unanswered(text: &str) -> Self {
        Self { text: text.to_owned(), id: PING_ID }
    }
}

/// What follows from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// What the venue refuses.
    pub(super) refusal: Option<Refusal>,
    /// The halves of a request that was refused because of a part of it.
    pub(super) again: Vec<Outgoing>,
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

/// A topic of a symbol.
#[derive(Clone, Debug)]
struct Item {
    topic: &'static Topic,
    symbol: String,
}

#[derive(Debug)]
struct Waiting {
    answers: usize,
    method: &'static str,
    items: Vec<Item>,
    /// What was asked for, one by one, as in the request.
    texts: Vec<String>,
    subject: String,
    /// Since it was sent.
    until: Option<Instant>,
    /// Whether it ends topics for good: nothing waits for the answer, and a refusal costs nothing.
    ends: bool,
}

impl Requests {
    pub(super) fn new(rules: &'static Rules, topics: Vec<&'static Topic>, depth: u32, answer_max: Duration) -> Self {
        Self { rules, topics, depth, answer_max, last_id: PING_ID, waiting: HashMap::new() }
    }

    /// The requests that follow everything of `symbols`.
    pub(super) fn subscribe(&mut self, symbols: &[String]) -> Vec<Outgoing> {
        let topics = self.topics.clone();
        self.request(self.rules.request.subscribe, &topics, symbols)
    }

    /// The requests that follow one more symbol, where others are followed.
    pub(super) fn begin(&mut self, symbol: &str) -> Vec<Outgoing> {
        let topics = self.topics_of_symbols();
        self.request(self.rules.request.subscribe, &topics, &[symbol.to_owned()])
    }

    /// The requests that end a symbol among others.
    pub(super) fn end(&mut self, symbol: &str) -> Vec<Outgoing> {
        let topics = self.topics_of_symbols();
        let requests = self.request(self.rules.request.unsubscribe, &topics, &[symbol.to_owned()]);
        for request in &requests {
            self.waiting.entry(request.id).and_modify(|waiting| waiting.ends = true);
        }
        requests
    }

    /// Topics without those that all symbols share.
    fn topics_of_symbols(&self) -> Vec<&'static Topic> {
        self.topics.iter().copied().filter(|topic| topic.names_symbol()).collect()
    }

    /// The request that follows the account's own orders by their listen key; none where the venue has no such stream.
    pub(super) fn subscribe_orders(&mut self, listen_key: &str) -> Option<Outgoing> {
        let topic = self.rules.account?.topics.iter().find(|topic| topic.kind == TopicKind::Orders)?;
        let text = topic.text.replace("{token}", listen_key);
        Some(self.message_of(self.rules.request.subscribe, Vec::new(), vec![text]))
    }

    /// The requests after which the venue sends the whole books of `symbols` again.
    pub(super) fn resubscribe(&mut self, symbols: &[String]) -> Vec<Outgoing> {
        let Some(book) = self.rules.topic(TopicKind::Book) else { return Vec::new() };
        let mut requests = self.request(self.rules.request.unsubscribe, &[book], symbols);
        requests.extend(self.request(self.rules.request.subscribe, &[book], symbols));
        requests
    }

    fn request(&mut self, method: &'static str, topics: &[&'static Topic], symbols: &[String]) -> Vec<Outgoing> {
        let most = self.rules.topics_per_request(self.depth) as usize;
        let most = if self.rules.request.grouping == Grouping::One { 1 } else { most };
        let item = |topic: &'static Topic, symbol: &String| Item { topic, symbol: symbol.clone() };
        let groups: Vec<Vec<Item>> = match self.rules.request.grouping {
            Grouping::Topics | Grouping::One => {
                let each = symbols.iter().flat_map(|symbol| topics.iter().map(move |topic| item(topic, symbol)));
                let mut shared: Vec<&str> = Vec::new();
                // One that names no symbol is asked for once.
                let is_new = |item: &Item| {
                    let is_new = item.topic.names_symbol() || !shared.contains(&item.topic.text);
                    shared.extend((!item.topic.names_symbol()).then_some(item.topic.text));
                    is_new
                };
                let items: Vec<Item> = each.filter(is_new).collect();
                items.chunks(most).map(<[Item]>::to_vec).collect()
            }
            Grouping::Symbols => {
                let of_topic = |topic: &&'static Topic| {
                    let topic = *topic;
                    symbols.chunks(most).map(move |chunk| chunk.iter().map(|symbol| item(topic, symbol)).collect())
                };
                topics.iter().flat_map(of_topic).collect()
            }
        };
        groups.into_iter().map(|items| self.message(method, items)).collect()
    }

    fn fill(&self, topic: &Topic, symbol: &str) -> String {
        let depth = self.depth.to_string();
        let text = topic.text.replace("{symbol}", symbol).replace("{lower}", &symbol.to_ascii_lowercase());
        text.replace("{depth}", &depth)
    }

    /// A request for `items`, of one topic where the venue groups symbols.
    fn message(&mut self, method: &'static str, items: Vec<Item>) -> Outgoing {
        let texts = if self.rules.request.grouping == Grouping::Symbols {
            let quoted: Vec<String> = items.iter().map(|item| format!("\"{}\"", item.symbol)).collect();
            let text = |item: &Item| self.fill(item.topic, "").replace("{symbols}", &quoted.join(","));
            items.first().map(text).into_iter().collect()
        } else {
            items.iter().map(|item| self.fill(item.topic, &item.symbol)).collect()
        };
        self.message_of(method, items, texts)
    }

    fn message_of(&mut self, method: &'static str, items: Vec<Item>, texts: Vec<String>) -> Outgoing {
        self.last_id += 1;
        let subject = texts.join(",").replace('"', "");
        let text = self.rules.request.text.replace("{method}", method).replace("{id}", &self.last_id.to_string());
        let text = text.replace("{topics}", &texts.join(","));
        let answers = if self.rules.response.is_per_topic { items.len().max(1) } else { 1 };
        let waiting = Waiting { answers, method, items, texts, subject, until: None, ends: false };
        self.waiting.insert(self.last_id, waiting);
        Outgoing { text, id: self.last_id }
    }

    /// A message goes out: its answer is due from now on.
    pub(super) fn note_sent(&mut self, sent: &Outgoing, now: Instant) {
        if let Some(waiting) = self.waiting.get_mut(&sent.id).filter(|waiting| !waiting.ends) {
            waiting.until = Some(now + self.answer_max);
        }
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

    /// Takes an answer.
    ///
    /// Some venues refuse a whole request because of a part of it: it is asked for again in halves, so that only that
    /// part is refused in the end.
    pub(super) fn take(&mut self, frame: &str) -> Answer {
        let rule = &self.rules.response;
        let Ok(answer) = serde_json::from_str::<Value>(frame) else { return Answer::default() };
        let text = |pointer: &str| answer.pointer(pointer).filter(|value| !value.is_null()).map(shown);
        let reason = rule.reason.iter().find_map(|pointer| text(pointer));
        let id = match rule.id {
            Some(pointer) => text(pointer).and_then(|id| id.parse().ok()),
            None => self.answered(&answer, reason.as_deref().unwrap_or_default()),
        };
        let is_refused = |(pointer, expected): &(&str, &str)| {
            text(pointer).is_some_and(|found| expected.is_empty() || found == *expected)
        };
        let mut refused = rule.rejected.iter().any(is_refused);
        let is_of_parts = |id: &u64| self.waiting.get(id).is_some_and(|waiting| waiting.items.len() > 1);
        if refused
            && !rule.is_per_topic
            && rule.accepted.is_none()
            && let Some(id) = id.filter(is_of_parts)
            && let Some(Waiting { method, items, ends, .. }) = self.waiting.remove(&id)
        {
            let (first, second) = items.split_at(items.len() / 2);
            let again = [first, second].map(|half| self.message(method, half.to_vec()));
            for half in &again {
                self.waiting.entry(half.id).and_modify(|waiting| waiting.ends = ends);
            }
            return Answer { refusal: None, again: again.into() };
        }
        let waiting = id.and_then(|id| self.waiting.get_mut(&id));
        let mut subject = rule.subject.iter().find_map(|pointer| text(pointer));
        if let (Some(pointer), Some(waiting)) = (rule.accepted, &waiting)
            && let Some(accepted) = answer.pointer(pointer)
        {
            let accepted = accepted.to_string();
            let missing: Vec<&str> =
                waiting.texts.iter().filter(|item| !accepted.contains(*item)).map(String::as_str).collect();
            if !missing.is_empty() {
                refused = true;
                subject = Some(missing.join(",").replace('"', ""));
            }
        }
        let named = waiting.as_ref().and_then(|waiting| waiting.named_in(reason.as_deref()?));
        refused &= !waiting.as_ref().is_some_and(|waiting| waiting.ends);
        let refusal = refused.then(|| Refusal {
            subject: subject
                .or(named)
                .or_else(|| waiting.as_ref().map(|waiting| waiting.subject.clone()))
                .unwrap_or_default(),
            reason: reason.unwrap_or("no reason given".to_owned()),
        });
        if let Some(waiting) = waiting {
            waiting.answers -= 1;
        }
        self.waiting.retain(|_, waiting| waiting.answers > 0);
        Answer { refusal, again: Vec::new() }
    }

    /// The request that an answer without a number belongs to: the one with the argument that it names, or whose symbol
    /// is in its words; else the oldest.
    fn answered(&self, answer: &Value, reason: &str) -> Option<u64> {
        let has_argument = |waiting: &&Waiting, argument: &Value| {
            waiting.texts.iter().any(|text| serde_json::from_str::<Value>(text).is_ok_and(|asked| asked == *argument))
        };
        let argument = self.rules.response.argument.and_then(|pointer| answer.pointer(pointer));
        let oldest = |is_it: &dyn Fn(&&Waiting) -> bool| {
            self.waiting.iter().filter(|(_, waiting)| is_it(waiting)).map(|(id, _)| *id).min()
        };
        match argument {
            Some(argument) => oldest(&|waiting| has_argument(waiting, argument)),
            None => oldest(&|waiting| waiting.named_in(reason).is_some()).or_else(|| oldest(&|_| true)),
        }
    }

    /// Whether every request is answered.
    pub(super) fn all_answered(&self) -> bool {
        self.waiting.values().all(|waiting| waiting.ends)
    }

    /// What was asked for and not answered in time.
    pub(super) fn overdue(&self, now: Instant) -> Option<&str> {
        let is_late = |waiting: &&Waiting| waiting.until.is_some_and(|until| until < now);
        self.waiting.values().find(is_late).map(|waiting| waiting.subject.as_str())
    }
}

impl Waiting {
    /// The symbol that the venue's words name.
    fn named_in(&self, words: &str) -> Option<String> {
        let is_word = |symbol: &str| {
            words.match_indices(symbol).any(|(at, _)| {
                let is_end =
                    |byte: Option<&u8>| !byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
                let bytes = words.as_bytes();
                is_end(at.checked_sub(1).and_then(|before| bytes.get(before))) && is_end(bytes.get(at + symbol.len()))
            })
        };
        self.items.iter().find(|item| is_word(&item.symbol)).map(|item| item.symbol.clone())
    }
}

/// A value without quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_venue::Venue;

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
        let mut requests = Requests::new(Venue::Okx.rules(), topics, 0, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTC-USDT-SWAP".to_owned(), "ETH-USDT-SWAP".to_owned()]);
        let asked: Value = serde_json::from_str(&sent[0].text).unwrap();
        let names: Vec<&str> =
            asked["args"].as_array().unwrap().iter().filter_map(|arg| arg["channel"].as_str()).collect();
        assert_eq!((sent.len(), names), (1, vec!["trades", "liquidation-orders", "trades"]));
    }

    #[test]
    fn case_m31_without_an_answer_each_symbol_is_named_at_its_deadline() {
        for venue in [Venue::BinanceSpot, Venue::BybitLinear, Venue::Kraken, Venue::Deribit] {
            let topics = vec![venue.rules().topic(TopicKind::Book).unwrap()];
            let mut requests = Requests::new(venue.rules(), topics, 25, Duration::from_secs(1));
            let symbols = ["AAA-BBB".to_owned(), "CCC-DDD".to_owned()];
            let now = Instant::now();
            let sent = requests.subscribe(&symbols);
            assert!(!sent.is_empty() && !requests.all_answered(), "{venue:?}");
            assert_eq!(requests.overdue(now + Duration::from_secs(2)), None, "{venue:?}: not sent yet");
            sent.iter().for_each(|sent| requests.note_sent(sent, now));
            assert_eq!(requests.overdue(now), None, "{venue:?}");
            let late = requests.overdue(now + Duration::from_secs(2)).map(str::to_uppercase);
            assert!(late.is_some_and(|subject| symbols.iter().any(|symbol| subject.contains(symbol))), "{venue:?}");
        }
    }

    #[test]
    fn kraken_refuses_one_symbol_of_two() {
        let mut requests = Requests::new(Venue::Kraken.rules(), usual(Venue::Kraken), 27, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTC/USD".to_owned(), "NO/USD".to_owned()]);
        assert_eq!(sent.len(), 3);
        let book: Value = serde_json::from_str(&sent[0].text).unwrap();
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
        sent.iter().for_each(|sent| requests.note_sent(sent, Instant::now()));
        assert_eq!(requests.take(&accepted), Answer::default());
        let refusal = requests.take(&refused).refusal.unwrap();
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
        let mut requests =
            Requests::new(Venue::BinanceSpot.rules(), usual(Venue::BinanceSpot), 0, Duration::from_secs(1));
        let sent = requests.subscribe(&["BTCUSDT".to_owned()]);
        assert_eq!(
            sent.iter().map(|sent| sent.text.as_str()).collect::<Vec<_>>(),
            [r#"{"id":1,"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","btcusdt@bookTicker","btcusdt@trade"]}"#]
        );
        assert!(!requests.is_answer(r#"{"stream":"btcusdt@trade","data":{}}"#));
        assert_eq!(requests.take(r#"{"result":null,"id":1}"#), Answer::default());
        assert!(requests.all_answered());
        let refusal = requests.take(r#"{"error":{"code":2,"msg":"Invalid request"},"id":9}"#).refusal.unwrap();
        assert_eq!(refusal.reason, "Invalid request");
    }

    /// As OKX's documentation shows a notice of an upgrade, an acknowledgement and an error.
    #[test]
    fn okx_answers_are_matched_by_argument_and_a_notice_is_none() {
        let book = vec![Venue::Okx.rules().topic(TopicKind::Book).unwrap()];
        let mut requests = Requests::new(Venue::Okx.rules(), book, 400, Duration::from_secs(1));
        let first = requests.subscribe(&["BTC-USDT".to_owned(), "NO-USDT".to_owned()]);
        let second = requests.subscribe(&["ETH-USDT".to_owned()]);
        assert_eq!((first.len(), second.len()), (1, 1));
        let notice = r#"{"event":"notice","code":"64008","msg":"The connection will soon be closed for a service upgrade. Please reconnect.","connId":"a4d3ae55"}"#;
        assert!(!requests.is_answer(notice));
        let accepted = |symbol: &str| {
            format!(r#"{{"event":"subscribe","arg":{{"channel":"books","instId":"{symbol}"}},"connId":"a4d3ae55"}}"#)
        };
        assert!(requests.is_answer(&accepted("ETH-USDT")));
        assert_eq!(requests.take(&accepted("ETH-USDT")), Answer::default());
        assert_eq!(requests.take(&accepted("LTC-USDT")), Answer::default(), "of nothing that was asked for");
        assert_eq!(requests.take(&accepted("BTC-USDT")), Answer::default());
        assert!(!requests.all_answered());
        let refused = r#"{"event":"error","code":"60018","msg":"Wrong URL or channel:books,instId:NO-USDT doesn't exist. Please use the correct URL, channel and parameters referring to API document.","connId":"a4d3ae55"}"#;
        assert_eq!(requests.take(refused).refusal.unwrap().subject, "NO-USDT");
        assert!(requests.all_answered());
    }

    /// Bybit refuses a whole request because of one name.
    #[test]
    fn a_request_that_is_refused_is_asked_for_again_in_halves() {
        let venue = Venue::BybitLinear;
        let mut requests = Requests::new(venue.rules(), usual(venue), 50, Duration::from_secs(1));
        let mut unsent = requests.subscribe(&["AAAUSDT", "NOUSDT", "CCCUSDT"].map(str::to_owned));
        let (mut taken, mut refused, mut sent) = (Vec::new(), Vec::new(), 0);
        while let Some(request) = unsent.pop() {
            sent += 1;
            let asked: Value = serde_json::from_str(&request.text).unwrap();
            let names: Vec<&str> = asked["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let bad = names.iter().find(|name| name.ends_with(".NOUSDT"));
            let words = bad.map_or(String::new(), |bad| format!("error:handler not found,topic:{bad}"));
            let answer = serde_json::json!({
                "success": bad.is_none(), "ret_msg": words, "conn_id": "c", "req_id": asked["req_id"], "op": "subscribe"
            });
            let Answer { refusal, again } = requests.take(&answer.to_string());
            refused.extend(refusal.map(|refusal| refusal.subject));
            unsent.extend(again);
            if bad.is_none() {
                taken.extend(names.into_iter().map(str::to_owned));
            }
        }
        taken.sort();
        let of = |symbol: &str| ["orderbook.50", "publicTrade", "tickers"].map(|name| format!("{name}.{symbol}"));
        let mut expected = [of("AAAUSDT"), of("CCCUSDT")].concat();
        expected.sort();
        assert_eq!((taken, refused, requests.all_answered()), (expected, vec!["NOUSDT".to_owned(); 3], true));
        assert!(sent <= 15, "{sent}");
    }
}
