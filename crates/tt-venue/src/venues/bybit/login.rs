//! Bybit's login and stream of an account.

use crate::rules::{
    AccountStream, Hash, KeyEncoding, LoginTime, Signature, SignatureEncoding, SignedText, Topic, TopicKind,
};

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: "wss://stream.bybit.com/v5/private",
    time: LoginTime::ExpiryMilliseconds,
    signature: Some(Signature {
        text: SignedText::Text("GET/realtime{time}"),
        hash: Hash::Sha256,
        key: KeyEncoding::Bytes,
        encoding: SignatureEncoding::Hex,
    }),
    token: None,
    message: r#"{"req_id":"{id}","op":"auth","args":["{key}",{time},"{signature}"]}"#,
    request: r#"{"req_id":"{id}","op":"subscribe","args":[{topics}]}"#,
    topics: &[
        Topic::standard(TopicKind::Orders, "\"order\""),
        Topic::standard(TopicKind::Executions, "\"execution\""),
        Topic::standard(TopicKind::Positions, "\"position\""),
        Topic::standard(TopicKind::Balances, "\"wallet\""),
    ],
    key_pair: None,
};
