"""Recordings: written, replayed, and as Arrow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import joined, proven

import truetick as tt

ROOT = Path(__file__).parent.parent.parent
COMMITTED = ROOT / "tools/testkit/recordings/simulator.ttj"
VENUE = "binance_spot"


@pytest.fixture
def recorded(paused: tt.Simulator, tmp_path: Path) -> tuple[Path, list[tt.Book], tt.Recorded]:
    """A recording, and the books that a reader had at the same time."""
    path, symbols, url = tmp_path / "day.ttj", paused.symbols(VENUE), paused.url(VENUE)
    with tt.recorder(VENUE, symbols, path, url=url) as recorder:
        with tt.books(VENUE, symbols, url=url) as books:
            read: list[tt.Book] = []
            for symbol in symbols:
                joined(paused, books, symbol)
                # The recorder's own connection joins with the first updates after its snapshot.
                update_id = paused.step(VENUE, symbol, 100)
                while not read or (read[-1].symbol, read[-1].update_id) != (symbol, update_id):
                    read.append(proven(books, symbol))
        recorder.wait(0.5)
    written = tt.Recorded(recorder.records, recorder.bytes, recorder.dropped)
    return path, [book for book in read if book.kind == "delta"], written


def test_a_replay_yields_the_books_of_the_live_feed(recorded: tuple[Path, list[tt.Book], tt.Recorded]) -> None:
    path, live, written = recorded
    replay = tt.replay(path)
    found = {(book.symbol, book.update_id): book for book in replay if book.kind == "delta"}
    assert len(live) > 100
    common = [book for book in live if (book.symbol, book.update_id) in found]
    assert len(common) > 100
    for book in common:
        again = found[book.symbol, book.update_id]
        assert again.venue == VENUE and again.proof.ok
        assert (again.bids() == book.bids()).all() and (again.asks() == book.asks()).all()
        assert (again.tick_size, again.lot_size, again.ts_event) == (book.tick_size, book.lot_size, book.ts_event)
    assert replay.is_right and replay.checkpoints > 0
    assert (replay.records, written.dropped) == (written.records, 0)
    assert replay.frames > 200 and written.bytes > 10_000


def test_the_hash_is_that_of_the_command(recorded: tuple[Path, list[tt.Book], tt.Recorded]) -> None:
    """The committed recording's hash is known; a new one's is asked of the program, if TRUETICK_PROGRAM names it."""
    replay = tt.replay(COMMITTED)
    for _ in replay:
        pass
    assert replay.is_right
    assert tt.replay(COMMITTED).hash == replay.hash
    for path in [COMMITTED, recorded[0]]:
        if program := os.environ.get("TRUETICK_PROGRAM"):
            printed = subprocess.run([program, "replay", "--json", path], check=True, capture_output=True).stdout
            assert tt.replay(path).hash == json.loads(printed)["hash"]


def test_a_damaged_recording_is_an_error(recorded: tuple[Path, list[tt.Book], tt.Recorded], tmp_path: Path) -> None:
    whole = recorded[0].read_bytes()
    damaged = tmp_path / "damaged.ttj"
    middle = len(whole) // 2
    damaged.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    with pytest.raises(tt.RecordingError):
        for _ in tt.replay(damaged):
            pass
    replay = tt.replay(damaged)
    assert not replay.is_right
    with pytest.raises(pa.ArrowException, match="the recording ends"):
        pa.table(replay.to_arrow())
    damaged.write_bytes(b"no recording")
    with pytest.raises(tt.RecordingError):
        tt.replay(damaged)
    with pytest.raises(FileNotFoundError):
        tt.replay(tmp_path / "absent.ttj")


def test_arrow_has_every_book_without_a_copy(recorded: tuple[Path, list[tt.Book], tt.Recorded]) -> None:
    levels = 400
    frame = tt.replay(recorded[0]).to_arrow(levels=levels)
    table = pa.table(frame)
    books = list(tt.replay(recorded[0], levels=levels))
    assert table.num_rows == len(books) > 200
    assert pa.types.is_timestamp(table.schema.field("ts_recv").type)
    assert frame.levels == levels and pa.schema(frame) == table.schema
    # `to_numpy` fails if it would have to copy.
    columns = {}
    for name in ["bid_px", "bid_qty", "ask_px", "ask_qty"]:
        (chunk,) = table[name].chunks
        values = chunk.values
        present = ~np.asarray(values.is_null()).reshape(-1, levels)
        columns[name] = (values.fill_null(0).to_numpy().reshape(-1, levels), present)
    rows = table.drop(["ts_event", "ts_recv", *columns]).to_pylist()
    for index, (row, book) in enumerate(zip(rows, books, strict=True)):
        for name, column, levels_of in [
            ("bid_px", 0, book.bids()),
            ("bid_qty", 1, book.bids()),
            ("ask_px", 0, book.asks()),
            ("ask_qty", 1, book.asks()),
        ]:
            values, present = columns[name]
            assert present[index].sum() == len(levels_of)
            assert (values[index][: len(levels_of)] == levels_of[:, column]).all()
        assert (row["venue"], row["symbol"], row["kind"]) == (book.venue, book.symbol, book.kind)
        assert (row["update_id"], row["proof"], row["ok"]) == (book.update_id, book.proof.kind, book.proof.ok)
        assert (row["tick_size"], row["lot_size"]) == (f"{book.tick_size:f}", f"{book.lot_size:f}")
    assert table["ts_recv"].cast(pa.int64()).to_pylist() == [book.ts_recv for book in books]
    assert table["ts_event"].cast(pa.int64()).to_pylist() == [book.ts_event for book in books]


def test_arrow_columns_are_read_in_place() -> None:
    table = pa.table(tt.replay(COMMITTED).to_arrow(levels=5))
    for chunk in table["update_id"].chunks:
        assert chunk.to_numpy(zero_copy_only=True).flags.owndata is False
    assert {"crc", "sequence"} & set(table["proof"].to_pylist())
    with pytest.raises(ValueError, match="levels must be"):
        tt.replay(COMMITTED).to_arrow(levels=0)


def test_record_writes_for_a_time_and_appends(tmp_path: Path) -> None:
    path = tmp_path / "day.ttj"
    with tt.Simulator(rate=400.0) as venues:
        symbols, url = venues.symbols("kraken"), venues.url("kraken")
        first = tt.record("kraken", symbols, path, seconds=0.5, url=url, packed=True)
        assert first.records > 0 and first.dropped == 0
        with pytest.raises(tt.FeedError, match="day.ttj"):
            tt.record("kraken", symbols, path, seconds=0.5, url=url)
        tt.record("kraken", symbols, path, seconds=0.5, url=url, append=True)
    replay = tt.replay(path)
    assert {book.symbol for book in replay} == set(symbols)
    assert replay.is_right and replay.records > first.records


def test_ctrl_c_ends_a_recording_and_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "day.ttj"
    code = f"""
import threading, truetick as tt
with tt.Simulator(rate=400.0) as venues:
    threading.Timer(0.5, lambda: print("recording", flush=True)).start()
    print(tt.record("kraken", venues.symbols("kraken"), {str(path)!r}, url=venues.url("kraken")).records > 0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as recording:
        assert recording.stdout is not None
        assert recording.stdout.readline() == "recording\n"
        recording.send_signal(signal.SIGINT)
        assert recording.stdout.readline() == "True\n"
        assert recording.wait(timeout=60) == 0
    assert tt.replay(path).is_right


def test_wrong_sources_of_a_recording_are_reported(tmp_path: Path) -> None:
    with tt.Simulator(rate=0.0) as venues:
        url = venues.url("kraken")
        with pytest.raises(tt.FeedError, match="NO/SUCH"):
            tt.record("kraken", ["NO/SUCH"], tmp_path / "a.ttj", seconds=1, url=url)
        with pytest.raises(ConnectionError, match="refused"):
            tt.record("kraken", ["BTC/USD"], tmp_path / "b.ttj", seconds=1, url="ws://127.0.0.1:1/v2", timeout=0.3)
