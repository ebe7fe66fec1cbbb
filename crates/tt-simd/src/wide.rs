//! Code compiled for wider registers than the build's target has.

/// Work for [`widest`].
pub trait Wide {
    /// What it returns.
    type Output;

    /// Does it. Mark it and what it calls in a loop `#[inline(always)]`: only what is inlined is compiled for wider
    /// registers.
    fn run(self) -> Self::Output;
}

/// Does `work`, compiled for AVX2 where the CPU has it, so that the compiler may use registers of 256 bits. The result is
/// the same everywhere.
///
/// ```
/// struct Square<'a>(&'a mut [u64]);
///
/// impl tt_simd::Wide for Square<'_> {
///     type Output = ();
///
///     #[inline(always)]
///     fn run(self) {
///         self.0.iter_mut().for_each(|x| *x *= *x);
///     }
/// }
///
/// let mut numbers = [1, 2, 3, 4, 5];
/// tt_simd::widest(Square(&mut numbers));
/// assert_eq!(numbers, [1, 4, 9, 16, 25]);
/// ```
#[inline]
pub fn widest<W: Wide>(work: W) -> W::Output {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if x86::has_avx2() {
        // SAFETY: the CPU has AVX2, and the OS keeps its registers.
        return unsafe { x86::with_avx2(work) };
    }
    work.run()
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86 {
    use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Wide;

    const UNKNOWN: u8 = 0;
    const ABSENT: u8 = 1;
    const PRESENT: u8 = 2;

    #[target_feature(enable = "avx2")]
    pub(super) fn with_avx2<W: Wide>(work: W) -> W::Output {
        work.run()
    }

    #[inline]
    pub(super) fn has_avx2() -> bool {
        static AVX2: AtomicU8 = AtomicU8::new(UNKNOWN);
        // Every thread that looks finds the same, so no order is needed.
        match AVX2.load(Ordering::Relaxed) {
            UNKNOWN => {
                let is_present = detect();
                AVX2.store(if is_present { PRESENT } else { ABSENT }, Ordering::Relaxed);
                is_present
            }
            known => known == PRESENT,
        }
    }

    #[cold]
    fn detect() -> bool {
        if cfg!(miri) {
            return false;
        }
        const OSXSAVE_AND_AVX: u32 = 1 << 27 | 1 << 28;
        const SSE_AND_AVX_STATE: u64 = 1 << 1 | 1 << 2;
        const AVX2: u32 = 1 << 5;
        // Leaf 7 exists on each CPU that has AVX2.
        let (highest, leaf_1) = (__cpuid(0).eax, __cpuid(1).ecx);
        if highest < 7 || leaf_1 & OSXSAVE_AND_AVX != OSXSAVE_AND_AVX {
            return false;
        }
        // SAFETY: OSXSAVE says that the OS has enabled the instruction.
        let state = unsafe { _xgetbv(0) };
        state & SSE_AND_AVX_STATE == SSE_AND_AVX_STATE && __cpuid_count(7, 0).ebx & AVX2 != 0
    }
}

#[cfg(test)]
mod tests {
    struct Sum<'a>(&'a [u64]);

    impl super::Wide for Sum<'_> {
        type Output = u64;

        #[inline(always)]
        fn run(self) -> u64 {
            self.0.iter().fold(0, |sum: u64, word| sum.wrapping_mul(31).wrapping_add(*word))
        }
    }

    #[test]
    fn the_result_is_that_of_the_call() {
        let words: [u64; 67] = core::array::from_fn(|index| (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        assert_eq!(super::widest(Sum(&words)), super::Wide::run(Sum(&words)));
    }
}
