//! OKX's login and stream of an account.

use crate::rules::{
    AccountStream, Hash, KeyEncoding, LoginTime, Signature, SignatureEncoding, SignedText, Topic, TopicKind,
};

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: "wss://ws.okx.com:8443/ws/v5/private",
    time: LoginTime::Seconds,
    signature: Some(Signature {
        text: SignedText::Text("{time}GET/users/self/verify"),
        hash: Hash::Sha256,
        key: KeyEncoding::Bytes,
        encoding: SignatureEncoding::Base64,
    }),
    token: None,
    message: r#"{"op":"login","args":[{"apiKey":"{key}","passphrase":"{passphrase}","timestamp":"{time}","sign":"{signature}"}]}"#,
    request: r#"{"op":"subscribe","args":[{topics}]}"#,
    topics: &[
        Topic::standard(TopicKind::Orders, r#"{"channel":"orders","instType":"ANY"}"#),
        Topic::standard(TopicKind::Positions, r#"{"channel":"positions","instType":"ANY"}"#),
        Topic::standard(TopicKind::Balances, r#"{"channel":"account"}"#),
    ],
    key_pair: None,
};
