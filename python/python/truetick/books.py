"""Books of a live venue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ._truetick import Book, Feed

if TYPE_CHECKING:
    from ._truetick import Source


def books(
    venue: str,
    symbols: Sequence[str],
    *,
    url: str | None = None,
    rest_url: str | None = None,
    region: str | None = None,
    depth: int | None = None,
    levels: int = 50,
    room: int = 4096,
    timeout: float = 30.0,
) -> Books:
    """Follow symbols of a venue, and return their books once the venue lists them.

    venue: one of `venues()`; symbols as the venue writes them. `url` and `rest_url` replace the venue's public
    addresses, `region` chooses among them, `depth` is the number of levels that the venue is asked for.
    Each book holds the best `levels` of each side. At most `room` updates wait for a slow reader; then the oldest is
    dropped, and the next book of its symbol counts it in `missed`.

    Raises ValueError for a wrong argument, FeedError for a symbol that the venue does not list, ConnectionError if the
    venue cannot be reached within `timeout` seconds.
    """
    return Books(Feed(source(venue, symbols, url, rest_url, region, depth), levels, room, timeout))


def source(
    venue: str, symbols: Sequence[str], url: str | None, rest_url: str | None, region: str | None, depth: int | None
) -> Source:
    """Return what a feed follows."""
    return {
        "venue": venue,
        "symbols": list(symbols),
        "url": url,
        "rest_url": rest_url,
        "region": region,
        "depth": depth,
    }


class Books:
    """Books of a venue, fed by a thread that never holds the interpreter's lock.

    Read them in one of three ways: iterate (`for`, `next`), iterate in an event loop (`async for`), or have a function
    called (`on_update`). Each update of each symbol comes once and in order. A context manager closes the connections.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._callbacks: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._filled: asyncio.Future[None] | None = None

    @property
    def venue(self) -> str:
        """The venue's name."""
        return self._feed.venue

    @property
    def symbols(self) -> list[str]:
        """The symbols that are followed."""
        return self._feed.symbols

    @property
    def missed(self) -> int:
        """Updates that were dropped since the start because the reader was too slow."""
        return self._feed.missed

    def latest(self, symbol: str) -> Book | None:
        """Return the book of a symbol as it is now, with at most ten levels of each side; None if there is none yet.

        It takes no lock, and no update from the iteration. Raises KeyError if the symbol is not followed.
        """
        return self._feed.latest(symbol)

    def get(self, timeout: float | None = None) -> Book:
        """Return the next update. Raises TimeoutError after `timeout` seconds, and RuntimeError once closed."""
        self._check_readable()
        try:
            book = self._feed.next(timeout)
        except StopIteration:
            raise RuntimeError("the books are closed") from None
        if book is None:
            raise TimeoutError(f"no update within {timeout} s")
        return book

    def on_update(self, function: Callable[[Book], object]) -> None:
        """Call `function` with each update on a separate thread.

        If it raises, it is called no more, and `close` raises the same.
        """
        self._check_readable()
        self._callbacks = threading.Thread(target=self._call, args=(function,), name="truetick-updates", daemon=True)
        self._callbacks.start()

    def close(self) -> None:
        """Close the connections. Waits end; a callback that runs is waited for."""
        self._feed.close()
        if self._callbacks is not None and self._callbacks is not threading.current_thread():
            self._callbacks.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def __enter__(self) -> Books:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Books:
        return self

    def __next__(self) -> Book:
        self._check_readable()
        while True:
            book = self._feed.next(None)
            if book is not None:
                return book

    def __aiter__(self) -> Books:
        return self

    async def __anext__(self) -> Book:
        self._check_readable()
        while True:
            try:
                book = self._feed.next(0.0)
            except StopIteration:
                raise StopAsyncIteration from None
            if book is not None:
                return book
            await self._wait()

    async def __aenter__(self) -> Books:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    async def _wait(self) -> None:
        """Wait until the feed wakes the event loop."""
        if self._filled is not None:
            raise RuntimeError("another task waits for these books")
        loop, feed = asyncio.get_running_loop(), self._feed
        filled = self._filled = loop.create_future()

        def wake() -> None:
            feed.drain()
            if not filled.done():
                filled.set_result(None)

        loop.add_reader(feed.fileno(), wake)
        try:
            if feed.watch():
                await filled
        finally:
            loop.remove_reader(feed.fileno())
            self._filled = None

    def _check_readable(self) -> None:
        if self._callbacks is not None:
            raise RuntimeError("on_update takes the updates of these books")

    def _call(self, function: Callable[[Book], object]) -> None:
        try:
            while True:
                book = self._feed.next(None)
                if book is not None:
                    function(book)
        except StopIteration:
            return
        except BaseException as failure:  # `close` raises it.
            self._failure = failure
