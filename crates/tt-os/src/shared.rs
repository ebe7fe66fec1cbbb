//! Memory shared by two processes.
//!
//! It is a sealed `memfd`: no process can shrink it, so an access never ends in SIGBUS. It is accessible as atomic
//! words only, since the other process may write at any time. The other process gets the file by inheritance, by
//! descriptor passing ([`Mapping::file`]), or by `/proc/PID/fd/N`.

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::{
        memfd::{MFdFlags, memfd_create},
        mman::{MapFlags, ProtFlags, mmap, munmap},
        stat::fstat,
    },
    unistd::ftruncate,
};
use std::fmt;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of the words of 32 bits, which come first: a page.
const BELLS_BYTES: usize = 4096;
const SEALS: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW).union(SealFlag::F_SEAL_SEAL);

/// Why memory was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The file could be made smaller while it is looked at.
    NotSealed,
    /// The file is too small, or no whole number of words.
    Size,
    /// The error of a system call.
    Os(Errno),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSealed => f.write_str("the shared memory is not sealed"),
            Self::Size => f.write_str("the shared memory is of a size that cannot be"),
            Self::Os(errno) => write!(f, "the shared memory cannot be mapped: {errno}"),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Self::Os(errno)
    }
}

/// Shared memory, mapped: words of 64 bits, and 1,024 of 32 bits for `futex(2)`. Clones are the same mapping.
#[derive(Clone, Debug)]
pub struct Mapping {
    mapped: Arc<Mapped>,
}

#[derive(Debug)]
struct Mapped {
    start: NonNull<core::ffi::c_void>,
    bytes: usize,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to no thread, and all that it is used for is access to atomics.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapping {
    /// New memory of `words` words of 64 bits, all zero, every page of it there.
    ///
    /// # Errors
    /// `Size` if there is no so large a number of bytes, or `Os`.
    pub fn create(words: usize) -> Result<Self, Refused> {
        let bytes = words.checked_mul(size_of::<u64>()).and_then(|bytes| bytes.checked_add(BELLS_BYTES));
        let length = bytes.and_then(|bytes| i64::try_from(bytes).ok()).ok_or(Refused::Size)?;
        let file = memfd_create(c"truetick-ring", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        ftruncate(&file, length)?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(SEALS))?;
        Self::attach(file)
    }

    /// The memory that another process made.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn attach(file: OwnedFd) -> Result<Self, Refused> {
        // What is no memfd has no seals to ask for.
        let seals = fcntl(&file, FcntlArg::F_GET_SEALS).map_err(|_| Refused::NotSealed)?;
        if !SealFlag::from_bits_retain(seals).contains(SEALS) {
            return Err(Refused::NotSealed);
        }
        let bytes = usize::try_from(fstat(&file)?.st_size).map_err(|_| Refused::Size)?;
        let words_bytes = bytes.checked_sub(BELLS_BYTES).ok_or(Refused::Size)?;
        if words_bytes % size_of::<u64>() != 0 {
            return Err(Refused::Size);
        }
        let length = NonZeroUsize::new(bytes).ok_or(Refused::Size)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE;
        // SAFETY: the kernel chooses an address that nothing else has, for memory that no process can shrink.
        let start = unsafe { mmap(None, length, protection, flags, &file, 0) }?;
        Ok(Self { mapped: Arc::new(Mapped { start, bytes, file }) })
    }

    /// The file, to be handed to another process.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.mapped.file.as_fd()
    }
}

impl AsRef<[AtomicU32]> for Mapping {
    #[inline]
    fn as_ref(&self) -> &[AtomicU32] {
        let start = self.mapped.start.as_ptr().cast::<AtomicU32>();
        // SAFETY: the first page of the mapping, which is at least as long, aligned to a page, readable and writable, and
        // lives as long as the borrow. Any bits are an `AtomicU32`, and no code accesses this page as another type.
        unsafe { slice::from_raw_parts(start, BELLS_BYTES / size_of::<u32>()) }
    }
}

impl AsRef<[AtomicU64]> for Mapping {
    #[inline]
    fn as_ref(&self) -> &[AtomicU64] {
        let words = (self.mapped.bytes - BELLS_BYTES) / size_of::<u64>();
        // SAFETY: the mapping is at least a page long.
        let start = unsafe { self.mapped.start.as_ptr().byte_add(BELLS_BYTES) }.cast::<AtomicU64>();
        // SAFETY: all of the mapping but its first page, aligned to a page, readable and writable, and alive as long as the
        // borrow. Any bits are an `AtomicU64`, and no code accesses these pages as another type.
        unsafe { slice::from_raw_parts(start, words) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is the whole of what was mapped, and no borrow of it is left.
        let unmapped = unsafe { munmap(self.start, self.bytes) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::{BELLS_BYTES, Mapping, Refused};
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::unistd::ftruncate;
    use std::os::fd::OwnedFd;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    #[test]
    fn two_mappings_of_one_file_are_the_same_memory() {
        let first = Mapping::create(10).unwrap();
        let second = Mapping::attach(first.file().try_clone_to_owned().unwrap()).unwrap();
        let [words, same]: [&[AtomicU64]; 2] = [first.as_ref(), second.as_ref()];
        let [bells, same_bells]: [&[AtomicU32]; 2] = [first.as_ref(), second.as_ref()];
        assert_eq!((words.len(), same.len(), bells.len()), (10, 10, 1024));
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[9].store(7, Ordering::Relaxed);
        words[0].store(8, Ordering::Relaxed);
        bells[1023].store(9, Ordering::Relaxed);
        assert_eq!([&same[9], &same[0]].map(|word| word.load(Ordering::Relaxed)), [7, 8]);
        assert_eq!(same_bells[1023].load(Ordering::Relaxed), 9);
    }

    #[test]
    fn memory_cannot_be_made_smaller_once_it_is_mapped() {
        let mapping = Mapping::create(10).unwrap();
        let file = mapping.file().try_clone_to_owned().unwrap();
        assert!(ftruncate(&file, 0).is_err());
    }

    fn file(length: i64, seals: SealFlag) -> OwnedFd {
        let file = memfd_create(c"test", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap();
        ftruncate(&file, length).unwrap();
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
        file
    }

    #[test]
    fn what_could_shrink_or_is_of_no_size_is_refused() {
        let page = BELLS_BYTES as i64;
        let refused = |file: OwnedFd| Mapping::attach(file).unwrap_err();
        assert_eq!(refused(file(page + 8, SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL)), Refused::NotSealed);
        assert_eq!(refused(tempfile::tempfile().unwrap().into()), Refused::NotSealed);
        assert_eq!(refused(file(page - 1, super::SEALS)), Refused::Size);
        assert_eq!(refused(file(page + 7, super::SEALS)), Refused::Size);
        assert!(Mapping::attach(file(page, super::SEALS)).is_ok());
        assert_eq!(Mapping::create(usize::MAX / 8).unwrap_err(), Refused::Size);
    }
}
