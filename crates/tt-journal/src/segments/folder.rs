//! Segments in a folder, each a file that is written through memory.

use super::{Disk, Segment};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tt_os::mapped_file::MappedFile;

/// The name of the file whose lock belongs to the one writer.
const LOCK: &str = "lock";
/// The end of a segment's name.
const EXTENSION: &str = "ttseg";

/// A folder of segments.
#[derive(Debug)]
pub struct SegmentFolder {
    path: PathBuf,
    /// Held while the folder is written.
    _lock: Option<File>,
}

impl SegmentFolder {
    /// Opens the folder to read it; there may be a writer.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), _lock: None }
    }

    /// Opens the folder to write it, and creates it if there is none. There is one writer at a time.
    ///
    /// # Errors
    /// Another process writes it (`WouldBlock`), or it cannot be created.
    pub fn lock(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let lock = File::options().write(true).create(true).truncate(false).open(path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(io::ErrorKind::WouldBlock, "another gate writes it")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:016}.{EXTENSION}"))
    }

    /// Makes names in the folder survive a loss of power.
    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl Disk for SegmentFolder {
    type Segment = MappedFile;

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = PathBuf::from(entry?.file_name());
            let stem = name.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            if let (Some(number), true) = (stem, name.extension().is_some_and(|extension| extension == EXTENSION)) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        fs::read(self.file(number))
    }

    fn create(&self, number: u64, bytes: usize) -> io::Result<MappedFile> {
        let file = MappedFile::create(&self.file(number), bytes)?;
        file.file().sync_all()?;
        self.sync_names()?;
        Ok(file)
    }

    fn open(&self, number: u64) -> io::Result<MappedFile> {
        MappedFile::open(&self.file(number))
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        fs::remove_file(self.file(number))
    }
}

impl Segment for MappedFile {
    #[inline]
    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    #[inline]
    fn write(&mut self, at: usize, bytes: &[u8]) {
        Self::write(self, at, bytes);
    }

    fn sync(&self) -> io::Result<()> {
        Self::sync(self)
    }
}
