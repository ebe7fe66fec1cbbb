//! A certificate and the rules of TLS (RFC 8489 section 6.2.3, RFC 7443).

use std::fmt;
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};

/// RFC 7443 section 3: the protocols that a client may name. One that names others only is refused.
const ALPN: [&[u8]; 2] = [b"stun.turn", b"stun.nat-discovery"];

/// Certificates with their keys, ready to serve connections: TLS 1.2 and 1.3, only suites with forward secrecy.
#[derive(Clone)]
pub struct TlsIdentity(Arc<ServerConfig>);

/// A chain of certificates with its private key.
#[derive(Clone, Debug)]
pub struct TlsCertificate(Arc<CertifiedKey>);

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
    pub fn new(certificates: Vec<TlsCertificate>) -> Result<Self, TlsFault> {
        if certificates.is_empty() {
            return Err(TlsFault::NoCertificate);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12]);
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
