//! Hyperliquid's login and stream of an account.

use crate::rules::{AccountStream, LoginTime, TokenSource, Topic, TopicKind};

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: "wss://api.hyperliquid.xyz/ws",
    time: LoginTime::Milliseconds,
    signature: None,
    token: Some(TokenSource::Key),
    message: "",
    request: r#"{"method":"subscribe","subscription":{topics}}"#,
    topics: &[
        Topic::standard(TopicKind::Orders, r#"{"type":"orderUpdates","user":"{token}"}"#),
        Topic::standard(TopicKind::Executions, r#"{"type":"userFills","user":"{token}"}"#),
        // Orders from before the connection; clients report that the name of all builders is accepted.
        Topic::standard(TopicKind::Orders, r#"{"type":"openOrders","user":"{token}","dex":"ALL_DEXS"}"#),
        // With builders' perpetuals: a state without them would replace all positions.
        Topic::standard(TopicKind::Positions, r#"{"type":"allDexsClearinghouseState","user":"{token}"}"#),
        Topic::standard(TopicKind::Balances, r#"{"type":"spotState","user":"{token}"}"#),
        Topic::optional(TopicKind::Balances, r#"{"type":"userFundings","user":"{token}"}"#),
    ],
    key_pair: None,
};
