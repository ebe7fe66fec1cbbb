//! What a venue's certificate says, and why one is refused.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_rustls::rustls::{CertificateError, ClientConnection, Error};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::report::Finding;

const DAY_S: i64 = 86_400;

/// A certificate that ends sooner is worth a word.
const SOON_DAYS: i64 = 7;

/// The certificate of a connection that was accepted.
pub(super) fn shown(connection: &ClientConnection) -> Finding {
    let version = connection.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
    let leaf = connection.peer_certificates().and_then(<[_]>::first);
    let Some(certificate) = leaf.and_then(|leaf| Certificate::from_der(leaf).ok()) else {
        return Finding::ok(format!("{version}, a certificate that is trusted"));
    };
    let signed = certificate.tbs_certificate;
    let until = signed.validity.not_after;
    let until_s = until.to_unix_duration().as_secs() as i64;
    let days = (until_s - now_s()) / DAY_S;
    let issuer = signed.issuer.to_string();
    let finding = Finding::ok(format!("{version}, certificate by {issuer} until {until} ({days} days)"))
        .fact("version", version)
        .fact("issuer", issuer)
        .fact("days_left", days)
        .fact("not_after_unix_s", until_s);
    if days < SOON_DAYS { finding.advise("the certificate ends soon: the venue has to renew it") } else { finding }
}

/// Why there is no TLS with `host`.
pub(super) fn refused(error: &anyhow::Error, host: &str) -> Finding {
    let message = format!("{error:#}");
    match error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).and_then(of_tls) {
        Some(Error::InvalidCertificate(reason)) => Finding::failed(why(reason, host), advice(reason)),
        Some(Error::InvalidMessage(_)) => {
            Finding::failed(message, "whatever listens there speaks no TLS: look at scheme and port of the address")
        }
        Some(_) | None => Finding::failed(
            message,
            "the other end and truetick have no TLS in common (1.2 and 1.3 are spoken), or a proxy is between",
        ),
    }
}

fn of_tls(error: &io::Error) -> Option<&Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| inner.source()?.downcast_ref())
}

fn why(reason: &CertificateError, host: &str) -> String {
    if is_expired(reason) {
        format!("the certificate of {host} has expired: {reason}")
    } else if is_early(reason) {
        format!("the certificate of {host} is not valid yet: {reason}")
    } else if is_foreign(reason) {
        format!("the certificate is not for {host}: {reason}")
    } else if *reason == CertificateError::UnknownIssuer {
        format!("the certificate of {host} has no trusted issuer")
    } else {
        format!("the certificate of {host} is refused: {reason}")
    }
}

fn advice(reason: &CertificateError) -> &'static str {
    if is_expired(reason) || is_early(reason) {
        "is this machine's date right (`date -u`)? If it is, the venue has to renew its certificate"
    } else if is_foreign(reason) {
        "something else answers for this name: look at the address, at the name's resolution, and for a proxy on the way"
    } else {
        "a proxy that reads along? Its certificate can be trusted by SSL_CERT_FILE=FILE (PEM)"
    }
}

const fn is_expired(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::Expired | CertificateError::ExpiredContext { .. })
}

const fn is_early(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. })
}

const fn is_foreign(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
}

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
