//! Binance's login and stream of an account.

use crate::rules::{
    AccountStream, Hash, KeyEncoding, KeyPairLogin, LoginTime, Signature, SignatureEncoding, SignedText, TokenRequest,
    TokenSource, Topic, TopicKind,
};
use tt_model::Nanos;

const REQUEST: &str = r#"{"id":{id},"method":"SUBSCRIBE","params":[{topics}]}"#;

/// It lasts an hour unless it is renewed.
const LISTEN_KEY: TokenRequest = TokenRequest {
    rest: "",
    path: "",
    content_type: "application/json",
    body: "",
    headers: &[("x-mbx-apikey", "{key}")],
    pointer: "/listenKey",
    renewal_interval: Some(Nanos::from_secs(30 * 60)),
};

/// The parameters of a signed request, in the order of their names. Payloads of this interface are signed as they are;
/// those of REST are percent-encoded before.
const SIGNED_TEXT: &str = "apiKey={key}&timestamp={time}";

// Listen keys are no more: a signed request subscribes (developers.binance.com, "User Data Stream requests").
pub(super) const SPOT: AccountStream = AccountStream {
    streams: "wss://ws-api.binance.com:443/ws-api/v3",
    time: LoginTime::Milliseconds,
    signature: Some(Signature {
        text: SignedText::Text(SIGNED_TEXT),
        hash: Hash::Sha256,
        key: KeyEncoding::Bytes,
        encoding: SignatureEncoding::Hex,
    }),
    token: None,
    message: "",
    request: r#"{"id":{id},"method":"userDataStream.subscribe.signature","params":{"apiKey":"{key}","signature":"{signature}","timestamp":{time}}}"#,
    topics: &[Topic::standard(TopicKind::Orders, "\"{token}\"")],
    key_pair: Some(KeyPairLogin {
        // A session takes Ed25519 keys only ("Session Authentication").
        text: SIGNED_TEXT,
        message: r#"{"id":{id},"method":"session.logon","params":{"apiKey":"{key}","signature":"{signature}","timestamp":{time}}}"#,
        request: r#"{"id":{id},"method":"userDataStream.subscribe"}"#,
    }),
};

// The address holds the listen key, and nothing is asked for on it.
pub(super) const USDM: AccountStream = AccountStream {
    streams: "wss://fstream.binance.com/private/ws?listenKey={token}",
    time: LoginTime::Milliseconds,
    signature: None,
    token: Some(TokenSource::Rest(TokenRequest {
        rest: "https://fapi.binance.com",
        path: "/fapi/v1/listenKey",
        ..LISTEN_KEY
    })),
    message: "",
    request: "",
    topics: &[Topic::standard(TopicKind::Orders, "\"{token}\"")],
    key_pair: None,
};

pub(super) const COINM: AccountStream = AccountStream {
    streams: "wss://dstream.binance.com/stream",
    time: LoginTime::Milliseconds,
    signature: None,
    token: Some(TokenSource::Rest(TokenRequest {
        rest: "https://dapi.binance.com",
        path: "/dapi/v1/listenKey",
        ..LISTEN_KEY
    })),
    message: "",
    request: REQUEST,
    topics: &[Topic::standard(TopicKind::Orders, "\"{token}\"")],
    key_pair: None,
};
