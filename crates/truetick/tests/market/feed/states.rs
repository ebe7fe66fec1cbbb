//! Instruments that their venue closes, interrupts and opens again by a message, without a request for the list.

use super::*;

/// Follows three instruments; the list is not due while the test runs.
fn follow_three(sim: &sim::Running) -> market::Runner {
    let mut config = feed(sim, Venue::Deribit);
    config.list_every = Some(Duration::from_secs(86_400));
    let running = follow(vec![config]);
    let reader = running.reader();
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    running
}

fn reasons(reader: &Reader) -> Vec<(String, String)> {
    reader.status(0).refusals.into_iter().map(|refusal| (refusal.subject, refusal.reason)).collect()
}

fn waits_for(reader: &Reader, expected: &[(&str, &str)]) {
    let is_so = || {
        let found = reasons(reader);
        found.iter().map(|(subject, reason)| (subject.as_str(), reason.as_str())).eq(expected.iter().copied())
    };
    assert!(reader.wait(SOON, is_so), "{expected:?}: {:?}", reader.status(0));
}

#[test]
fn an_instrument_that_its_venue_closes_ends_at_once_and_comes_back_when_it_is_open() {
    let sim = simulator(3, 400.0);
    let running = follow_three(&sim);
    let reader = running.reader();
    let symbols: Vec<String> = reader.instruments().iter().map(|listed| listed.symbol.clone()).collect();
    sim.set_standing(SimVenue::Deribit, 0, sim::Standing::Delisted);
    waits_for(&reader, &[(&symbols[0], "the venue has closed it")]);
    sim.set_standing(SimVenue::Deribit, 1, sim::Standing::Suspended);
    waits_for(&reader, &[(&symbols[0], "the venue has closed it"), (&symbols[1], "the venue has halted it")]);
    let followed = || reader.instruments().iter().map(|listed| reader.is_followed(listed.id)).collect::<Vec<_>>();
    assert_eq!(followed(), [false, false, true]);
    assert!(reader.status(0).connected && reader.all_verified(), "{:?}", reader.status(0));
    sim.set_standing(SimVenue::Deribit, 1, sim::Standing::Trading);
    waits_for(&reader, &[(&symbols[0], "the venue has closed it")]);
    assert!(reader.wait(SOON, || followed() == [false, true, true] && reader.all_verified()), "{:?}", reader.status(0));
    let (status, counters) = (reader.status(0), reader.counters(0));
    assert_eq!((status.connections, status.silent_topics.len(), counters.gaps), (1, 0, 0), "{status:?}");
    running.stop();
    assert!(reader.counters(0).closes());
    sim.stop();
}

#[test]
fn a_currency_that_is_locked_is_looked_up_in_the_list() {
    let sim = simulator(2, 400.0);
    let running = follow_three(&sim);
    let reader = running.reader();
    let symbol = reader.instruments()[0].symbol.clone();
    sim.lock(0, true);
    waits_for(&reader, &[(&symbol, "the venue has halted it")]);
    assert!(reader.is_followed(reader.instruments()[1].id) && reader.all_verified());
    sim.lock(0, false);
    // The next list is requested ten seconds after the last one.
    waits_for(&reader, &[]);
    assert!(reader.wait(SOON, || reader.is_followed(reader.instruments()[0].id) && reader.all_verified()));
    running.stop();
    sim.stop();
}

/// Bybit's documentation of `u`: 1 with no levels is the last message of a book that was delisted.
#[test]
fn a_book_that_the_venue_empties_is_looked_up_in_the_list() {
    let sim = simulator(2, 400.0);
    let mut config = feed(&sim, Venue::BybitLinear);
    config.list_every = Some(Duration::from_secs(86_400));
    let running = follow(vec![config]);
    let reader = running.reader();
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    let first = reader.instruments()[0].clone();
    // A restart begins with the number 1, too: its levels show that the instrument goes on.
    sim.fault(SimVenue::Bybit, 1, Fault::Reset);
    sim.set_standing(SimVenue::Bybit, 0, sim::Standing::Delisted);
    let is_empty = || {
        let top = reader.top_of_book(first.id).unwrap();
        (top.bid, top.ask) == (None, None)
    };
    assert!(reader.wait(SOON, is_empty), "{:?}", reader.top_of_book(first.id));
    waits_for(&reader, &[(&first.symbol, "the venue lists it no longer")]);
    assert_eq!((reader.is_followed(first.id), reader.is_followed(reader.instruments()[1].id)), (false, true));
    assert!(reader.status(0).connected && reader.all_verified(), "{:?}", reader.status(0));
    assert_eq!((reader.status(0).connections, reader.counters(0).gaps), (1, 0));
    running.stop();
    sim.stop();
}
