"""Books from frames that the caller has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import truetick as tt

SYMBOL = "BTCUSDT"
BENCH = Path(__file__).parent.parent / "bench/frames_to_books.py"
NOW = 1_700_000_000_000_000_000


def update(number: int, bids: list[list[str]], asks: list[list[str]]) -> bytes:
    """A depth update of Binance spot with one number."""
    fields = {"e": "depthUpdate", "E": 1_700_000_000_000, "s": SYMBOL, "U": number, "u": number, "b": bids, "a": asks}
    return json.dumps(fields, separators=(",", ":")).encode()


def test_frames_and_a_snapshot_make_a_proven_book() -> None:
    reader = tt.FrameReader("binance-spot", {SYMBOL: ("0.01", "0.00001")}, NOW)
    assert reader.requests(NOW) == [("snapshot", SYMBOL)]
    assert not reader.book(SYMBOL).proof.ok
    assert reader.take(update(8, [["60000.00", "2"]], []), NOW) is None
    body = b'{"lastUpdateId":7,"bids":[["60000.00","1"],["59999.00","4"]],"asks":[["60000.01","3"]]}'
    assert reader.take_snapshot(SYMBOL, body, NOW) is None
    assert reader.take(update(9, [], [["60000.02", "1.5"], ["60000.03", "1"]]), NOW + 5) is None
    book = reader.book(SYMBOL)
    assert (book.update_id, book.proof.kind, book.ts_recv) == (9, "sequence", NOW + 5)
    assert [(str(px), str(qty)) for px, qty in book.bid_levels()] == [("60000.00", "2.00000"), ("59999.00", "4.00000")]
    assert book.asks().tolist() == [[6_000_001, 300_000], [6_000_002, 150_000], [6_000_003, 100_000]]
    with pytest.raises(ValueError, match="levels=3"):
        reader.book(SYMBOL, levels=2).asks(3)


def test_a_lost_frame_makes_the_book_stale_and_a_bad_one_names_its_reason() -> None:
    reader = tt.FrameReader("binance_spot", {SYMBOL: ("0.01", "0.00001")}, NOW)
    assert reader.requests(NOW) == [("snapshot", SYMBOL)]
    reader.take(update(8, [["60000.00", "2"]], []), NOW)
    body = b'{"lastUpdateId":7,"bids":[["60000.00","1"]],"asks":[["60000.01","3"]]}'
    reader.take_snapshot(SYMBOL, body, NOW)
    assert reader.book(SYMBOL).proof.ok
    reader.take(update(10, [["60000.00", "4"]], []), NOW)
    assert reader.book(SYMBOL).proof.kind == "stale"
    later = NOW + 10_000_000_000
    assert ("snapshot", SYMBOL) in reader.requests(later)
    reason = reader.take(b'{"e":"depthUpdate"', later)
    assert reason == "syntax"
    with pytest.raises(KeyError):
        reader.book("ETHUSDT")
    with pytest.raises(ValueError, match="no.number"):
        tt.FrameReader("binance_spot", {SYMBOL: ("no number", "1")})


def test_the_comparison_of_speed_says_that_it_lacks_captures() -> None:
    command = [sys.executable, str(BENCH)]
    ended = subprocess.run(command, env={}, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "nothing to measure: TRUETICK_DATA names no captures\n")
