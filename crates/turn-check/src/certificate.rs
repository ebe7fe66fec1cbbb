//! The certificate of a server.

use std::time::{SystemTime, UNIX_EPOCH};

use rustls::ClientConnection;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

const DAY_S: i64 = 86_400;

/// Returns issuer and days left of the certificate of a connection, which has been verified.
pub(crate) fn of(connection: &ClientConnection) -> Option<(String, i64)> {
    let leaf = connection.peer_certificates().and_then(<[_]>::first)?;
    let signed = Certificate::from_der(leaf).ok()?.tbs_certificate;
    let until_s = i64::try_from(signed.validity.not_after.to_unix_duration().as_secs()).ok()?;
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| i64::try_from(now.as_secs()).ok())?;
    Some((signed.issuer.to_string(), (until_s - now_s) / DAY_S))
}
