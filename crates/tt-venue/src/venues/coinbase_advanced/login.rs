//! Coinbase Advanced's login and stream of an account.

use crate::rules::{AccountStream, LoginTime, TokenSource, Topic, TopicKind};

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: "wss://advanced-trade-ws-user.coinbase.com",
    time: LoginTime::Seconds,
    signature: None,
    token: Some(TokenSource::Jwt { issuer: "cdp", lifetime_s: 120 }),
    message: "",
    request: r#"{"type":"subscribe",{topics}}"#,
    topics: &[
        Topic::standard(TopicKind::Orders, r#""channel":"user","jwt":"{token}""#),
        Topic::standard(TopicKind::Heartbeat, r#""channel":"heartbeats","jwt":"{token}""#),
    ],
    key_pair: None,
};
