"""From frames to books: truetick next to a pure-Python reader, in one run on one core.

Both readers get the same frames in the same order, one call for each: the depth updates of a capture of Binance USD-M
(`binance/usdm_btcusdt_20240808.gz` in TRUETICK_DATA) from its REST snapshot on. Both read JSON, check that each update
follows the one before, apply all levels, and have the best bid and offer ready after each frame. At the end of each
round the whole books are compared. Rounds alternate. Times are those of the process on its core; wall times show
whether the machine was quiet.

    python bench/frames_to_books.py [--rounds 5] [--cpu N] [--json]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
from sortedcontainers import SortedDict

import truetick as tt

CAPTURE = "binance/usdm_btcusdt_20240808.gz"
VENUE, SYMBOL, TICK_SIZE, LOT_SIZE = "binance_usdm", "BTCUSDT", "0.10", "0.001"
RATIO_MIN = 20.0
# Wall time by the process's own time from which on the machine is called busy.
BUSY = 1.05

Levels = list[tuple[int, int]]
# The number of the last update, and both sides in whole steps, best first.
Sides = tuple[int, Levels, Levels]


@dataclass
class Capture:
    """A snapshot, and the depth updates from the one on that follows it."""

    snapshot_ns: int
    snapshot: bytes
    frames: list[tuple[int, bytes]]


def read(path: Path) -> Capture:
    """Read the capture. Frames that the snapshot includes are left out."""
    snapshot_ns, snapshot, frames, last_id = 0, b"", [], 0
    with gzip.open(path) as lines:
        for line in lines:
            ns, _, frame = line.rstrip().partition(b" ")
            if b'"lastUpdateId"' in frame[:40]:
                if not snapshot:
                    snapshot_ns, snapshot, last_id = int(ns), frame, orjson.loads(frame)["lastUpdateId"]
            elif b'"depthUpdate"' in frame[:80]:
                frames.append((int(ns), frame))
    return Capture(snapshot_ns, snapshot, [pair for pair in frames if orjson.loads(pair[1])["data"]["u"] >= last_id])


class PythonBook:
    """A book in pure Python: `orjson` and two `SortedDict`s by price."""

    def __init__(self, snapshot: bytes) -> None:
        body = orjson.loads(snapshot)
        self.bids = SortedDict((float(px), float(qty)) for px, qty in body["bids"])
        self.asks = SortedDict((float(px), float(qty)) for px, qty in body["asks"])
        self.update_id = body["lastUpdateId"]
        self.is_joined = False
        self.best = (self.bids.peekitem(-1), self.asks.peekitem(0))

    def take(self, frame: bytes) -> bool:
        """Apply an update; False if it does not follow the one before."""
        update = orjson.loads(frame)["data"]
        if update["pu"] != self.update_id if self.is_joined else not update["U"] <= self.update_id <= update["u"]:
            return False
        self.is_joined = True
        for side, levels in ((self.bids, update["b"]), (self.asks, update["a"])):
            for text, quantity in levels:
                px, qty = float(text), float(quantity)
                if qty:
                    side[px] = qty
                else:
                    side.pop(px, None)
        self.update_id = update["u"]
        self.best = (self.bids.peekitem(-1), self.asks.peekitem(0))
        return True

    def sides(self) -> Sides:
        """The whole book."""
        tick, lot = float(TICK_SIZE), float(LOT_SIZE)
        bids, asks = (
            [(round(px / tick), round(qty / lot)) for px, qty in side.items()] for side in (self.bids, self.asks)
        )
        return self.update_id, bids[::-1], asks


def of_python(capture: Capture) -> tuple[int, int, Sides]:
    """Run the pure-Python reader: its own and the wall time in ns, and the book."""
    book = PythonBook(capture.snapshot)
    take, frames = book.take, [frame for _, frame in capture.frames]
    return timed(lambda: all(take(frame) for frame in frames), book.sides)


def of_truetick(capture: Capture) -> tuple[int, int, Sides]:
    """Run truetick's reader."""
    reader = tt.FrameReader(VENUE, {SYMBOL: (TICK_SIZE, LOT_SIZE)}, capture.snapshot_ns)
    assert reader.take_snapshot(SYMBOL, capture.snapshot, capture.snapshot_ns) is None
    take, frames = reader.take, capture.frames

    def sides() -> Sides:
        book = reader.book(SYMBOL)
        assert book.proof.kind == "sequence", book.proof.kind
        bids, asks = ([(int(px), int(qty)) for px, qty in side] for side in (book.bids(), book.asks()))
        return book.update_id, bids, asks

    return timed(lambda: all(take(frame, ns) is None for ns, frame in frames), sides)


def timed(run: Callable[[], bool], sides: Callable[[], Sides]) -> tuple[int, int, Sides]:
    """Time a run, and return its book."""
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    is_whole = run()
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    if not is_whole:
        sys.exit("ERROR: a frame was dropped")
    return cpu, wall, sides()


def main() -> int:
    """Measure, compare and print. Exit status 1: below the aim; 2: no captures; 3: the machine was busy."""
    arguments = argparse.ArgumentParser(description="Time from frames to books.")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    arguments.add_argument("--json", action="store_true", help="print JSON")
    chosen = arguments.parse_args()
    if not (data := os.environ.get("TRUETICK_DATA")):
        print("nothing to measure: TRUETICK_DATA names no captures")
        return 2
    os.sched_setaffinity(0, {chosen.cpu})
    capture = read(Path(data) / CAPTURE)
    readers = {"python": of_python, "truetick": of_truetick}
    times: dict[str, list[int]] = {name: [] for name in readers}
    walls: dict[str, list[int]] = {name: [] for name in readers}
    levels = 0
    for _ in range(chosen.rounds):
        books = []
        for name, run in readers.items():
            cpu, wall, book = run(capture)
            times[name].append(cpu)
            walls[name].append(wall)
            books.append(book)
        if books[0] != books[1]:
            sys.exit("ERROR: the books differ")
        levels = len(books[0][1]) + len(books[0][2])
    count = len(capture.frames)
    medians = {name: statistics.median(of) / count for name, of in times.items()}
    busy = max(sum(walls[name]) / sum(times[name]) for name in readers)
    ratio = medians["python"] / medians["truetick"]
    if chosen.json:
        result = {
            "capture": CAPTURE,
            "frames": count,
            "levels": levels,
            "rounds": chosen.rounds,
            "ns_per_frame": {name: round(ns) for name, ns in medians.items()},
            "ratio": round(ratio, 2),
            "ratio_min": RATIO_MIN,
            "wall_by_cpu": round(busy, 3),
            "is_quiet": busy <= BUSY,
            "machine": platform.processor() or platform.machine(),
            "python": platform.python_version(),
        }
        print(json.dumps(result))
    else:
        for name, ns in medians.items():
            print(f"{name:9} {ns:12,.0f} ns a frame")
        print(f"ratio {ratio:.1f} (aim: {RATIO_MIN:.0f}); {count} frames lead both to the same {levels} levels")
    if busy > BUSY:
        print(f"undecided: the machine was busy (wall time is {busy:.2f} times the process's)", file=sys.stderr)
        return 3
    return 0 if ratio >= RATIO_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
