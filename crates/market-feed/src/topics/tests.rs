//! Requests and their answers.

use super::*;
use serde_json::json;
use tt_venue::Venue;

fn usual(venue: Venue) -> Vec<&'static Topic> {
    venue.rules().default_topics().collect()
}

#[test]
fn trades_of_options_are_asked_for_once_for_each_base() {
    let rules = Venue::BybitOption.rules();
    let mut requests = Requests::new(rules, usual(Venue::BybitOption), 25, Duration::from_secs(1));
    let symbols = ["BTC-26MAR27-50000-C-USDT", "BTC-26MAR27-50000-P-USDT", "ETH-26MAR27-3000-C-USDT"];
    let sent = requests.subscribe(&symbols.map(str::to_owned));
    let asked: Value = serde_json::from_str(&sent[0].text).unwrap();
    let names: Vec<&str> = asked["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let of_trades: Vec<&&str> = names.iter().filter(|name| name.starts_with("publicTrade")).collect();
    assert_eq!(of_trades, [&"publicTrade.BTC", &"publicTrade.ETH"], "{names:?}");
    assert_eq!(names.len(), 2 * symbols.len() + 2, "{names:?}");
    // The answer names what was accepted (bybit-exchange.github.io/docs/v5/ws/connect, "Option").
    let answer = json!({
        "success": true, "conn_id": "c", "type": "COMMAND_RESP",
        "data": {"failTopics": [names[0]], "successTopics": names[1..]},
    });
    let refusal = requests.take(&answer.to_string()).refusal.unwrap();
    assert_eq!(refusal.subject, names[0]);
    assert!(requests.all_answered());
    assert!(requests.end(symbols[0]).iter().all(|request| !request.text.contains("publicTrade")), "others need it");
}

#[test]
fn a_topic_is_asked_for_and_ended_as_the_depth_wants_it() {
    let of = |depth: u32| {
        let topics = Venue::Hyperliquid.rules().topics_of(depth).filter(|topic| topic.is_default).collect();
        let mut requests = Requests::new(Venue::Hyperliquid.rules(), topics, depth, Duration::from_secs(1));
        let symbols = ["BTC".to_owned()];
        [requests.subscribe(&symbols), requests.resubscribe(&symbols)].concat()
    };
    for (depth, fast) in [(5, json!(true)), (20, Value::Null)] {
        let asked = of(depth).into_iter().map(|request| serde_json::from_str::<Value>(&request.text).unwrap());
        let books: Vec<Value> = asked.filter(|asked| asked["subscription"]["type"] == "l2Book").collect();
        let methods: Vec<&str> = books.iter().filter_map(|asked| asked["method"].as_str()).collect();
        assert_eq!(methods, ["subscribe", "unsubscribe", "subscribe"], "{books:?}");
        assert!(books.iter().all(|asked| asked["subscription"]["fast"] == fast), "{books:?}");
    }
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
    let names: Vec<&str> = asked["args"].as_array().unwrap().iter().filter_map(|arg| arg["channel"].as_str()).collect();
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
    assert_eq!((refusal.subject.as_str(), refusal.reason.as_str()), ("NO/USD", "Currency pair not supported NO/USD"));
    assert!(!requests.all_answered(), "ticker and trade are still to be answered");
    assert!(requests.overdue(Instant::now()).is_none());
    assert!(requests.overdue(Instant::now() + Duration::from_secs(2)).is_some());
}

#[test]
fn binance_answers_a_request_as_a_whole() {
    let mut requests = Requests::new(Venue::BinanceSpot.rules(), usual(Venue::BinanceSpot), 0, Duration::from_secs(1));
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

/// "Exchange accounts are limited to 10 WebSocket subscriptions on a per product, per channel basis"
/// (docs.cdp.coinbase.com/exchange/websocket-feed/rate-limits).
#[test]
fn a_refusal_at_the_limit_of_coinbase_says_how_many_subscriptions_there_are() {
    let rules = Venue::CoinbaseExchange.rules().l3.unwrap();
    let refusal = |reason: &str| {
        let topics = rules.default_topics().take(1).collect();
        let mut requests = Requests::new(rules, topics, 0, Duration::from_secs(1));
        requests.subscribe(&["BTC-USD".to_owned()]);
        let answer = json!({"type": "error", "message": "Failed to subscribe", "reason": reason});
        requests.take(&answer.to_string()).refusal.unwrap()
    };
    let at_limit = refusal("subscription Limit exceeded");
    let hint = "an account has 10 subscriptions of one product and channel, and more with a paid tier";
    assert!(at_limit.subject.contains("BTC-USD"), "{at_limit:?}");
    assert_eq!(at_limit.reason, format!("subscription Limit exceeded ({hint})"));
    assert_eq!(refusal("full is not a valid channel").reason, "full is not a valid channel");
}

/// docs/market-topics.md from the rules: each topic with the month and the source of its last check.
/// `TRUETICK_ACCEPT=1` writes it.
#[test]
fn the_list_of_topics_has_the_last_check_of_each() {
    let mut page = include_str!("../../../../docs/market-topics.md").to_owned();
    let (begin, end) = ("<!-- BEGIN: topics -->\n", "<!-- END: topics -->");
    let from = page.find(begin).expect("the list begins") + begin.len();
    let to = page.find(end).expect("the list ends");
    let mut list = String::new();
    for venue in Venue::ALL {
        let rules = venue.rules();
        let kinds =
            [("", Some(rules)), (" with `level3`", rules.l3), (" with `rpi`", rules.rpi), (", all levels", rules.full)];
        for (what, rules) in kinds.into_iter().filter_map(|(what, rules)| Some((what, rules?))) {
            list += &section(&format!("`{}`{what}", venue.name()), rules.topics, rules.check());
        }
        if let Some(account) = rules.account.filter(|account| !account.topics.is_empty()) {
            list += &section(&format!("`{}`, account", venue.name()), account.topics, rules.check());
        }
    }
    if std::env::var_os("TRUETICK_ACCEPT").is_some() {
        page.replace_range(from..to, &list);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/market-topics.md");
        std::fs::write(path, page).expect("the page is written");
    } else {
        assert!(page[from..to] == list, "docs/market-topics.md is not up to date: TRUETICK_ACCEPT=1");
    }
}

fn section(title: &str, topics: &[Topic], usual: tt_venue::rules::TopicCheck) -> String {
    let mut sources = vec![usual.source];
    let mut rows = String::new();
    for topic in topics {
        let check = topic.check.unwrap_or(usual);
        let known = sources.iter().position(|source| *source == check.source);
        let number = known.unwrap_or_else(|| {
            sources.push(check.source);
            sources.len() - 1
        });
        let depth = topic.depth.map_or(String::new(), |depth| format!(", {depth} levels"));
        let (name, text) = (topic_name(topic.kind), topic.text);
        rows += &format!("| {name}{depth} | `{text}` | {} | {} |\n", check.month, number + 1);
    }
    let sources: String = sources.iter().enumerate().map(|(at, source)| format!("{}. {source}\n", at + 1)).collect();
    format!("### {title}\n\n| topic | request | checked | source |\n|---|---|---|---|\n{rows}\n{sources}\n")
}
