//! Pseudo-random numbers.

/// Increment of the state: 2^64 divided by the golden ratio, odd.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A SplitMix64 generator (Steele, Lea and Flood, 2014): for inputs, jitter and schedules, never for secrets.
///
/// A seed gives the same sequence on every machine and in every version.
///
/// ```
/// use tt_model::SplitMix64;
///
/// let mut random = SplitMix64::new(7);
/// let roll = 1 + random.below(6);
/// assert!((1..=6).contains(&roll));
/// assert_eq!(SplitMix64::new(7).next_u64(), SplitMix64::nth(7, 1));
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts the sequence of `seed`.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the `number`th number of the sequence of `seed`, from 1.
    #[inline]
    #[must_use]
    pub const fn nth(seed: u64, number: u64) -> u64 {
        let mut mixed = seed.wrapping_add(number.wrapping_mul(GAMMA));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number of the sequence.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let number = Self::nth(self.0, 1);
        self.0 = self.0.wrapping_add(GAMMA);
        number
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0. The bias is at most `bound / 2^64`.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns an index of `len` items, or 0 if `len` is 0.
    #[inline]
    pub const fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns `N` bytes, one number each.
    #[inline]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.next_u64() as u8)
    }

    /// Puts `items` in random order (Fisher and Yates), with one number for each item but the first.
    #[inline]
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|last| items.swap(last, self.index(last + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    /// The first numbers of seed 1234567, as the reference implementation (Vigna, splitmix64.c) prints them.
    #[test]
    fn the_sequence_is_that_of_the_reference() {
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(expected.map(|_| random.next_u64()), expected);
        assert_eq!(SplitMix64::nth(1_234_567, 5), expected[4]);
    }

    #[test]
    fn numbers_are_below_their_bound() {
        let mut random = SplitMix64::new(3);
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        let mut counts = [0; 6];
        (0..6_000).for_each(|_| counts[random.below(6) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert!((0..1_000).all(|_| random.below(u64::MAX) < u64::MAX));
    }

    /// The reference's numbers of seed 1234567: their low bytes, and the high words of their products with 4, 3 and 2,
    /// which are the indexes 1, 0 and 1.
    #[test]
    fn bytes_and_orders_follow_from_the_sequence() {
        assert_eq!(SplitMix64::new(1_234_567).bytes(), [0x85, 0xa5, 0x77, 0x3f, 0xcd]);
        let mut items = ['a', 'b', 'c', 'd'];
        SplitMix64::new(1_234_567).shuffle(&mut items);
        assert_eq!(items, ['c', 'd', 'a', 'b']);
        SplitMix64::new(1).shuffle::<u8>(&mut []);
    }
}
