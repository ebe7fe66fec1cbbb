//! Files that are read at once or not at all: no pipe without a writer, no file system that does not respond.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use nix::libc;
use zeroize::Zeroizing;

/// How long a file may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// The bytes of a file, wiped from memory when dropped, and its permission bits.
pub struct Contents {
    /// The bytes.
    pub bytes: Zeroizing<Vec<u8>>,
    /// The permission bits.
    pub mode: u32,
}

impl Contents {
    /// Returns the bytes as text.
    ///
    /// # Errors
    /// `InvalidData` if they are not UTF-8.
    pub fn text(mut self) -> io::Result<Zeroizing<String>> {
        let text = String::from_utf8(std::mem::take(&mut *self.bytes));
        text.map(Zeroizing::new).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
    }
}

/// Reads the regular file at `path` within 5 s.
///
/// # Errors
/// The kernel's error; `InvalidInput` if the file is a pipe, a socket, a device or a folder; `TimedOut` if its file
/// system does not respond.
pub fn read(path: &Path) -> io::Result<Contents> {
    let path = path.to_owned();
    within(DEADLINE, move || read_now(&path))?
}

fn read_now(path: &Path) -> io::Result<Contents> {
    // Without O_NONBLOCK, opening a pipe waits for its writer.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1));
    file.read_to_end(&mut bytes)?;
    Ok(Contents { bytes, mode: metadata.permissions().mode() & 0o777 })
}

/// Runs `work` on another thread, which is left behind if it does not end in time: a call to a file system that does not
/// respond cannot be interrupted.
fn within<T: Send + 'static>(deadline: Duration, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (to, result) = sync_channel(1);
    let run = move || {
        // The receiver is gone after the deadline.
        let _ = to.send(work());
    };
    thread::Builder::new().name("file".to_owned()).spawn(run)?;
    result.recv_timeout(deadline).map_err(|error| match error {
        RecvTimeoutError::Timeout => io::Error::new(io::ErrorKind::TimedOut, "its file system does not respond"),
        RecvTimeoutError::Disconnected => io::Error::other("the thread that reads it has panicked"),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn a_pipe_without_a_writer_and_a_folder_are_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/null")] {
            let Err(error) = read(path) else { panic!("{}", path.display()) };
            assert_eq!(error.to_string(), "not a regular file", "{}", path.display());
        }
        std::fs::write(folder.path().join("file"), "text").unwrap();
        let contents = read(&folder.path().join("file")).unwrap();
        assert_eq!((&contents.bytes[..], contents.mode & 0o600), (&b"text"[..], 0o600));
    }

    #[test]
    fn what_does_not_respond_is_left_behind() {
        let (release, held) = channel::<()>();
        let error = within(Duration::from_millis(1), move || held.recv()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(release);
    }
}
