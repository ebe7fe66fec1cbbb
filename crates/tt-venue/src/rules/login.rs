//! Accounts' streams: how a client proves who it is, as data that it executes.
//!
//! Texts may hold places that the client fills: `{key}`, `{secret}` and `{passphrase}` of the account, `{time}`,
//! `{signature}`, `{token}`, `{topics}` and `{id}`.

use super::topics::Topic;
use tt_model::Nanos;

/// A venue's stream of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountStream {
    /// The address of the WebSocket.
    pub streams: &'static str,
    /// The meaning of `{time}`.
    pub time: LoginTime,
    /// How `{signature}` is made, if a text contains it.
    pub signature: Option<Signature>,
    /// Where `{token}` comes from, if a text contains it.
    pub token: Option<TokenSource>,
    /// The message that logs in; empty if each request proves who the client is, or none has to.
    pub message: &'static str,
    /// The request for topics.
    pub request: &'static str,
    /// The topics.
    pub topics: &'static [Topic],
    /// The same for an account whose secret is an Ed25519 key, where the venue takes one.
    pub key_pair: Option<KeyPairLogin>,
}

/// A login signed with an account's own Ed25519 key: the venue has the public key, and never the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPairLogin {
    /// The signed text, with `{key}` and `{time}`. `{signature}` is its signature in base64.
    pub text: &'static str,
    /// The message that logs in; empty if each request is signed.
    pub message: &'static str,
    /// The request for topics.
    pub request: &'static str,
}

/// The meaning of `{time}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginTime {
    /// Now, in whole seconds of the Unix epoch.
    Seconds,
    /// Now, in milliseconds.
    Milliseconds,
    /// When the signature expires, in milliseconds.
    ExpiryMilliseconds,
}

/// A keyed hash (HMAC) of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What is signed.
    pub text: SignedText,
    /// The hash function of the HMAC.
    pub hash: Hash,
    /// How the account's secret becomes the key of the HMAC.
    pub key: KeyEncoding,
    /// How the result is written.
    pub encoding: SignatureEncoding,
}

/// What is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedText {
    /// A text with `{key}` and `{time}`.
    Text(&'static str),
    /// `path`, followed by the SHA-256 of `{time}` and `body`.
    PathAndDigest {
        /// The path of a request.
        path: &'static str,
        /// Its body, with `{time}`.
        body: &'static str,
    },
}

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// How an account's secret becomes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyEncoding {
    /// Its bytes are the key.
    Bytes,
    /// It is the key in base64.
    Base64,
}

/// How a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureEncoding {
    /// Lower-case hexadecimal.
    Hex,
    /// Base64.
    Base64,
}

/// Where `{token}` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// A POST request.
    Rest(TokenRequest),
    /// A JSON Web Token that the client signs with the account's secret by ECDSA over P-256 (ES256).
    Jwt {
        /// The claim `iss`.
        issuer: &'static str,
        /// The time between the claims `nbf` and `exp`.
        lifetime_s: u64,
    },
    /// It is the account's key, such as a public address.
    Key,
}

/// A listen key or token by REST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// Scheme and host.
    pub rest: &'static str,
    /// The path of the POST request.
    pub path: &'static str,
    /// The header `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: &'static str,
    /// Further headers: names in lower case, and values.
    pub headers: &'static [(&'static str, &'static str)],
    /// Where the token is in the response (JSON pointer, RFC 6901).
    pub pointer: &'static str,
    /// How often a PUT request must renew it; `None` if it lasts as long as its connection.
    pub renewal_interval: Option<Nanos>,
}
