"""Books of the simulated venues, read in a loop."""

from __future__ import annotations

import gc
import threading
from decimal import Decimal

import numpy as np
import pytest
from conftest import Follow, joined, proven

import truetick as tt

VENUE = "binance_spot"  # Its update ids are those of the simulator's script.


def until(books: tt.Books, symbol: str, update_id: int) -> list[tt.Book]:
    """The books of a symbol up to an update."""
    read: list[tt.Book] = []
    while not read or read[-1].update_id < update_id:
        book = books.get(timeout=30)
        if book.symbol == symbol:
            read.append(book)
    return read


@pytest.mark.parametrize("venue", ["binance_spot", "binance_usdm", "kraken", "okx", "bybit_linear", "deribit"])
def test_each_venue_yields_proven_books(venue: str) -> None:
    with tt.Simulator(rate=500.0) as venues, tt.books(venue, venues.symbols(venue), url=venues.url(venue)) as books:
        assert books.venue == venue
        for symbol in venues.symbols(venue):
            book = proven(books, symbol)
            assert (book.venue, book.symbol) == (venue, symbol)
            assert book.proof.kind in {"crc", "sequence", "oracle"}
            assert book.best_bid is not None and book.best_ask is not None
            assert book.best_bid.price < book.best_ask.price


def test_books_are_the_simulators_true_books(paused: tt.Simulator, follow: Follow) -> None:
    books = follow(VENUE, levels=5000)
    for symbol in paused.symbols(VENUE):
        joined(paused, books, symbol)
        update_id = paused.step(VENUE, symbol, 50)
        book = until(books, symbol, update_id)[-1]
        true_id, bids, asks, (px_decimals, qty_decimals) = paused.truth(VENUE, symbol)
        assert book.update_id == true_id == update_id
        px_unit, qty_unit = Decimal(1).scaleb(-px_decimals), Decimal(1).scaleb(-qty_decimals)
        for levels, steps, true in [
            (book.bid_levels(), book.bids(), bids),
            (book.ask_levels(), book.asks(), asks),
        ]:
            expected = [(px * px_unit, qty * qty_unit) for px, qty in true]
            assert len(expected) > 50
            assert [tuple(level) for level in levels] == expected
            scaled = [(int(px) * book.tick_size, int(qty) * book.lot_size) for px, qty in steps]
            assert scaled == expected
        assert book.best_bid == book.bid_levels(1)[0]
        assert book.best_ask == book.ask_levels(1)[0]


def test_every_update_comes_once_and_in_order(paused: tt.Simulator, follow: Follow) -> None:
    books = follow(VENUE)
    symbol = paused.symbols(VENUE)[1]
    first = joined(paused, books, symbol)
    update_id = paused.step(VENUE, symbol, 300)
    read = [book for book in until(books, symbol, update_id) if book.kind == "delta"]
    ids = [book.update_id for book in read]
    assert ids == sorted(set(ids))
    assert [book.previous_id for book in read] == [first.update_id, *ids[:-1]]
    assert all(book.missed == 0 for book in read)
    assert books.missed == 0
    assert all(book.ts_event is not None and book.ts_event <= book.ts_recv for book in read)


def test_a_slow_reader_gets_the_number_of_missed_updates(paused: tt.Simulator, follow: Follow) -> None:
    books = follow(VENUE, room=10)
    symbol, other = paused.symbols(VENUE)
    first = joined(paused, books, symbol)
    update_id = paused.step(VENUE, symbol, 200)
    while (latest := books.latest(symbol)) is None or latest.update_id < update_id:
        pass
    read = until(books, symbol, update_id)
    deltas = [book for book in read if book.kind == "delta"]
    assert deltas[0].previous_id > first.update_id, "some were dropped"
    assert read[0].missed > 0
    assert [book.missed for book in read[1:]] == [0] * (len(read) - 1)
    # Each update of the script is read, or counted as missed.
    of_other = books.missed - read[0].missed
    assert len(deltas) + read[0].missed >= 200
    assert 0 <= of_other < 10


def test_a_lost_update_makes_a_stale_book_and_then_a_proven_one(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("kraken")
    symbol = paused.symbols("kraken")[0]
    proven(books, symbol)
    paused.fault("kraken", symbol, "drop")
    while True:
        paused.step("kraken", symbol)
        book = books.get(timeout=30)
        if book.symbol == symbol and not book.proof.ok:
            break
    assert book.proof.kind == "stale"
    assert "missing" in book.proof.reason
    assert not book.proof
    assert proven(books, symbol).proof


def test_arrays_are_read_only_views(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("kraken", levels=20)
    book = proven(books, paused.symbols("kraken")[0])
    bids, asks = book.bids(10), book.asks(20)
    assert (bids.shape, asks.shape) == ((10, 2), (20, 2))
    assert bids.dtype == np.int64
    assert np.shares_memory(bids, book.bids(3))
    assert not np.shares_memory(bids, asks)
    assert not bids.flags.owndata and not bids.flags.writeable
    with pytest.raises(ValueError):
        bids[0, 0] = 1
    prices = bids[:, 0]
    assert (np.diff(prices) < 0).all() and (np.diff(asks[:, 0]) > 0).all()
    copy = bids.copy()
    del book
    gc.collect()
    assert (bids == copy).all(), "an array keeps its memory"


def test_levels_that_a_book_does_not_keep_are_an_error(paused: tt.Simulator, follow: Follow) -> None:
    book = joined(paused, follow(VENUE, levels=5), paused.symbols(VENUE)[0])
    assert len(book.bids()) == len(book.ask_levels()) == 5
    with pytest.raises(ValueError, match="levels=6"):
        book.bids(6)
    with pytest.raises(ValueError, match="levels=6"):
        book.ask_levels(6)


def test_the_latest_book_takes_no_update(paused: tt.Simulator, follow: Follow) -> None:
    books = follow(VENUE)
    symbol = paused.symbols(VENUE)[0]
    book = joined(paused, books, symbol)
    latest = books.latest(symbol)
    assert latest is not None and latest.update_id == book.update_id
    assert (latest.bids(10) == book.bids(10)).all() and (latest.asks(10) == book.asks(10)).all()
    update_id = paused.step(VENUE, symbol, 3)
    while (latest := books.latest(symbol)) is None or latest.update_id < update_id:
        pass
    assert until(books, symbol, update_id)[0].previous_id == book.update_id
    with pytest.raises(KeyError):
        books.latest("NO/SUCH")


def test_a_wait_lets_other_threads_run(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("kraken", levels=3)
    symbol = paused.symbols("kraken")[0]
    for symbol in paused.symbols("kraken"):
        proven(books, symbol)
    read: list[tt.Book] = []
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        read.append(books.get(timeout=60))

    waiter = threading.Thread(target=wait)
    waiter.start()
    begun.wait()
    # With the interpreter's lock held in the wait, this line would not be reached before its end.
    paused.step("kraken", symbol)
    waiter.join()
    assert read[0].symbol == symbol


def test_a_wait_ends_after_its_timeout_or_when_the_books_are_closed(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("kraken")
    for symbol in paused.symbols("kraken"):
        proven(books, symbol)
    with pytest.raises(TimeoutError):
        books.get(timeout=0.01)
    closer = threading.Timer(0.0, books.close)
    closer.start()
    assert list(books) == []
    closer.join()
    with pytest.raises(RuntimeError, match="closed"):
        books.get()


def test_wrong_arguments_are_reported(paused: tt.Simulator) -> None:
    url = paused.url("kraken")
    with pytest.raises(ValueError, match='no venue is called "krakatoa": one of .*kraken'):
        tt.books("krakatoa", ["BTC/USD"])
    with pytest.raises(ValueError, match="no symbols"):
        tt.books("kraken", [], url=url)
    with pytest.raises(ValueError, match="levels must be"):
        tt.books("kraken", ["BTC/USD"], url=url, levels=0)
    with pytest.raises(ValueError, match="no region moon"):
        tt.books("okx", ["BTC-USDT"], region="moon")
    with pytest.raises(ValueError, match="timeout must be seconds"):
        tt.books("kraken", ["BTC/USD"], url=url, timeout=-1.0)
    with pytest.raises(tt.FeedError, match="NO/SUCH"):
        tt.books("kraken", ["BTC/USD", "NO/SUCH"], url=url)
    address = url.rsplit(":", 1)[0] + ":1/v2"
    with pytest.raises(ConnectionError, match="refused"):
        tt.books("kraken", ["BTC/USD"], url=address, timeout=0.5)
    assert "kraken" in tt.venues() and "kraken" in paused.venues


def test_the_latest_book_shows_a_lost_connection() -> None:
    venues = tt.Simulator(instruments=1, rate=0.0)
    symbol = venues.symbols("kraken")[0]
    with tt.books("kraken", [symbol], url=venues.url("kraken")) as books:
        first = proven(books, symbol)
        assert (latest := books.latest(symbol)) is not None and latest.proof
        venues.close()
        while books.get(timeout=30).proof.ok:
            pass
        latest = books.latest(symbol)
        assert latest is not None and latest.proof.kind == "stale"
        assert (latest.bids(10) == first.bids(10)).all()
