"""What the tests share: a simulated venue and books of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import truetick as tt

Follow = Callable[..., tt.Books]

# A shell starts jobs in the background with SIGINT ignored, and so would be the programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def paused() -> Iterator[tt.Simulator]:
    """Simulated venues that update a book only when a test steps it."""
    with tt.Simulator(instruments=2, rate=0.0, seed=7) as venues:
        yield venues


@pytest.fixture
def follow(paused: tt.Simulator) -> Iterator[Follow]:
    """Follow a simulated venue, and close its books after the test."""
    with ExitStack() as opened:

        def books(venue: str, symbols: list[str] | None = None, **options: Any) -> tt.Books:
            symbols = symbols or paused.symbols(venue)
            return opened.enter_context(tt.books(venue, symbols, url=paused.url(venue), **options))

        yield books


def proven(books: tt.Books, symbol: str, timeout: float = 30) -> tt.Book:
    """The next proven book of a symbol."""
    while True:
        book = books.get(timeout)
        if book.symbol == symbol and book.proof.ok:
            return book


def joined(venues: tt.Simulator, books: tt.Books, symbol: str) -> tt.Book:
    """The last update of a symbol at a venue whose update ids are the script's, which is stepped until it is proven."""
    update_id = venues.step(books.venue, symbol)
    while True:
        try:
            book = proven(books, symbol, timeout=0.5)
        except TimeoutError:
            update_id = venues.step(books.venue, symbol)
            continue
        if book.update_id == update_id:
            return book
