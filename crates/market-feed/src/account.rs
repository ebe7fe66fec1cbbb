//! An account's own stream: its address, the login, and the topics.

mod signature;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::Uri;
use hyper::header::HeaderName;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;
use tt_market::Capacity;
use tt_meter::Clock;
use tt_venue::ParseError;
use tt_venue::event::{Control, Event, EventBuffer};
use tt_venue::rules::Rules;
use tt_venue::rules::{AccountStream, LoginTime, TokenRequest, TokenSource};
use zeroize::Zeroizing;

use super::dial::LastRead;
use super::random;
use super::rest::{self, RestRequest};
use super::settings::FeedConfig;
use super::socket::{self, Socket};

use super::credentials::Credentials;

/// A signature that names its end is good for so long.
const EXPIRY: Duration = Duration::from_secs(10);

/// Frames that may come between a request and its answer.
const EARLY_MAX: usize = 10_000;

/// Maximum number of characters of the venue's error text.
const WORDS_MAX: usize = 200;

/// Why there is no stream.
#[derive(Debug)]
pub(super) enum LoginError {
    /// The venue does not believe it, or does not offer it: asking again would not help.
    Refused(String),
    /// The venue was not reached, or fell silent.
    Unreached(String),
}

impl LoginError {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Refused(reason) | Self::Unreached(reason) => reason,
        }
    }
}

/// What a refused login may mean at a venue whose accounts are known at the addresses of their region only: it may say
/// that the key does not exist.
fn region_hint(rules: &Rules) -> String {
    let names: Vec<&str> = rules.regions.iter().map(|region| region.name).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(" (an account of another region logs in at that region's addresses: region is one of {})", names.join(", "))
}

/// A connection that the venue knows the owner of, with everything asked for and acknowledged.
pub(super) struct LoggedIn {
    pub(super) socket: Socket,
    pub(super) last_read: LastRead,
    /// What came before the last acknowledgement, in order; the acknowledgements are among it.
    pub(super) early: Vec<String>,
    /// Topics that were acknowledged.
    pub(super) topics: usize,
    /// What keeps the login alive, where it ends by itself.
    pub(super) renewal: Option<Renewal>,
}

/// A token that is not used yet ends after 15 minutes at a venue: the next one is there before.
const TOKEN_RENEWAL: Duration = Duration::from_secs(600);

/// A renewal that failed is tried again after this time.
const TOKEN_AGAIN: Duration = Duration::from_secs(30);

/// Proof of who the client is, for requests that need it.
#[derive(Clone)]
pub(super) struct RequestLogin {
    stream: AccountStream,
    account: Credentials,
    token: Zeroizing<String>,
    /// When the next token is due.
    due: Instant,
}

impl RequestLogin {
    /// Gets the token, if the venue gives one; `None` if requests of `feed` need no login.
    ///
    /// # Errors
    /// See [`LoginError`].
    pub(super) async fn new(feed: FeedConfig, clock: Clock) -> Result<Option<Self>, LoginError> {
        let known = feed.rules().account.zip(feed.account.as_ref()).filter(|_| feed.rules().needs_login());
        let Some((stream, account)) = known else { return Ok(None) };
        let proof = Proof::make(&feed, &stream, account, clock).await?;
        let token = proof.fill_plain("{token}").into();
        Ok(Some(Self { stream, account: account.clone(), token, due: Instant::now() + TOKEN_RENEWAL }))
    }

    /// `text` with its places filled, at this moment.
    pub(super) fn fill(&self, text: &str) -> String {
        match Proof::sign(&self.stream, &self.account) {
            Ok(mut proof) => {
                proof.places.push(("{token}", self.token.clone()));
                proof.fill(text)
            }
            // It was signed before, with the same secret.
            Err(_) => text.to_owned(),
        }
    }

    /// Whether it is time for the next token.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        matches!(self.stream.token, Some(TokenSource::Rest(_))) && now >= self.due
    }

    /// There was no next token.
    pub(super) fn postpone(&mut self) {
        self.due = Instant::now() + TOKEN_AGAIN;
    }
}

/// A listen key that ends unless it is renewed.
#[derive(Clone)]
pub(super) struct Renewal {
    /// How often.
    pub(super) every: Duration,
    uri: Uri,
    headers: Headers,
}

impl Renewal {
    fn new(feed: &FeedConfig, stream: &AccountStream, proof: &Proof) -> Option<Self> {
        let TokenSource::Rest(request) = stream.token? else { return None };
        let every = Duration::from_nanos(request.renewal_interval?.0);
        Some(Self { every, uri: token_uri(feed, &request).ok()?, headers: proof.headers(&request) })
    }

    /// Renews it once.
    ///
    /// # Errors
    /// The venue's words, or why it was not reached.
    pub(super) async fn renew(self, clock: Clock) -> Result<(), String> {
        rest::send(&self.uri, with_headers(RestRequest::put(), self.headers), clock)
            .await
            .map(drop)
            .map_err(|failed| failed.reason)
    }
}

/// Address of the account's stream: the venue's, or the same path of the host that replaces the venue. Places are not
/// filled.
///
/// # Errors
/// The venue has none.
pub(super) fn address(feed: &FeedConfig) -> Result<Uri> {
    let rules = feed.rules();
    let stream = rules.account.with_context(|| format!("{} has no stream of an account", rules.name))?;
    Ok(feed.elsewhere(stream.streams))
}

/// Opens the account's stream of `feed`, logs in, and asks for its topics. Each answer is waited for.
///
/// # Errors
/// See [`LoginError`].
pub(super) async fn login(feed: &FeedConfig, account: &Credentials, clock: Clock) -> Result<LoggedIn, LoginError> {
    let rules = feed.venue.rules();
    let refused = |error: anyhow::Error| LoginError::Refused(format!("{error:#}"));
    let address = address(feed).map_err(refused)?;
    let Some(stream) = rules.account else { return Err(LoginError::Refused("no stream of an account".to_owned())) };
    let stream = by_secret(stream, account);
    let proof = Proof::make(feed, &stream, account, clock).await?;
    let address = proof.fill(&address.to_string()).parse().map_err(|error| refused(anyhow::Error::new(error)))?;
    let (socket, last_read) =
        socket::open(&address, clock).await.map_err(|error| LoginError::Unreached(format!("{error:#}")))?;
    let standard = Capacity::default();
    let buffer = EventBuffer::new(standard.frame_levels, standard.frame_entries);
    let mut exchange =
        LoginExchange { rules, socket, buffer, early: Vec::new(), answer_max: feed.timing.answer_max, last_id: 0 };
    if !stream.message.is_empty() {
        exchange.request(&proof.fill(stream.message), 1).await?;
    }
    let quoted: Vec<String> = feed.symbols.iter().map(|symbol| format!("\"{symbol}\"")).collect();
    let texts: Vec<String> = stream
        .topics
        .iter()
        .filter(|topic| topic.is_default)
        .map(|topic| proof.fill(topic.text).replace("{symbols}", &quoted.join(",")))
        .collect();
    let at_once =
        if rules.response.is_per_topic || rules.request.grouping != tt_venue::rules::Grouping::Topics { 1 } else { 16 };
    // Where the address holds the token, nothing is asked for.
    let asked = if stream.request.is_empty() { &[][..] } else { &texts };
    for chunk in asked.chunks(at_once) {
        let request = proof.fill(stream.request).replace("{topics}", &chunk.join(","));
        exchange.request(&request, chunk.len()).await?;
        exchange.check(chunk)?;
    }
    let LoginExchange { socket, early, .. } = exchange;
    Ok(LoggedIn { socket, last_read, early, topics: texts.len(), renewal: Renewal::new(feed, &stream, &proof) })
}

/// `stream` as an account with this secret logs in: with its own key where the secret is one and the venue takes it.
fn by_secret(stream: AccountStream, account: &Credentials) -> AccountStream {
    match stream.key_pair.filter(|_| signature::is_private_key(&account.secret)) {
        Some(login) => AccountStream { message: login.message, request: login.request, ..stream },
        None => stream,
    }
}

/// A connection before everything was acknowledged.
struct LoginExchange {
    rules: &'static Rules,
    socket: Socket,
    buffer: EventBuffer,
    early: Vec<String>,
    answer_max: Duration,
    last_id: u64,
}

impl LoginExchange {
    /// Sends a request and waits for its one answer.
    async fn request(&mut self, text: &str, topics: usize) -> Result<(), LoginError> {
        self.last_id += 1;
        let request = Zeroizing::new(text.replace("{id}", &self.last_id.to_string()));
        let sent = self.socket.send(Message::text(request.as_str())).await;
        sent.map_err(|error| LoginError::Unreached(error.to_string()))?;
        let answer_max = self.answer_max;
        let late = |_| LoginError::Unreached(format!("no answer to the account's request for {topics} topics"));
        tokio::time::timeout(answer_max, self.answer()).await.map_err(late)?
    }

    async fn answer(&mut self) -> Result<(), LoginError> {
        loop {
            let message = self.socket.next().await.context("the venue closed the connection");
            let message = message.and_then(|message| Ok(message?));
            let text = match message.map_err(|error| LoginError::Unreached(error.to_string()))? {
                Message::Text(text) => text.as_str().to_owned(),
                Message::Close(reason) => {
                    let reason = reason.map_or_else(String::new, |close| close.to_string());
                    return Err(LoginError::Refused(format!("the venue closed the connection: {reason}")));
                }
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            let venue = tt_venue::Venue::find(self.rules.name);
            let read = venue.map(|venue| venue.parse(text.as_bytes(), &mut self.buffer));
            match read {
                Some(Err(ParseError::Rejected)) => {
                    return Err(LoginError::Refused(self.words(&text) + &region_hint(self.rules)));
                }
                Some(Ok(Event::Control(Control::Accepted | Control::LoggedIn))) => {
                    self.keep(text);
                    return Ok(());
                }
                Some(_) | None => self.keep(text),
            }
        }
    }

    /// Whether the last answer lists each of `topics`, where the venue's answers do.
    fn check(&self, topics: &[String]) -> Result<(), LoginError> {
        let Some((pointer, answer)) = self.rules.response.accepted.zip(self.early.last()) else { return Ok(()) };
        let answer: Value = serde_json::from_str(answer).unwrap_or_default();
        let listed = answer.pointer(pointer).map(Value::to_string).unwrap_or_default();
        match topics.iter().find(|topic| !listed.contains(topic.as_str())) {
            Some(topic) => Err(LoginError::Refused(format!("{topic} was not accepted"))),
            None => Ok(()),
        }
    }

    fn keep(&mut self, text: String) {
        if self.early.len() < EARLY_MAX {
            self.early.push(text);
        }
    }

    /// The venue's reason, or its answer as it is.
    fn words(&self, text: &str) -> String {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        let reason = self.rules.response.reason.iter().find_map(|pointer| answer.pointer(pointer));
        let reason = reason.and_then(Value::as_str).filter(|reason| !reason.is_empty());
        reason.unwrap_or(text).chars().take(WORDS_MAX).collect()
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What fills the places of an account's messages.
struct Proof {
    places: Vec<(&'static str, Zeroizing<String>)>,
}

impl Proof {
    async fn make(
        feed: &FeedConfig,
        stream: &AccountStream,
        account: &Credentials,
        clock: Clock,
    ) -> Result<Self, LoginError> {
        let refused = |error: anyhow::Error| LoginError::Refused(format!("{error:#}"));
        let mut proof = Self::sign(stream, account).map_err(refused)?;
        let token = match stream.token {
            Some(TokenSource::Rest(request)) => by_rest(feed, &request, &proof, clock).await?,
            Some(TokenSource::Jwt { issuer, lifetime_s }) => {
                let nonce = format!("{:016x}", random::bytes().map_or(0, u64::from_ne_bytes));
                let validity = signature::Validity { from_s: unix_time().as_secs(), lifetime_s };
                signature::json_web_token(issuer, account, &nonce, validity).map_err(refused)?
            }
            Some(TokenSource::Key) => account.key.clone(),
            None => String::new(),
        };
        proof.places.push(("{token}", token.into()));
        Ok(proof)
    }

    /// What needs no answer of the venue: everything but the token.
    fn sign(stream: &AccountStream, account: &Credentials) -> Result<Self> {
        let now = unix_time();
        let time = match stream.time {
            LoginTime::Seconds => now.as_secs().to_string(),
            LoginTime::Milliseconds => now.as_millis().to_string(),
            LoginTime::ExpiryMilliseconds => (now + EXPIRY).as_millis().to_string(),
        };
        let text = |text: &str| Zeroizing::new(text.to_owned());
        let places = vec![
            ("{key}", text(&account.key)),
            ("{secret}", account.secret.clone()),
            ("{passphrase}", account.passphrase.clone()),
            ("{time}", text(&time)),
        ];
        let mut proof = Self { places };
        let signature = match (&stream.key_pair, &stream.signature) {
            (Some(login), _) if signature::is_private_key(&account.secret) => {
                Some(signature::sign_with_key_pair(&account.secret, &proof.fill_plain(login.text))?)
            }
            (_, Some(rule)) => Some(signature::sign(rule, &account.secret, &time, |text| proof.fill_plain(text))?),
            (_, None) => None,
        };
        proof.places.extend(signature.map(|signature| ("{signature}", Zeroizing::new(signature))));
        Ok(proof)
    }

    /// The headers of a request for a token.
    fn headers(&self, request: &TokenRequest) -> Headers {
        let filled = |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), self.fill_plain(value));
        request.headers.iter().map(filled).collect()
    }

    /// `text` with its places filled as they are.
    fn fill_plain(&self, text: &str) -> String {
        self.places.iter().fold(text.to_owned(), |text, (place, value)| text.replace(place, value))
    }

    /// `text` with its places filled, as JSON writes them.
    fn fill(&self, text: &str) -> String {
        self.places.iter().fold(text.to_owned(), |text, (place, value)| {
            let written = Zeroizing::new(Value::from(value.as_str()).to_string());
            // Without its quotes.
            text.replace(place, &written[1..written.len() - 1])
        })
    }
}

/// Names and values of a request's headers.
type Headers = Vec<(HeaderName, String)>;

fn with_headers(request: RestRequest, headers: Headers) -> RestRequest {
    headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// The token by REST: from its own host, or from the one that replaces the venue.
async fn by_rest(feed: &FeedConfig, request: &TokenRequest, proof: &Proof, clock: Clock) -> Result<String, LoginError> {
    let refused = |error: anyhow::Error| LoginError::Refused(format!("{error:#}"));
    let uri = token_uri(feed, request).map_err(refused)?;
    let token_request =
        with_headers(RestRequest::post(request.content_type, proof.fill_plain(request.body)), proof.headers(request));
    let answer = rest::send(&uri, token_request, clock).await.map_err(|failed| {
        let message = format!("{uri}: {}", failed.reason);
        if failed.is_final { LoginError::Refused(message) } else { LoginError::Unreached(message) }
    })?;
    found(&answer.body, request.pointer).map_err(refused)
}

fn token_uri(feed: &FeedConfig, request: &TokenRequest) -> Result<Uri> {
    if feed.is_at_venue() {
        Ok(format!("{}{}", request.rest, request.path).parse()?)
    } else {
        feed.rest_uri(request.path)
    }
}

fn found(body: &[u8], pointer: &str) -> Result<String> {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { bail!("the answer with the token is no JSON") };
    let token = answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let words: String = String::from_utf8_lossy(body).chars().take(WORDS_MAX).collect();
    ensure!(!token.is_empty(), "no token: {words}");
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_as_json_writes_them() {
        let proof = Proof { places: vec![("{passphrase}", Zeroizing::new("a \"b\" \\ c".to_owned()))] };
        let filled = proof.fill(r#"{"passphrase":"{passphrase}"}"#);
        let read: Value = serde_json::from_str(&filled).unwrap();
        assert_eq!(read["passphrase"], "a \"b\" \\ c");
    }

    fn request_login(feed: &FeedConfig) -> Option<RequestLogin> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(RequestLogin::new(feed.clone(), tt_os::clock::clock())).unwrap()
    }

    #[test]
    fn requests_for_single_orders_are_signed_at_the_moment() {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        use hmac::{KeyInit as _, Mac as _};
        let symbols = vec!["BTC-USD".to_owned(), "ETH-USD".to_owned()];
        let mut feed = FeedConfig::public(tt_venue::Venue::CoinbaseExchange, symbols.clone());
        feed.account = Some(Credentials::new("k-1", "c2VjcmV0", "pa \"ss\""));
        assert!(request_login(&feed).is_none(), "books of levels need no login");
        feed.follow_orders().unwrap();
        assert_eq!(feed.streams, "wss://ws-direct.exchange.coinbase.com");
        let login = request_login(&feed).unwrap();
        let topics = feed.topics().collect();
        let mut requests = crate::topics::Requests::new(feed.rules(), topics, 0, Duration::from_secs(1));
        let before = unix_time().as_secs();
        let mut channels = Vec::new();
        for (request, method) in requests.subscribe(&symbols).into_iter().zip(["subscribe"; 4]) {
            let sent: Value = serde_json::from_str(&login.fill(&request.text)).unwrap();
            assert_eq!((&sent["type"], &sent["key"]), (&method.into(), &"k-1".into()));
            assert_eq!(sent["passphrase"], "pa \"ss\"");
            assert_eq!(sent["channels"][0]["product_ids"], serde_json::json!(symbols));
            channels.push(sent["channels"][0]["name"].as_str().unwrap().to_owned());
            let time = sent["timestamp"].as_str().unwrap();
            assert!((before..=unix_time().as_secs()).contains(&time.parse().unwrap()));
            let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(b"secret").unwrap();
            mac.update(format!("{time}GET/users/self/verify").as_bytes());
            assert_eq!(sent["signature"], STANDARD.encode(mac.finalize().into_bytes()));
        }
        assert_eq!(channels, ["full", "heartbeat"]);
        assert!(!login.is_due(Instant::now() + TOKEN_RENEWAL * 2), "no token ends");
    }

    #[test]
    fn a_token_is_replaced_before_it_ends() {
        let stream = tt_venue::Venue::Kraken.rules().account.unwrap();
        let account = Credentials::new("k-1", "c2VjcmV0", "");
        let (token, due) = (Zeroizing::new("T".to_owned()), Instant::now() + TOKEN_RENEWAL);
        let mut login = RequestLogin { stream, account, token, due };
        assert_eq!(login.fill(r#"{"token":"{token}"}"#), r#"{"token":"T"}"#);
        assert!(!login.is_due(due - Duration::from_secs(1)) && login.is_due(due));
        assert!(TOKEN_RENEWAL + 2 * TOKEN_AGAIN < Duration::from_secs(900), "Kraken's tokens last 15 minutes");
        login.due = Instant::now();
        login.postpone();
        assert!(!login.is_due(Instant::now()));
    }

    #[test]
    fn a_listen_key_is_renewed_by_a_put() {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let streams = format!("ws://{}/stream", listener.local_addr().unwrap()).parse().unwrap();
        let feed = FeedConfig::at(tt_venue::Venue::BinanceUsdm, streams, Vec::new());
        let proof = Proof { places: vec![("{key}", Zeroizing::new("k-1".to_owned()))] };
        let renewal = Renewal::new(&feed, &feed.venue.rules().account.unwrap(), &proof).unwrap();
        assert_eq!(renewal.every, Duration::from_secs(30 * 60));
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            String::from_utf8(request).unwrap().to_ascii_lowercase()
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(renewal.renew(tt_os::clock::clock())).unwrap();
        let asked = asked.join().unwrap();
        assert!(
            asked.starts_with("put /fapi/v1/listenkey http/1.1\r\n") && asked.contains("x-mbx-apikey: k-1"),
            "{asked}"
        );
        let spot = FeedConfig::public(tt_venue::Venue::BinanceSpot, Vec::new());
        assert!(Renewal::new(&spot, &spot.venue.rules().account.unwrap(), &proof).is_none());
    }

    #[test]
    fn an_answer_without_a_token_is_an_error_with_the_venues_text() {
        let message = found(br#"{"error":["EAPI:Invalid key"]}"#, "/result/token").unwrap_err();
        assert!(message.to_string().contains("EAPI:Invalid key"));
        assert_eq!(found(br#"{"error":[],"result":{"token":"t"}}"#, "/result/token").unwrap(), "t");
    }
}
