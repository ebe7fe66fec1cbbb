use super::*;
use tt_model::IpFamily;

const HOP: NextHop = NextHop { to: [1; 6], from: [2; 6], ifindex: 13, mtu: 1500 };
const START: Nanos = Nanos::from_secs(100);

fn target(number: u8) -> Target {
    Target { ifindex: 13, neighbour: [10, 92, 1, number].into(), family: IpFamily::V4, mtu: None }
}

/// Writes everything, and returns it.
fn write(slots: &mut Slots) -> Vec<(u16, Option<NextHop>)> {
    let mut writes = Vec::new();
    while let Some((index, value)) = slots.next_write() {
        slots.written(index, value);
        writes.push((index, value));
    }
    writes
}

#[test]
fn a_target_has_one_slot_for_all_its_users() {
    let mut slots = Slots::default();
    assert_eq!(slots.acquire(target(1), START, || Ok(HOP)), Ok(0));
    assert_eq!(slots.acquire(target(2), START, || Err(Refusal::NoNeighbour)), Ok(1));
    assert_eq!(slots.acquire(target(1), START, || panic!("the state is known")), Ok(0));
    // Each part of a target is another slot.
    let others = [
        Target { ifindex: 11, ..target(1) },
        Target { family: IpFamily::V6, ..target(1) },
        Target { mtu: Some(1400), ..target(1) },
    ];
    let found = others.map(|target| slots.acquire(target, START, || Ok(HOP)));
    assert_eq!(found, [Ok(2), Ok(3), Ok(4)]);
    assert_eq!((slots.value(0), slots.value(1)), (Ok(HOP), Err(Refusal::NoNeighbour)));
    slots.release(0, START);
    assert_eq!(slots.value(0), Ok(HOP), "one user is left");
    slots.release(0, START);
    assert_eq!(slots.in_use(), [1, 2, 3, 4]);
    assert!(slots.value(0).is_err());
}

#[test]
fn a_value_is_never_replaced_without_an_invalid_one_between() {
    let mut slots = Slots::default();
    slots.acquire(target(1), START, || Ok(HOP)).unwrap();
    assert_eq!(write(&mut slots), [(0, Some(HOP))]);
    assert_eq!(write(&mut slots), []);
    let moved = NextHop { to: [3; 6], ..HOP };
    slots.set_state(0, Ok(moved));
    assert_eq!(write(&mut slots), [(0, None), (0, Some(moved))]);
    slots.set_state(0, Err(Refusal::NeighbourFailed));
    assert_eq!(slots.next_failed(), Some(0));
    assert_eq!(write(&mut slots), [(0, None)]);
    assert_eq!(slots.next_failed(), None);
    slots.set_state(0, Ok(HOP));
    assert_eq!(write(&mut slots), [(0, Some(HOP))]);
    slots.release(0, START);
    assert_eq!(write(&mut slots), [(0, None)]);
}

#[test]
fn a_slot_in_doubt_is_invalid_until_the_last_doubt_goes() {
    let mut slots = Slots::default();
    slots.acquire(target(1), START, || Ok(HOP)).unwrap();
    write(&mut slots);
    slots.doubt(0);
    slots.doubt(0);
    assert_eq!(slots.value(0), Err(Refusal::Changing));
    assert_eq!(slots.next_failed(), None, "the neighbour has not failed");
    assert_eq!(write(&mut slots), [(0, None)]);
    slots.trust(0);
    assert_eq!(write(&mut slots), []);
    slots.trust(0);
    assert_eq!(write(&mut slots), [(0, Some(HOP))]);
}

#[test]
fn changes_are_returned_once() {
    let mut slots = Slots::default();
    for number in 0..3 {
        slots.acquire(target(number), START, || Ok(HOP)).unwrap();
        slots.known(number.into());
    }
    assert_eq!(slots.next_change(), None);
    slots.set_state(2, Err(Refusal::LinkDown));
    slots.set_state(1, Err(Refusal::LinkDown));
    slots.release(1, START);
    assert_eq!(slots.next_change(), Some(2));
    assert_eq!(slots.next_change(), None, "a slot without users is of no interest");
}

#[test]
fn marks_are_of_slots_in_use() {
    let mut slots = Slots::default();
    for number in 0..3 {
        slots.acquire(target(number), START, || Ok(HOP)).unwrap();
    }
    slots.release(2, START);
    slots.mark(|target| target.neighbour != std::net::IpAddr::from([10, 92, 1, 0]));
    assert_eq!(slots.next_dirty(), Some((1, target(1))));
    assert_eq!(slots.next_dirty(), None);
}

#[test]
fn all_256_slots_are_allotted_and_free_ones_rest_for_a_second() {
    let mut slots = Slots::default();
    for number in 0..=255 {
        assert_eq!(slots.acquire(target(number), START, || Ok(HOP)), Ok(number.into()));
    }
    let other = Target { ifindex: 11, ..target(0) };
    assert_eq!(slots.acquire(other, START, || Ok(HOP)), Err(Refusal::HopsFull));
    slots.release(9, START);
    slots.release(7, Nanos(START.0 - 1));
    let nearly = Nanos(START.0 + REST.0 - 2);
    assert_eq!(slots.acquire(other, nearly, || Ok(HOP)), Err(Refusal::HopsFull));
    // The slot that has rested longest; its old value goes first.
    write(&mut slots);
    let rested = Nanos(START.0 + REST.0);
    assert_eq!(slots.acquire(other, rested, || Ok(HOP)), Ok(7));
    assert_eq!(slots.target(7), other);
    assert_eq!(write(&mut slots), [(7, Some(HOP))]);
    // A target that comes back has its slot still, with a fresh state.
    assert_eq!(slots.acquire(target(9), START, || Err(Refusal::LinkDown)), Ok(9));
    assert_eq!(slots.value(9), Err(Refusal::LinkDown));
    slots.release(9, rested);
    assert_eq!(slots.acquire(target(7), rested, || Ok(HOP)), Err(Refusal::HopsFull));
    let later = Nanos(rested.0 + REST.0);
    assert_eq!(slots.acquire(target(7), later, || Ok(HOP)), Ok(9), "its old slot is another's now");
}
