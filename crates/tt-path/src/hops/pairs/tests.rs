use super::*;

fn pair(source: &str, destination: &str) -> AddressPair {
    AddressPair { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}

/// Three pairs with the slots 0, 1 and 2.
fn three() -> (Pairs, [AddressPair; 3]) {
    let all = [pair("10.0.0.1", "10.1.0.1"), pair("10.0.0.2", "10.2.0.1"), pair("2001:db8::1", "2001:db8::2")];
    let mut pairs = Pairs::default();
    all.iter().zip(0..).for_each(|(pair, slot)| pairs.insert(*pair, slot));
    (pairs, all)
}

fn doubted(changes: &[Change]) -> Vec<u16> {
    let (mut pairs, _) = three();
    let mut slots = Vec::new();
    pairs.doubt(changes, |slot| slots.push(slot));
    slots.sort_unstable();
    slots
}

#[test]
fn a_change_concerns_the_pairs_in_its_prefix_or_family() {
    let route = |text: &str, len| Change::Route(Prefix { address: text.parse().unwrap(), len });
    for (changes, slots) in [
        (&[route("10.1.0.0", 16)][..], &[0][..]),
        (&[route("10.0.0.2", 32)], &[1]),
        (&[route("0.0.0.0", 0)], &[0, 1]),
        (&[route("2001:db8::2", 128)], &[2]),
        (&[route("10.3.0.0", 16)], &[]),
        (&[route("10.1.0.0", 16), Change::Family(IpFamily::V6)], &[0, 2]),
        (&[Change::Family(IpFamily::V4)], &[0, 1]),
        (&[Change::All], &[0, 1, 2]),
        (&[], &[]),
    ] {
        assert_eq!(doubted(changes), slots, "{changes:?}");
    }
}

#[test]
fn a_doubted_pair_is_queued_once() {
    let (mut pairs, [first, ..]) = three();
    let mut count = 0;
    for _ in 0..2 {
        pairs.doubt(&[Change::All], |_| count += 1);
        pairs.queue_all();
    }
    assert_eq!(count, 3);
    assert_eq!(pairs.get(&first), Some((0, Certainty::Doubted)));
    let queued: Vec<_> = std::iter::from_fn(|| pairs.next_queued()).collect();
    assert_eq!(queued.len(), 3);
    assert!(queued.contains(&(first, 0, Certainty::Doubted)) && pairs.is_queue_empty());
    // A pair whose route has changed waits for its users, and is not asked again.
    pairs.set_certainty(&first, Certainty::Changed);
    pairs.doubt(&[Change::All], |_| count += 1);
    pairs.queue_all();
    assert!(pairs.is_queue_empty());
    assert_eq!(count, 3);
}

#[test]
fn a_verified_pair_is_queued_without_a_doubt() {
    let (mut pairs, [first, second, third]) = three();
    pairs.queue_all();
    pairs.release(second);
    pairs.insert(second, 9);
    let mut queued: Vec<_> = std::iter::from_fn(|| pairs.next_queued()).collect();
    queued.sort_by_key(|(pair, ..)| *pair);
    assert_eq!(queued, [(first, 0, Certainty::Verified), (third, 2, Certainty::Verified)], "the second is a new one");
}

#[test]
fn a_pair_goes_with_its_last_user() {
    let (mut pairs, [first, ..]) = three();
    pairs.add_user(&first);
    assert_eq!(pairs.release(first), None);
    assert_eq!(pairs.release(first), Some((0, Certainty::Verified)));
    assert_eq!((pairs.release(first), pairs.get(&first)), (None, None));
}

#[test]
fn the_number_of_pairs_is_bounded() {
    let mut pairs = Pairs::default();
    for number in 0..u32::try_from(PAIRS_MAX).unwrap() {
        assert_eq!(pairs.has_room(), Ok(()));
        pairs.insert(AddressPair { source: [10, 0, 0, 1].into(), destination: number.to_be_bytes().into() }, 0);
    }
    assert_eq!(pairs.has_room(), Err(Refusal::PairsFull));
}
