//! A certificate and the rules of TLS (RFC 8489 section 6.2.3, RFC 7443).

use std::fmt;
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, SupportedCipherSuite};

/// RFC 7443 section 3: the protocols that a client may name. One that names others only is refused.
const ALPN: [&[u8]; 2] = [b"stun.turn", b"stun.nat-discovery"];

/// Certificates with their keys, ready to serve connections: TLS 1.2 and 1.3, only suites with forward secrecy.
#[derive(Clone)]
pub struct TlsIdentity(Arc<ServerConfig>);

/// A chain of certificates with its private key.
#[derive(Clone, Debug)]
pub struct TlsCertificate(Arc<CertifiedKey>);

/// What is offered to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsRules {
    /// The lowest version.
    pub version_min: TlsVersion,
    /// Suites of TLS 1.2; all without any. Those of TLS 1.3 are always offered.
    pub suites: Vec<TlsSuite>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// A cipher suite of TLS 1.2. Each has forward secrecy and authenticated encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsSuite {
    /// `TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384`
    EcdsaAes256,
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256`
    EcdsaAes128,
    /// `TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256`
    EcdsaChaCha20,
    /// `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`
    RsaAes256,
    /// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`
    RsaAes128,
    /// `TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256`
    RsaChaCha20,
}

impl TlsSuite {
    /// All suites.
    pub const ALL: [Self; 6] = [
        Self::EcdsaAes256,
        Self::EcdsaAes128,
        Self::EcdsaChaCha20,
        Self::RsaAes256,
        Self::RsaAes128,
        Self::RsaChaCha20,
    ];

    /// Returns the name that OpenSSL has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdsaAes256 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            Self::EcdsaAes128 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            Self::EcdsaChaCha20 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            Self::RsaAes256 => "ECDHE-RSA-AES256-GCM-SHA384",
            Self::RsaAes128 => "ECDHE-RSA-AES128-GCM-SHA256",
            Self::RsaChaCha20 => "ECDHE-RSA-CHACHA20-POLY1305",
        }
    }

    pub(super) fn suite(self) -> SupportedCipherSuite {
        use rustls::crypto::ring::cipher_suite;
        match self {
            Self::EcdsaAes256 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            Self::EcdsaAes128 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            Self::EcdsaChaCha20 => cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            Self::RsaAes256 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            Self::RsaAes128 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            Self::RsaChaCha20 => cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        }
    }
}

/// Why a certificate or its key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The text holds no certificate in PEM.
    NoCertificate,
    /// The text holds no private key in PEM.
    NoKey,
    /// They do not belong together, or are of a kind that is not supported; what rustls says.
    Unusable(String),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("there is no certificate in it (PEM, BEGIN CERTIFICATE)"),
            Self::NoKey => f.write_str("there is no private key in it (PEM, BEGIN PRIVATE KEY)"),
            Self::Unusable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for TlsFault {}

impl TlsCertificate {
    /// From a chain of certificates, the server's own first, and its private key, both as PEM.
    ///
    /// # Errors
    /// [`TlsFault`].
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsFault> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or(TlsFault::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsFault::NoKey)?;
        let certified = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider());
        Ok(Self(Arc::new(certified.map_err(unusable)?)))
    }

    /// Returns whether it is for the server of this name, also by a wildcard.
    fn is_for(&self, name: &ServerName<'_>) -> bool {
        let parsed = self.0.end_entity_cert().and_then(ParsedCertificate::try_from);
        parsed.is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
    }
}

/// Chooses the certificate by the name that the client gives (SNI, RFC 6066 section 3).
#[derive(Debug)]
struct ByName(Vec<TlsCertificate>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let named = name.and_then(|name| self.0.iter().find(|certificate| certificate.is_for(&name)));
        named.or_else(|| self.0.first()).map(|certificate| Arc::clone(&certificate.0))
    }
}

fn unusable(error: rustls::Error) -> TlsFault {
    TlsFault::Unusable(error.to_string())
}

impl TlsIdentity {
    /// From certificates that clients choose by name. A client that gives none, or one that no certificate is for,
    /// gets the first.
    ///
    /// # Errors
    /// [`TlsFault::NoCertificate`]; [`TlsFault::Unusable`]: the system has no random bytes.
    pub fn new(certificates: Vec<TlsCertificate>, rules: &TlsRules) -> Result<Self, TlsFault> {
        if certificates.is_empty() {
            return Err(TlsFault::NoCertificate);
        }
        let mut provider = rustls::crypto::ring::default_provider();
        if !rules.suites.is_empty() {
            let is_offered = |suite: &SupportedCipherSuite| rules.suites.iter().any(|rule| rule.suite() == *suite);
            provider.cipher_suites.retain(|suite| suite.tls13().is_some() || is_offered(suite));
        }
        let versions: &[_] = match rules.version_min {
            TlsVersion::V1_2 => &[&rustls::version::TLS13, &rustls::version::TLS12],
            TlsVersion::V1_3 => &[&rustls::version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(versions);
        let builder = builder.map_err(unusable)?.with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::new(ByName(certificates)));
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
        // Tickets hold the sessions, at the clients: a client that returns costs no signature, and here no memory. Their
        // key belongs to these certificates: with others every client checks those.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(unusable)?;
        config.send_tls13_tickets = 1;
        Ok(Self(Arc::new(config)))
    }

    /// The server's side of a new connection.
    pub(crate) fn begin(&self) -> Result<ServerConnection, rustls::Error> {
        let mut connection = ServerConnection::new(Arc::clone(&self.0))?;
        // It is given messages only when it has sent the ones before: the connection's queue is the bound.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}
