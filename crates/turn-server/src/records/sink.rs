//! Outputs of allocation records.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use libsystemd::logging::{Priority, journal_send};
use nix::libc;
use turn_config::RecordOutput;

/// Permissions of a new file.
const MODE: u32 = 0o600;
/// Field of the journal by which `journalctl -t` finds the records.
const IDENTIFIER: (&str, &str) = ("SYSLOG_IDENTIFIER", "truetick-cdr");

/// An output.
pub(crate) enum Sink {
    File(RecordFile),
    Stdout,
    Journald,
}

/// Lines that were not written.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) lost: u64,
    pub(crate) error: io::Error,
}

impl Sink {
    /// Opens the output.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or is a folder, a pipe or a socket.
    pub(crate) fn open(output: &RecordOutput) -> io::Result<Self> {
        match output {
            RecordOutput::File(path) => RecordFile::open(path.clone()).map(Self::File),
            RecordOutput::Stdout => Ok(Self::Stdout),
            RecordOutput::Journald => Ok(Self::Journald),
        }
    }

    /// Checks that [`Sink::open`] would succeed, and creates nothing.
    ///
    /// # Errors
    /// As [`Sink::open`].
    pub(crate) fn check(output: &RecordOutput) -> io::Result<()> {
        let RecordOutput::File(path) = output else { return Ok(()) };
        match open(path, Missing::Reject) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let access = nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK;
                Ok(nix::unistd::access(folder.unwrap_or(Path::new(".")), access)?)
            }
            other => other.map(drop),
        }
    }

    /// Writes whole lines.
    ///
    /// # Errors
    /// Some lines were not written.
    pub(crate) fn write(&mut self, lines: &str) -> Result<(), Failed> {
        match self {
            Self::File(file) => file.write(lines),
            Self::Stdout => {
                let mut out = io::stdout().lock();
                let written = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
                written.map_err(|error| Failed { lost: lines.lines().count() as u64, error })
            }
            Self::Journald => write_journal(lines),
        }
    }
}

fn write_journal(lines: &str) -> Result<(), Failed> {
    let mut failed: Option<Failed> = None;
    for line in lines.lines() {
        if let Err(error) = journal_send(Priority::Info, line, [IDENTIFIER].into_iter()) {
            let lost = failed.map_or(0, |failed| failed.lost) + 1;
            failed = Some(Failed { lost, error: io::Error::other(error) });
        }
    }
    failed.map_or(Ok(()), Err)
}

/// A file that another program may move or remove.
pub(crate) struct RecordFile {
    path: PathBuf,
    file: File,
    /// Device and inode of the file.
    id: (u64, u64),
    /// The file ends in a part of a line.
    is_torn: bool,
}

impl RecordFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let (file, metadata) = open(&path, Missing::Create)?;
        Ok(Self { path, file, id: id(&metadata), is_torn: false })
    }

    fn write(&mut self, lines: &str) -> Result<(), Failed> {
        let reopened = self.follow();
        if self.is_torn {
            self.is_torn = self.file.write_all(b"\n").is_err();
        }
        let (written, error) = self.append(lines.as_bytes());
        let whole = lines.as_bytes()[..written].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if written > whole {
            self.cut(written - whole);
        }
        let lost = lines[whole..].lines().count() as u64;
        // Without a new file the lines are in the old one.
        error.or(reopened.err()).map_or(Ok(()), |error| Err(Failed { lost, error }))
    }

    /// Appends as much as possible, and returns the number of bytes.
    fn append(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => return (written, Some(io::ErrorKind::WriteZero.into())),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Some(error)),
            }
        }
        (written, None)
    }

    /// Removes the last `bytes`, which are a part of a line.
    fn cut(&mut self, bytes: usize) {
        let shortened = self.file.metadata().and_then(|metadata| self.file.set_len(metadata.len() - bytes as u64));
        self.is_torn = shortened.is_err();
    }

    /// Opens the path again if it has become another file, as after logrotate.
    fn follow(&mut self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|metadata| id(&metadata) == self.id) {
            return Ok(());
        }
        let (file, metadata) = open(&self.path, Missing::Create)?;
        (self.file, self.id, self.is_torn) = (file, id(&metadata), false);
        Ok(())
    }
}

/// What to do if there is no file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Reject,
}

fn open(path: &Path, missing: Missing) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.append(true).create(missing == Missing::Create).mode(MODE);
    // Without O_NONBLOCK, opening a pipe waits for its reader.
    let file = options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_char_device() {
        Ok((file, metadata))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a regular file nor a device"))
    }
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
