//! Deribit's login and stream of an account.

use crate::rules::{AccountStream, LoginTime, Topic, TopicKind};

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: "wss://www.deribit.com/ws/api/v2",
    time: LoginTime::Milliseconds,
    signature: None,
    token: None,
    message: r#"{"jsonrpc":"2.0","id":{id},"method":"public/auth","params":{"grant_type":"client_credentials","client_id":"{key}","client_secret":"{secret}"}}"#,
    request: r#"{"jsonrpc":"2.0","id":{id},"method":"private/subscribe","params":{"channels":[{topics}]}}"#,
    topics: &[
        Topic::standard(TopicKind::Orders, "\"user.changes.any.any.raw\""),
        Topic::standard(TopicKind::Balances, "\"user.portfolio.any\""),
    ],
    key_pair: None,
};
