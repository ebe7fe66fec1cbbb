//! Coinbase Exchange's login and stream of an account.

use crate::rules::{AccountStream, Hash, KeyEncoding, LoginTime, Signature, SignatureEncoding, SignedText};

pub(super) const STREAMS: &str = "wss://ws-direct.exchange.coinbase.com";

/// A request that proves who the client is.
pub(super) const REQUEST: &str = r#"{"type":"{method}","channels":[{topics}],"key":"{key}","passphrase":"{passphrase}","timestamp":"{time}","signature":"{signature}"}"#;

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: STREAMS,
    time: LoginTime::Seconds,
    signature: Some(Signature {
        text: SignedText::Text("{time}GET/users/self/verify"),
        hash: Hash::Sha256,
        key: KeyEncoding::Base64,
        encoding: SignatureEncoding::Base64,
    }),
    token: None,
    message: "",
    request: r#"{"type":"subscribe","channels":[{topics}],"key":"{key}","passphrase":"{passphrase}","timestamp":"{time}","signature":"{signature}"}"#,
    topics: &[],
    key_pair: None,
};
