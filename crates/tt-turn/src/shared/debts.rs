//! Traffic that users without an account still owe.
//!
//! A datagram larger than one second's worth leaves a full bucket in debt. The account of a user ends with the last
//! allocation; without this a new account would start without the debt, and a user could send far more than the quota
//! by ending and making allocations.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tt_model::Nanos;

/// Users of one set.
const WAYS: usize = 8;

/// When the bucket of a user is full again.
#[derive(Debug, Default)]
struct Debt {
    /// Zero if there is none.
    user: AtomicU64,
    full_at: AtomicU64,
}

/// Users whose keys have some bits in common. The largest debts are kept.
#[derive(Debug, Default)]
struct Set {
    is_locked: AtomicBool,
    debts: [Debt; WAYS],
}

impl Set {
    /// Calls `change` while no other thread does. It takes some dozen nanoseconds.
    fn locked<R>(&self, change: impl FnOnce(&[Debt; WAYS]) -> R) -> R {
        while self.is_locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            core::hint::spin_loop();
        }
        let result = change(&self.debts);
        self.is_locked.store(false, Ordering::Release);
        result
    }
}

/// Debts of users without an account, by the user's hashed key.
#[derive(Debug)]
pub(super) struct Debts(Box<[Set]>);

impl Debts {
    /// Creates room for the debts of about `users`; with zero none is kept.
    pub(super) fn new(users: u32) -> Self {
        let sets = if users == 0 { 0 } else { (users as usize).div_ceil(WAYS / 2).next_power_of_two() };
        Self((0..sets).map(|_| Set::default()).collect())
    }

    /// Copies what is owed to others with as much room.
    pub(super) fn copy_to(&self, next: &Self) {
        if self.0.len() != next.0.len() {
            return;
        }
        for (from, to) in self.0.iter().zip(&next.0) {
            from.locked(|debts| {
                for (from, to) in debts.iter().zip(&to.debts) {
                    to.user.store(from.user.load(Ordering::Relaxed), Ordering::Relaxed);
                    to.full_at.store(from.full_at.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            });
        }
    }

    fn set(&self, user: u64) -> Option<&Set> {
        self.0.get((user >> 32) as usize & self.0.len().wrapping_sub(1))
    }

    /// Keeps the debt of a user whose account ends. If its set is full, the smallest debt is forgotten.
    pub(super) fn keep(&self, user: u64, full_at: Nanos) {
        let Some(set) = self.set(user) else { return };
        set.locked(|debts| {
            let read = |debt: &Debt| (debt.user.load(Ordering::Relaxed), debt.full_at.load(Ordering::Relaxed));
            let own = debts.iter().find(|debt| read(debt).0 == user);
            let Some(debt) = own.or_else(|| debts.iter().min_by_key(|debt| read(debt).1)) else { return };
            if read(debt).1 < full_at.0 {
                debt.user.store(user, Ordering::Relaxed);
                debt.full_at.store(full_at.0, Ordering::Relaxed);
            }
        });
    }

    /// Removes the debt of a user who gets an account, and returns when it is paid and the bucket is full.
    pub(super) fn take(&self, user: u64) -> Nanos {
        let Some(set) = self.set(user) else { return Nanos(0) };
        set.locked(|debts| {
            let Some(debt) = debts.iter().find(|debt| debt.user.load(Ordering::Relaxed) == user) else {
                return Nanos(0);
            };
            debt.user.store(0, Ordering::Relaxed);
            Nanos(debt.full_at.swap(0, Ordering::Relaxed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Debts, WAYS};
    use tt_model::Nanos;

    /// A key of the first set.
    fn user(number: u64) -> u64 {
        number + 1
    }

    #[test]
    fn a_debt_is_taken_once_and_the_largest_counts() {
        let debts = Debts::new(100);
        assert_eq!(debts.take(user(1)), Nanos(0));
        debts.keep(user(1), Nanos(500));
        debts.keep(user(1), Nanos(300));
        debts.keep(user(2), Nanos(700));
        assert_eq!([1, 2, 1].map(|number| debts.take(user(number))), [Nanos(500), Nanos(700), Nanos(0)]);
    }

    #[test]
    fn a_full_set_forgets_the_smallest_debt() {
        let debts = Debts::new(100);
        (0..WAYS as u64).for_each(|number| debts.keep(user(number), Nanos(1_000 + number)));
        debts.keep(user(90), Nanos(999));
        assert_eq!(debts.take(user(90)), Nanos(0), "it is the smallest");
        (0..WAYS as u64).for_each(|number| debts.keep(user(number), Nanos(1_000 + number)));
        debts.keep(user(91), Nanos(5_000));
        assert_eq!((debts.take(user(0)), debts.take(user(91))), (Nanos(0), Nanos(5_000)));
        assert_eq!(debts.take(user(WAYS as u64 - 1)), Nanos(1_000 + WAYS as u64 - 1));
    }

    #[test]
    fn nothing_is_kept_without_a_limit() {
        let debts = Debts::new(0);
        debts.keep(user(1), Nanos(500));
        assert_eq!(debts.take(user(1)), Nanos(0));
    }
}
