"""Event loops, callbacks and Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading

import pytest
from conftest import Follow, joined, proven

import truetick as tt

INTERRUPTED = """
import truetick as tt
with tt.Simulator(instruments=1, rate=0.0) as venues:
    with tt.books("kraken", venues.symbols("kraken"), url=venues.url("kraken")) as books:
        books.get(timeout=30)
        try:
            print("waiting", flush=True)
            for book in books:
                pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_wait() -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waiting\n"
        waiting.send_signal(signal.SIGINT)
        assert waiting.stdout.readline() == "interrupted\n"
        assert waiting.wait(timeout=60) == 0


def test_ctrl_c_ends_the_wait_for_a_venue() -> None:
    code = """
import truetick as tt
print("waiting", flush=True)
tt.books("kraken", ["BTC/USD"], url="ws://127.0.0.1:1/v2", timeout=600.0)
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None and waiting.stderr is not None
        assert waiting.stdout.readline() == "waiting\n"
        waiting.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in waiting.stderr.read()
        assert waiting.wait(timeout=60) != 0


def test_async_for_reads_every_update(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("binance_spot")
    symbol = paused.symbols("binance_spot")[0]
    first = joined(paused, books, symbol)

    async def read() -> list[tt.Book]:
        update_id = await asyncio.to_thread(paused.step, "binance_spot", symbol, 100)
        found = []
        async for book in books:
            if book.symbol == symbol and book.kind == "delta":
                found.append(book)
                if book.update_id == update_id:
                    return found
        raise AssertionError("closed")

    found = asyncio.run(read())
    assert [book.previous_id for book in found] == [first.update_id, *(book.update_id for book in found[:-1])]


def test_a_waiting_task_leaves_the_event_loop_to_others(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("kraken")
    for symbol in paused.symbols("kraken"):
        proven(books, symbol)

    async def read() -> tt.Book:
        task = asyncio.ensure_future(books.__anext__())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
        with pytest.raises(RuntimeError, match="another task waits"):
            await books.__anext__()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        task = asyncio.ensure_future(books.__anext__())
        await asyncio.sleep(0)
        paused.step("kraken", symbol)
        return await task

    assert asyncio.run(read()).symbol == symbol


def test_closing_ends_async_for(paused: tt.Simulator) -> None:
    async def read() -> int:
        count = 0
        async with tt.books("kraken", paused.symbols("kraken"), url=paused.url("kraken")) as books:
            async for _ in books:
                count += 1
                if count == 2:
                    asyncio.get_running_loop().run_in_executor(None, books.close)
        return count

    assert asyncio.run(read()) >= 2


def test_callbacks_get_every_update(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("binance_spot")
    symbol = paused.symbols("binance_spot")[0]
    first = joined(paused, books, symbol)
    found: list[tt.Book] = []
    filled = threading.Condition()

    def take(book: tt.Book) -> None:
        with filled:
            if book.symbol == symbol and book.kind == "delta":
                found.append(book)
                filled.notify()

    books.on_update(take)
    with pytest.raises(RuntimeError, match="on_update takes"):
        next(books)
    update_id = paused.step("binance_spot", symbol, 50)
    with filled:
        assert filled.wait_for(lambda: found and found[-1].update_id == update_id, timeout=60)
    assert [book.previous_id for book in found] == [first.update_id, *(book.update_id for book in found[:-1])]


def test_a_callback_that_raises_is_reported_by_close(paused: tt.Simulator) -> None:
    books = tt.books("kraken", paused.symbols("kraken"), url=paused.url("kraken"))
    called = threading.Event()

    def fail(book: tt.Book) -> None:
        called.set()
        raise ArithmeticError(book.symbol)

    books.on_update(fail)
    assert called.wait(60)
    with pytest.raises(ArithmeticError):
        books.close()
    books.close()
