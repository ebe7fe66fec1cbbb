//! What a venue gave an account to prove itself with.

use std::fmt;
#[cfg(feature = "config")]
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// A key, its secret, and at some venues a passphrase. Never shown.
#[derive(Clone)]
pub struct Credentials {
    /// The key's name: public, or nearly so.
    pub(super) key: String,
    pub(super) secret: Zeroizing<String>,
    pub(super) passphrase: Zeroizing<String>,
}

/// As written in the file.
#[cfg(feature = "config")]
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    key: String,
    #[serde(default)]
    secret: String,
    secret_file: Option<PathBuf>,
    #[serde(default)]
    passphrase: String,
}

impl Credentials {
    /// Credentials that are in memory already.
    #[must_use]
    pub fn new(key: &str, secret: &str, passphrase: &str) -> Self {
        let secret_text = |text: &str| Zeroizing::new(text.to_owned());
        Self { key: key.to_owned(), secret: secret_text(secret), passphrase: secret_text(passphrase) }
    }

    /// Reads `key`, `secret` and `passphrase` (TOML) from a file that only its owner may read.
    ///
    /// Instead of `secret` it may have `secret_file`, the path of another such file that holds the secret alone, such as
    /// a private key in PEM. A relative path begins at the folder of the first file.
    ///
    /// # Errors
    /// A file cannot be read, others may read it, or it holds something else; the error names the file, and nothing of
    /// its content.
    #[cfg(feature = "config")]
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        use anyhow::{Context as _, ensure};
        use tt_os::secret_file;

        let text = secret_file::read(path)?;
        // The library's error would show the line.
        let written: Option<Written> = toml::from_str(&text).ok();
        let wanted = || format!("{}: key, secret and passphrase are wanted, as TOML", path.display());
        let Written { key, secret, secret_file, passphrase } = written.with_context(wanted)?;
        let written = Zeroizing::new(secret);
        ensure!(!key.is_empty(), "{}: the key is empty", path.display());
        ensure!(
            secret_file.is_none() || written.is_empty(),
            "{}: secret and secret_file exclude each other",
            path.display()
        );
        let other = secret_file.map(|file| path.parent().unwrap_or(path).join(file));
        let secret = other.map_or(Ok(written), |file| secret_file::read(&file))?;
        Ok(Self { key, secret, passphrase: Zeroizing::new(passphrase) })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

#[cfg(all(test, feature = "config"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_that_others_may_read_are_refused_and_nothing_of_them_is_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str, mode: u32| {
            fs::write(file.path(), text).unwrap();
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        };
        let good = "key = \"k-1\"\nsecret = \"s3cret\"\npassphrase = \"pa ss\"\n";
        write(good, 0o600);
        let read = Credentials::read(file.path()).unwrap();
        assert_eq!((read.key.as_str(), read.secret.as_str(), read.passphrase.as_str()), ("k-1", "s3cret", "pa ss"));
        assert!(!format!("{read:?}").contains("s3cret"));
        write(good, 0o640);
        assert!(format!("{:#}", Credentials::read(file.path()).unwrap_err()).contains("chmod 600"));
        let folder = tempfile::tempdir().unwrap();
        let pem = folder.path().join("key.pem");
        let other = |name: &Path| format!("key = \"k-2\"\nsecret_file = {name:?}\n");
        write(&other(&pem), 0o600);
        assert!(format!("{:#}", Credentials::read(file.path()).unwrap_err()).contains("key.pem"), "there is none");
        fs::write(&pem, "-----BEGIN PRIVATE KEY-----\ns3cret\n").unwrap();
        fs::set_permissions(&pem, fs::Permissions::from_mode(0o644)).unwrap();
        let open = format!("{:#}", Credentials::read(file.path()).unwrap_err());
        assert!(open.contains("chmod 600") && open.contains("key.pem"), "{open}");
        fs::set_permissions(&pem, fs::Permissions::from_mode(0o600)).unwrap();
        let read = Credentials::read(file.path()).unwrap();
        assert_eq!((read.key.as_str(), read.secret.as_str()), ("k-2", "-----BEGIN PRIVATE KEY-----\ns3cret\n"));
        let same_folder = folder.path().join("account.toml");
        fs::write(&same_folder, other(Path::new("key.pem"))).unwrap();
        fs::set_permissions(&same_folder, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(Credentials::read(&same_folder).unwrap().secret, read.secret, "the folder of the first file");
        write(&(other(&pem) + "secret = \"s3cret\"\n"), 0o600);
        let both = format!("{:#}", Credentials::read(file.path()).unwrap_err());
        assert!(both.contains("exclude each other") && !both.contains("s3cret"), "{both}");
        for bad in ["secret = \"s3cret\"\n", "key = \"k\"\nsecret = \"s3cret\n", "key = \"k\"\nsecrte = \"s3cret\"\n"] {
            write(bad, 0o600);
            let error = format!("{:#}", Credentials::read(file.path()).unwrap_err());
            assert!(!error.contains("s3cret") && error.contains("are wanted"), "{error}");
        }
    }
}
