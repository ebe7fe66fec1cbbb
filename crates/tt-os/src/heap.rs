//! Free memory of the heap.

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
        super::trim();
        for (index, bytes) in kept.iter().enumerate() {
            assert!(bytes.iter().all(|byte| *byte == ((2 * index + 1) % 251) as u8));
        }
    }
}
