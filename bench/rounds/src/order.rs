//! Numbers that look random and come again with their seed.

/// splitmix64.
#[derive(Clone, Copy, Debug)]
pub struct Order(u64);

impl Order {
    /// The sequence of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// The same things in another order.
    pub fn shuffle<T: Copy>(&mut self, things: &[T]) -> Vec<T> {
        let mut shuffled = things.to_vec();
        for last in (1..shuffled.len()).rev() {
            let other = self.below(last + 1);
            shuffled.swap(last, other);
        }
        shuffled
    }
}
