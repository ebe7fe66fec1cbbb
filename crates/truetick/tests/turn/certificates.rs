//! An authority for tests, and certificates for 127.0.0.1 that it has signed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
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
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "localhost");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &self.authority).unwrap();
        fs::write(self.cert(), leaf.pem()).unwrap();
        fs::write(self.key(), key.serialize_pem()).unwrap();
        fs::set_permissions(self.key(), fs::Permissions::from_mode(0o600)).unwrap();
        leaf.der().to_vec()
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
