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
        // Those of the venue's own perpetuals: a state without builders' replaces all positions.
        Topic::standard(TopicKind::Positions, r#"{"type":"clearinghouseState","user":"{token}","dex":""}"#),
        Topic::optional(TopicKind::Balances, r#"{"type":"userFundings","user":"{token}"}"#),
    ],
};
