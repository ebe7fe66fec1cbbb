//! Shares of pools.

use super::{Accounts, Bound, Pool, Pools, Share, Shortage};

fn accounts(allocations: u32) -> Accounts {
    Accounts::new(64, Pools { allocations, ..Pools::UNLIMITED })
}

/// A share alone.
fn share(percent: u8) -> Bound {
    Bound { most: u32::MAX, total: u32::MAX, share: Share::new(percent) }
}

/// Takes single units until there are no more, and returns their number and why it ended.
fn take_all(accounts: &Accounts, user: u64) -> (u32, Shortage) {
    take_all_within(accounts, user, share(75))
}

fn take_all_within(accounts: &Accounts, user: u64, bound: Bound) -> (u32, Shortage) {
    let place = accounts.open(user, 1, |_| ()).expect("room for a user");
    let mut taken = 0;
    loop {
        match accounts.take(place, Pool::Allocations, 1, bound) {
            Ok(()) => taken += 1,
            Err(shortage) => return (taken, shortage),
        }
    }
}

#[test]
fn each_user_leaves_a_quarter_to_those_who_hold_fewer() {
    for (size, first, second) in [(64, 48, 10), (1_000, 750, 188), (8_192, 6_144, 1_536)] {
        let accounts = accounts(size);
        assert_eq!(take_all(&accounts, 1), (first, Shortage::Share), "alone, of {size}");
        assert_eq!(take_all(&accounts, 2), (second, Shortage::Share), "of the rest of {size}");
        assert_eq!(accounts.used(Pool::Allocations), first + second);
    }
}

/// A third and fourth user get their first ten; the last sixteenth remains for those who hold less.
#[test]
fn several_users_together_leave_the_first_ten_to_others() {
    for (size, reserve) in [(1_000, 62), (8_192, 512), (16_384, 1_024)] {
        let accounts = accounts(size);
        take_all(&accounts, 1);
        take_all(&accounts, 2);
        assert_eq!(size - accounts.used(Pool::Allocations), reserve, "of {size}");
        for user in 3..9 {
            let (taken, shortage) = take_all(&accounts, user);
            assert!((10..12).contains(&taken) && shortage == Shortage::Share, "{taken} of {size}");
        }
    }
}

#[test]
fn equal_users_use_the_whole_pool() {
    let accounts = accounts(60);
    for user in 1..=60 {
        let place = accounts.open(user, 1, |_| ()).expect("room for a user");
        assert_eq!(accounts.take(place, Pool::Allocations, 1, share(75)), Ok(()), "user {user}");
    }
    assert_eq!(accounts.take(0, Pool::Allocations, 1, share(75)), Err(Shortage::Empty));
}

#[test]
fn a_small_pool_leaves_its_quarter_to_the_second_user() {
    for size in [16, 40, 52] {
        let accounts = accounts(size);
        let (first, _) = take_all(&accounts, 1);
        assert_eq!(first, size * 3 / 4);
        let (second, _) = take_all(&accounts, 2);
        assert!(second >= 10.min(size / 4), "{second} of {size}");
    }
}

#[test]
fn the_share_is_set_or_switched_off() {
    assert_eq!(take_all_within(&accounts(100), 1, share(50)), (50, Shortage::Share));
    assert_eq!(take_all_within(&accounts(100), 1, share(100)), (100, Shortage::Empty));
    let total = |total| take_all_within(&accounts(100), 1, Bound { total, ..share(100) });
    assert_eq!((total(40), total(400)), ((40, Shortage::Empty), (100, Shortage::Empty)));
}

#[test]
fn a_user_with_the_maximum_number_is_at_a_quota() {
    let accounts = accounts(100);
    let place = accounts.open(1, 1, |_| ()).expect("room for a user");
    let quota = Bound { most: 2, ..share(75) };
    assert_eq!(accounts.take(place, Pool::Allocations, 2, quota), Ok(()));
    assert_eq!(accounts.take(place, Pool::Allocations, 1, quota), Err(Shortage::Quota));
    accounts.give(place, Pool::Allocations, 1);
    assert_eq!(accounts.take(place, Pool::Allocations, 1, quota), Ok(()));
}

#[test]
fn an_account_ends_with_its_last_reference() {
    let accounts = Accounts::new(2, Pools::UNLIMITED);
    let mut created = 0;
    for _ in 0..100 {
        assert!(accounts.open(7, 2, |_| created += 1).is_some() && accounts.open(7, 1, |_| created += 1).is_some());
        assert!(accounts.open(8, 1, |_| ()).is_some());
        assert!(accounts.open(9, 1, |_| ()).is_none(), "both are in use");
        accounts.close(7, 2, |_| ());
        assert!(accounts.place(7).is_some());
        accounts.close(7, 1, |_| ());
        accounts.close(8, 1, |_| ());
        assert_eq!((accounts.place(7), accounts.place(8)), (None, None));
    }
    assert_eq!(created, 100);
}

#[test]
fn four_threads_pass_a_share_by_a_unit_each_at_most() {
    let accounts = accounts(1_000);
    let place = accounts.open(1, 1, |_| ()).expect("room for a user");
    let take = || (0..1_000).filter(|_| accounts.take(place, Pool::Allocations, 1, share(75)).is_ok()).count();
    let taken: usize = std::thread::scope(|scope| {
        let threads: std::vec::Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread ends")).sum()
    });
    assert!((750..754).contains(&taken), "{taken}");
    assert_eq!(accounts.used(Pool::Allocations) as usize, taken);
}
