//! Coinbase Exchange's login and stream of an account.

use crate::rules::{AccountStream, Hash, KeyEncoding, LoginTime, Signature, SignatureEncoding, SignedText};

pub(super) const ACCOUNT: AccountStream = AccountStream {
    streams: "wss://ws-direct.exchange.coinbase.com",
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
};
