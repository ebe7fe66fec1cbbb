//! Free memory of the heap.

/// Size from which blocks return to the kernel when they are freed: glibc's first value.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 << 10;

/// Makes blocks of 128 KiB and more return to the kernel when they are freed, from now on. Without it, glibc keeps blocks
/// up to the largest one that was ever freed, and large structures of slightly different sizes do not fit in the places of
/// each other. Does nothing without glibc.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call takes two numbers and may run at any time on any thread; it moves no block.
        let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}

/// Returns free memory of the heap to the kernel, in a few milliseconds for 100 MB. Without it, the memory of a large
/// structure that was replaced may stay with the process. Does nothing without glibc.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call takes a number and may run at any time on any thread; it only gives up free memory.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_env = "gnu")]
    #[test]
    fn memory_in_use_stays() {
        let mut kept: Vec<Box<[u8]>> = (0..10_000).map(|number| vec![(number % 251) as u8; 1_000].into()).collect();
        let mut number = 0;
        kept.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        super::return_large_blocks();
        super::trim();
        for (index, bytes) in kept.iter().enumerate() {
            assert!(bytes.iter().all(|byte| *byte == ((2 * index + 1) % 251) as u8));
        }
    }
}
