//! Kraken's login and stream of an account.

use crate::rules::{
    AccountStream, Hash, KeyEncoding, LoginTime, Signature, SignatureEncoding, SignedText, TokenRequest, TokenSource,
    Topic, TopicKind,
};

const TOKEN_PATH: &str = "/0/private/GetWebSocketsToken";
const TOKEN_BODY: &str = "nonce={time}";

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: "wss://ws-auth.kraken.com/v2",
    time: LoginTime::Milliseconds,
    signature: Some(Signature {
        text: SignedText::PathAndDigest { path: TOKEN_PATH, body: TOKEN_BODY },
        hash: Hash::Sha512,
        key: KeyEncoding::Base64,
        encoding: SignatureEncoding::Base64,
    }),
    token: Some(TokenSource::Rest(TokenRequest {
        rest: "https://api.kraken.com",
        path: TOKEN_PATH,
        content_type: "application/x-www-form-urlencoded",
        body: TOKEN_BODY,
        headers: &[("api-key", "{key}"), ("api-sign", "{signature}")],
        pointer: "/result/token",
        renewal_interval: None,
    })),
    message: "",
    request: r#"{"method":"subscribe","params":{{topics}},"req_id":{id}}"#,
    topics: &[Topic::standard(TopicKind::Orders, r#""channel":"executions","snap_orders":true,"token":"{token}""#)],
    key_pair: None,
};
