//! Memory that will be wanted soon.

/// Asks the processor to bring the cache line in which `place` begins nearer; it goes on meanwhile. A hint: where there
/// is no such instruction, nothing happens.
///
/// ```
/// let far = [0_u64; 512];
/// tt_simd::prefetch(&far[500]);
/// ```
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, never faults, and changes nothing that the program sees.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    let _ = place;
}

/// Asks for every cache line of `place`.
#[inline(always)]
pub fn prefetch_lines<T>(place: &T) {
    const LINE: usize = 64;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    for at in (0..size_of::<T>()).step_by(LINE) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, never faults, and changes nothing that the program sees.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(place).cast::<i8>().wrapping_add(at)) };
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    let _ = (place, LINE);
}
