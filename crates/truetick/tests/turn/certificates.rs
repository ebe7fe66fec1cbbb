//! An authority for tests, and certificates for 127.0.0.1 that it has signed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;

/// An authority, and the files of a certificate.
pub(crate) struct Certificates {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "truetick test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let made = Self { folder: tempfile::tempdir().unwrap(), authority };
        fs::write(made.authority_file(), made.authority.pem()).unwrap();
        made.renew();
        made
    }

    /// Another certificate with another key, in the same files. Returns it in DER.
    pub(crate) fn renew(&self) -> Vec<u8> {
        self.issue(&self.cert(), &self.key(), &["127.0.0.1", "localhost"])
    }

    /// A certificate for `names` in the files `cert` and `key`. Returns it in DER.
    pub(crate) fn issue(&self, cert: &Path, key: &Path, names: &[&str]) -> Vec<u8> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "localhost");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let pair = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&pair, &self.authority).unwrap();
        fs::write(cert, leaf.pem()).unwrap();
        fs::write(key, pair.serialize_pem()).unwrap();
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
        leaf.der().to_vec()
    }

    /// The paths of another certificate and of its key.
    pub(crate) fn files(&self, stem: &str) -> (PathBuf, PathBuf) {
        let path = |end: &str| self.folder.path().join(format!("{stem}{end}"));
        (path(".pem"), path("-key.pem"))
    }

    pub(crate) fn cert(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    pub(crate) fn authority_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The server's flags.
    pub(crate) fn flags(&self) -> [String; 4] {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        ["--cert".to_owned(), text(self.cert()), "--key".to_owned(), text(self.key())]
    }

    /// A client that trusts the authority and no other.
    pub(crate) fn client(&self, versions: &[&'static SupportedProtocolVersion], alpn: &[&str]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}
