//! Atomics and cells: those of `core`, or the models of loom or shuttle.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

#[cfg(all(shuttle, not(loom)))]
pub(crate) use shuttle::{
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

#[cfg(not(any(loom, shuttle)))]
pub(crate) use {
    alloc::sync::Arc,
    core::{
        hint::spin_loop,
        sync::atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

#[cfg(not(loom))]
pub(crate) use alloc::boxed::Box;
#[cfg(not(loom))]
use alloc::vec::Vec;
#[cfg(loom)]
pub(crate) use std::boxed::Box;
#[cfg(loom)]
use std::vec::Vec;

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;

/// Allocates `len` items, each made by `item` from its index.
///
/// # Panics
/// If the items take more than `isize::MAX` bytes, or the allocator has no memory for them.
pub(crate) fn boxed_slice<T>(len: usize, item: impl FnMut(usize) -> T) -> Box<[T]> {
    let mut items = Vec::new();
    if let Err(error) = items.try_reserve_exact(len) {
        panic!("cannot allocate {len} items of {} bytes: {error}", size_of::<T>());
    }
    items.extend((0..len).map(item));
    items.into_boxed_slice()
}

/// `core::cell::UnsafeCell` with loom's two accessors.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
