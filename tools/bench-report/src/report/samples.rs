//! The raw material of a row.

use std::io;

/// Values of one row, in blocks: a block is one uninterrupted stretch of measuring, and the unit of resampling.
///
/// Nothing is ever removed from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    blocks: Vec<Vec<f64>>,
}

impl Samples {
    /// No blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self { blocks: Vec::new() }
    }

    /// Adds a block; an empty one is left out.
    pub fn push_block(&mut self, block: Vec<f64>) {
        if !block.is_empty() {
            self.blocks.push(block);
        }
    }

    /// The blocks in the order in which they were measured.
    #[must_use]
    pub fn blocks(&self) -> &[Vec<f64>] {
        &self.blocks
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// All values, rising.
    #[must_use]
    pub fn sorted(&self) -> Vec<f64> {
        let mut values = self.blocks.concat();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// One line a value, `iteration,<unit>,block`, under a line of those names.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_csv(&self, to: &mut dyn io::Write, unit: &str) -> io::Result<()> {
        writeln!(to, "iteration,{unit},block")?;
        let values = self.blocks.iter().enumerate().flat_map(|(block, values)| values.iter().map(move |v| (block, v)));
        for (iteration, (block, value)) in values.enumerate() {
            writeln!(to, "{iteration},{value:.2},{block}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn csv_counts_on_through_the_blocks() {
        let mut samples = Samples::new();
        samples.push_block(vec![3.0, 1.5]);
        samples.push_block(Vec::new());
        samples.push_block(vec![2.0]);
        let mut csv = Vec::new();
        samples.write_csv(&mut csv, "ns").expect("a vector takes every byte");
        assert_eq!(String::from_utf8(csv).expect("ASCII"), "iteration,ns,block\n0,3.00,0\n1,1.50,0\n2,2.00,1\n");
        assert_eq!(samples.sorted(), [1.5, 2.0, 3.0]);
    }
}
