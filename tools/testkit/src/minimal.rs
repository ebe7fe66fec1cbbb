//! Delta debugging: the fewest actions that still break something.

/// Strikes out pieces of `all`, large ones first, as long as `breaks` says that the rest still breaks; in at most
/// `plays_max` plays.
pub(crate) fn minimal<T: Clone>(all: &[T], plays_max: usize, mut breaks: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = all.to_vec();
    let mut plays = 0;
    let mut length = kept.len().div_ceil(2).max(1);
    loop {
        let (mut at, mut struck) = (0, false);
        while at < kept.len() {
            let end = (at + length).min(kept.len());
            let rest = [&kept[..at], &kept[end..]].concat();
            plays += 1;
            if breaks(&rest) {
                kept = rest;
                struck = true;
            } else {
                at = end;
            }
            if plays >= plays_max {
                return kept;
            }
        }
        if length == 1 && !struck {
            return kept;
        }
        if !struck {
            length = length.div_ceil(2);
        }
        length = length.clamp(1, kept.len().max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::minimal;

    #[test]
    fn two_that_break_together_are_what_is_left() {
        let all: Vec<u32> = (0..100).collect();
        let breaks = |rest: &[u32]| rest.contains(&17) && rest.contains(&80);
        assert_eq!(minimal(&all, 1000, breaks), [17, 80]);
        assert!(minimal(&all, 3, breaks).len() > 2);
    }
}
