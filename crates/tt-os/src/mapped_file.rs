//! A file of fixed size that is written through memory.
//!
//! A write is a copy: it survives the death of the process at once, and the loss of power after [`MappedFile::sync`].
//! Its space is reserved when it is created, so that no write finds the disk full. A process that shortens the file kills
//! the writer (SIGBUS).

use memmap2::MmapRaw;
use nix::fcntl::posix_fallocate;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file of fixed size that is written through memory.
#[derive(Debug)]
pub struct MappedFile {
    map: MmapRaw,
    file: Arc<File>,
}

impl MappedFile {
    /// Creates the file at `path` with `bytes` zero bytes, and reserves their space on the disk.
    ///
    /// # Errors
    /// There is a file at `path`, the disk has too little room, or the file cannot be mapped. No file is left then.
    pub fn create(path: &Path, bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let length = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let created = posix_fallocate(&file, 0, length).map_err(io::Error::from).and_then(|()| Self::map(file));
        if created.is_err() {
            // The first error is the one to report.
            let _ = std::fs::remove_file(path);
        }
        created
    }

    /// Maps the file at `path`.
    ///
    /// # Errors
    /// The file cannot be opened, is empty, or cannot be mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::map(OpenOptions::new().read(true).write(true).open(path)?)
    }

    fn map(file: File) -> io::Result<Self> {
        let map = MmapRaw::map_raw(&file)?;
        if map.len() == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map, file: Arc::new(file) })
    }

    /// Returns the size of the file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// Copies `bytes` to offset `at` of the file.
    ///
    /// # Panics
    /// The file ends before.
    #[inline]
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.map.len()), "a write ends within its file");
        let target = self.map.as_mut_ptr().wrapping_add(at);
        // SAFETY: `bytes` can be read, and `target` with as many bytes after it is within the mapping, which is writable and
        // lives as long as `self`. They do not overlap, for nothing lends a reference to the mapping. `&mut self` makes this
        // the only write in the process.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }

    /// Returns the file, which any thread may sync.
    #[must_use]
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Waits until all that was written is on the disk (fdatasync, which includes pages that were written through memory).
    ///
    /// # Errors
    /// The disk reports an error; what is on it is unknown.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::MappedFile;
    use std::io::ErrorKind;

    #[test]
    fn what_is_written_is_in_the_file_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut file = MappedFile::create(&path, 10_000).unwrap();
        file.write(9_990, b"0123456789");
        file.write(4_095, b"abc");
        let found = std::fs::read(&path).unwrap();
        assert_eq!((found.len(), file.bytes()), (10_000, 10_000));
        assert_eq!((&found[9_990..], &found[4_094..4_099]), (&b"0123456789"[..], &b"\0abc\0"[..]));
        drop(file);
        let mut again = MappedFile::open(&path).unwrap();
        again.write(0, b"x");
        again.sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[0], b'x');
        assert_eq!(MappedFile::create(&path, 1).unwrap_err().kind(), ErrorKind::AlreadyExists);
        std::fs::write(&path, "").unwrap();
        MappedFile::open(&path).unwrap_err();
    }

    #[test]
    fn a_file_without_room_is_not_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        // More than any file system has.
        MappedFile::create(&path, 1 << 61).unwrap_err();
        assert!(!path.exists());
    }

    #[test]
    #[should_panic(expected = "within its file")]
    fn a_write_beyond_the_end_panics() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = MappedFile::create(&folder.path().join("a"), 8).unwrap();
        file.write(usize::MAX, b"ab");
    }
}
