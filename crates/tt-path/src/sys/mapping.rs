//! A BPF array map in this process's memory.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// Values of an array map with `BPF_F_MMAPABLE`. The program changes them at any time, so they are atomics.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    len: NonZeroUsize,
}

// SAFETY: the mapping belongs to no thread, and all access to it is by atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of the map's values.
    ///
    /// # Errors
    /// The kernel's error: the map is shorter, or not of this kind.
    pub(crate) fn new(map: impl AsFd, len: usize) -> Result<Self, Errno> {
        let len = NonZeroUsize::new(len).ok_or(Errno::EINVAL)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses an address that nothing else has. It refuses more than the map's pages, and a BPF
        // map never shrinks and lives as long as the mapping.
        let start = unsafe { mmap(None, len, protection, MapFlags::MAP_SHARED, map, 0) }?;
        Ok(Self { start, len })
    }

    /// The values as bytes. A map is accessed by one of these three functions only.
    pub(crate) fn bytes(&self) -> &[AtomicU8] {
        // SAFETY: the mapping has `len` bytes, readable and writable, and lives as long as the borrow. Any bits are an
        // `AtomicU8`.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.len.get()) }
    }

    /// The values as words of 32 bits.
    pub(crate) fn words(&self) -> &[AtomicU32] {
        // SAFETY: as in `bytes`; a mapping is aligned to a page, and the division cuts off what is no whole word.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.len.get() / size_of::<u32>()) }
    }

    /// The values as words of 64 bits.
    pub(crate) fn double_words(&self) -> &[AtomicU64] {
        // SAFETY: as in `words`.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.len.get() / size_of::<u64>()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the whole of what was mapped, and no borrow of it is left.
        let unmapped = unsafe { munmap(self.start, self.len.get()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::unistd::ftruncate;
    use std::sync::atomic::Ordering;

    /// A memfd in place of a map: the same calls, without privileges.
    #[test]
    fn two_mappings_of_one_file_are_the_same_memory() {
        let file = memfd_create(c"test", MFdFlags::MFD_CLOEXEC).unwrap();
        ftruncate(&file, 4096).unwrap();
        let (first, second) = (Mapping::new(&file, 24).unwrap(), Mapping::new(&file, 4096).unwrap());
        assert_eq!((first.bytes().len(), first.words().len(), first.double_words().len()), (24, 6, 3));
        first.double_words()[2].store(0x0102_0304_0506_0708, Ordering::Relaxed);
        assert_eq!(second.double_words()[2].load(Ordering::Relaxed), 0x0102_0304_0506_0708);
        drop(first);
        second.words()[1].store(7, Ordering::Relaxed);
        second.bytes()[4095].store(9, Ordering::Relaxed);
        assert_eq!(second.words()[1].load(Ordering::Relaxed), 7);
        assert_eq!(second.bytes()[4095].load(Ordering::Relaxed), 9);
        assert!(Mapping::new(&file, 0).is_err());
    }
}
