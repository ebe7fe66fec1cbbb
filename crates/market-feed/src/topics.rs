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
const NAMES: [(TopicKind, &str); 10] = [
    (TopicKind::BestLevels, "best-levels"),
    (TopicKind::Ticker, "ticker"),
    (TopicKind::Candles, "candles"),
    (TopicKind::MarkPrice, "mark-price"),
    (TopicKind::IndexPrice, "index-price"),
    (TopicKind::Funding, "funding"),
    (TopicKind::OpenInterest, "open-interest"),
    (TopicKind::Liquidations, "liquidations"),
    (TopicKind::BlockTrades, "block-trades"),
    (TopicKind::Sessions, "sessions"),
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
        TopicKind::Status => "status",
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
        | TopicKind::Liquidations
        | TopicKind::BlockTrades
        | TopicKind::Sessions => "book",
    };
    NAMES.iter().find(|known| known.0 == kind).map_or_else(unnamed, |known| known.1)
}

/// How many symbols one connection can serve with these topics; one that names no symbol counts once.
pub(super) fn symbols_max<'a>(rules: &Rules, topics: impl Iterator<Item = &'a Topic>) -> usize {
    let (of_symbols, shared): (Vec<&Topic>, Vec<&Topic>) = topics.partition(|topic| topic.names_symbol());
    ((rules.topics_max as usize).saturating_sub(shared.len()) / of_symbols.len().max(1)).max(1)
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

/// A venue's reason with what is known of it.
fn with_hint(reason: String, hints: &[(&str, &str)]) -> String {
    let words = reason.to_lowercase();
    match hints.iter().find(|(word, _)| words.contains(word)) {
        Some((_, hint)) => format!("{reason} ({hint})"),
        None => reason,
    }
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
        let topic = self.rules.topics_of(self.depth).find(|topic| topic.kind == TopicKind::Book);
        let Some(book) = topic else { return Vec::new() };
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
                let mut shared: Vec<String> = Vec::new();
                // One that names no symbol is asked for once, or once for each family.
                let is_new = |item: &Item| {
                    if item.topic.names_symbol() {
                        return true;
                    }
                    let text = self.fill(item.topic, &item.symbol);
                    let is_new = !shared.contains(&text);
                    shared.extend(is_new.then_some(text));
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
        let family = self.rules.instruments.family.and_then(|family| family(symbol)).unwrap_or(symbol);
        text.replace("{depth}", &depth).replace("{family}", family)
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
            reason: with_hint(reason.unwrap_or("no reason given".to_owned()), rule.hints),
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
mod tests;
