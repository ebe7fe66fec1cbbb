//! Versions and cipher suites of TLS in flags and files.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tt_net::stream;

/// The lowest version of TLS, written as `1.2` or `1.3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2, RFC 5246.
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3, RFC 8446.
    #[serde(rename = "1.3")]
    V1_3,
}

impl TlsVersion {
    /// The values as they are written in the configuration file and in flags.
    pub const NAMES: [&str; 2] = ["1.2", "1.3"];
}

impl FromStr for TlsVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            _ => Err(format!("`{text}` is not one of {}", Self::NAMES.join(", "))),
        }
    }
}

impl From<TlsVersion> for stream::TlsVersion {
    fn from(version: TlsVersion) -> Self {
        match version {
            TlsVersion::V1_2 => Self::V1_2,
            TlsVersion::V1_3 => Self::V1_3,
        }
    }
}

impl From<stream::TlsVersion> for TlsVersion {
    fn from(version: stream::TlsVersion) -> Self {
        match version {
            stream::TlsVersion::V1_2 => Self::V1_2,
            stream::TlsVersion::V1_3 => Self::V1_3,
        }
    }
}

/// A cipher suite of TLS 1.2, by the name that OpenSSL has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TlsCipher(pub(crate) stream::TlsSuite);

impl FromStr for TlsCipher {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = stream::TlsSuite::ALL.into_iter().find(|suite| suite.name() == text);
        let names = || stream::TlsSuite::ALL.map(stream::TlsSuite::name).join(", ");
        named.map(Self).ok_or_else(|| format!("`{text}` is not one of {}", names()))
    }
}

impl From<TlsCipher> for String {
    fn from(cipher: TlsCipher) -> Self {
        cipher.0.name().to_owned()
    }
}

impl TryFrom<String> for TlsCipher {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
