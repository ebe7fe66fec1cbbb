//! Files with secrets, which only their owner may read.

use std::path::{Path, PathBuf};
use std::{env, error, fmt, io};

use zeroize::Zeroizing;

use crate::regular_file::{self, Contents};

/// Permissions of group and others.
const NOT_OWNER: u32 = 0o077;
/// Permissions of others, and those of the group to change the file.
const OTHERS: u32 = 0o037;
/// Where systemd puts the credentials of a unit (systemd.exec(5)).
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// A file with secrets cannot be used. The text names the file and holds nothing of its contents.
#[derive(Debug)]
pub enum SecretFileError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Group or others have a permission on the file.
    Permissions {
        /// The file.
        path: PathBuf,
        /// The file's permission bits.
        mode: u32,
    },
    /// Every line is empty or a comment.
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for SecretFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, .. } => write!(f, "cannot read {}", path.display()),
            Self::Permissions { path, mode } => write!(
                f,
                "{} holds secrets and others than its owner may use it (mode {mode:03o}); chmod 600 it",
                path.display()
            ),
            Self::Empty { path } => write!(f, "{} holds no secret", path.display()),
        }
    }
}

impl error::Error for SecretFileError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Permissions { .. } | Self::Empty { .. } => None,
        }
    }
}

/// Reads the regular file at `path`; the text is wiped from memory when it is dropped.
///
/// # Errors
/// [`SecretFileError::Read`], also if the file is not regular, is not UTF-8 or its file system does not respond, or
/// [`SecretFileError::Permissions`] if anyone but the owner has a permission on the file. A credential of systemd may be
/// readable by its group: systemd lets the unit's user read it by an access control list, whose mask these bits show.
pub fn read(path: &Path) -> Result<Zeroizing<String>, SecretFileError> {
    let is_credential = env::var_os(CREDENTIALS).is_some_and(|folder| path.starts_with(folder));
    let text = checked(path, if is_credential { OTHERS } else { NOT_OWNER })?.text();
    text.map_err(|source| SecretFileError::Read { path: path.to_owned(), source })
}

/// Reads the private key at `path`, which its group may read, such as Debian's `ssl-cert`.
///
/// # Errors
/// [`SecretFileError::Read`], or [`SecretFileError::Permissions`] if others may use the file or the group may change it.
pub fn read_private_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, SecretFileError> {
    checked(path, OTHERS).map(|contents| contents.bytes)
}

fn checked(path: &Path, forbidden: u32) -> Result<Contents, SecretFileError> {
    let contents = regular_file::read(path);
    let contents = contents.map_err(|source| SecretFileError::Read { path: path.to_owned(), source })?;
    let mode = contents.mode;
    if mode & forbidden == 0 { Ok(contents) } else { Err(SecretFileError::Permissions { path: path.to_owned(), mode }) }
}

/// Reads the first line of the file at `path` that is neither empty nor a comment (`#`).
///
/// # Errors
/// As [`read`], and [`SecretFileError::Empty`] if there is no such line.
pub fn read_first_line(path: &Path) -> Result<Zeroizing<String>, SecretFileError> {
    let text = read(path)?;
    let secret = lines(&text).next().map(|(_, line)| Zeroizing::new(line.to_owned()));
    secret.ok_or_else(|| SecretFileError::Empty { path: path.to_owned() })
}

/// Returns the lines of `text` that are neither empty nor a comment (`#`), each with its number from 1.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end_matches('\r')));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn rejects_a_file_that_others_may_use() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\n# comment\nthe: secret\r\nanother\n").unwrap();
        for mode in [0o640, 0o604, 0o610, 0o620, 0o601, 0o602] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            let error = read(file.path()).unwrap_err().to_string();
            assert!(error.contains("chmod 600") && !error.contains("the: secret"), "{error}");
        }
        for (mode, is_usable) in [(0o600, true), (0o640, true), (0o660, false), (0o644, false), (0o604, false)] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_private_key(file.path()).is_ok(), is_usable, "{mode:o}");
        }
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(*read_first_line(file.path()).unwrap(), "the: secret");
    }

    #[test]
    fn an_empty_file_has_no_first_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(read_first_line(file.path()), Err(SecretFileError::Empty { .. })));
    }
}
