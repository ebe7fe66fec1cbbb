"""The compiled part of truetick."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from os import PathLike
from typing import TypedDict, final

import numpy as np
import numpy.typing as npt

from ._level import Level

class FeedError(Exception):
    """A feed that cannot be followed."""

class RecordingError(Exception):
    """A recording that cannot be read or written, or that leads to another state than the recorded one."""

class Source(TypedDict):
    venue: str
    symbols: list[str]
    url: str | None
    rest_url: str | None
    region: str | None
    depth: int | None

@final
class Proof:
    """How a book was verified. True if it was."""

    @property
    def ok(self) -> bool:
        """Whether the levels were verified at their last update."""

    @property
    def kind(self) -> str:
        """`crc`, `sequence`, `oracle`, `snapshot`; or `syncing`, `unverified`, `stale`, which are not `ok`."""

    @property
    def reason(self) -> str:
        """A sentence about the kind."""

    @property
    def age(self) -> timedelta | None:
        """Time from the proof to `ts_recv`; None if it is more than 268 s, or there never was a proof."""

    @property
    def is_crossed(self) -> bool:
        """Whether the best bid is above the best offer."""

    @property
    def is_locked(self) -> bool:
        """Whether the best bid equals the best offer."""

    def __bool__(self) -> bool: ...

@final
class Book:
    """A book after an update. It does not change."""

    @property
    def venue(self) -> str:
        """The venue's name."""

    @property
    def symbol(self) -> str:
        """The venue's symbol."""

    @property
    def proof(self) -> Proof:
        """How the book was verified."""

    @property
    def kind(self) -> str:
        """`snapshot`, `delta`, or `status` if the proof alone is another one."""

    @property
    def ts_event(self) -> int | None:
        """The venue's time in nanoseconds of the Unix epoch; None if it sends none."""

    @property
    def ts_recv(self) -> int:
        """When the update was received, in nanoseconds of the Unix epoch."""

    @property
    def update_id(self) -> int:
        """The venue's number of the update."""

    @property
    def previous_id(self) -> int:
        """The number of the update before."""

    @property
    def missed(self) -> int:
        """Updates of this symbol between the book read before and this one that were dropped: the reader was too slow."""

    @property
    def tick_size(self) -> Decimal:
        """The price step: prices of `bids` and `asks` count it."""

    @property
    def lot_size(self) -> Decimal:
        """The quantity step: quantities of `bids` and `asks` count it."""

    @property
    def best_bid(self) -> Level | None:
        """The best bid in decimal numbers; None if there is none."""

    @property
    def best_ask(self) -> Level | None:
        """The best offer in decimal numbers; None if there is none."""

    def bids(self, n: int | None = None) -> npt.NDArray[np.int64]:
        """The best `n` bids, best first: an array of price and quantity in steps, without a copy.

        Raises ValueError if the book has more levels than it keeps and `n` of them are not kept.
        """

    def asks(self, n: int | None = None) -> npt.NDArray[np.int64]:
        """The best `n` offers, best first: an array of price and quantity in steps, without a copy.

        Raises ValueError if the book has more levels than it keeps and `n` of them are not kept.
        """

    def bid_levels(self, n: int | None = None) -> list[Level]:
        """The best `n` bids in decimal numbers, best first."""

    def ask_levels(self, n: int | None = None) -> list[Level]:
        """The best `n` offers in decimal numbers, best first."""

@final
class Feed:
    """A running feed and the updates that were not read yet. Use `books`."""

    def __new__(cls, source: Source, levels: int, room: int, timeout: float) -> Feed: ...
    @property
    def venue(self) -> str: ...
    @property
    def symbols(self) -> list[str]: ...
    @property
    def missed(self) -> int: ...
    def next(self, timeout: float | None = None) -> Book | None: ...
    def latest(self, symbol: str) -> Book | None: ...
    def fileno(self) -> int: ...
    def watch(self) -> bool: ...
    def drain(self) -> None: ...
    def close(self) -> None: ...

@final
class FrameReader:
    """Books from the frames of one connection that the caller has, live or from a file."""

    def __new__(cls, venue: str, symbols: Mapping[str, tuple[str, str]], ts: int | None = None) -> FrameReader:
        """Follow symbols of a venue, each with its price step and its quantity step as text, from `ts` on.

        Times are nanoseconds of the Unix epoch; now if absent.
        """

    def take(self, frame: bytes, ts: int | None = None) -> str | None:
        """Take a frame that was received at `ts`. Returns None, or the reason for which it was dropped."""

    def take_snapshot(self, symbol: str, body: bytes, ts: int | None = None) -> str | None:
        """Take a snapshot by REST of a symbol. Returns None, or the reason for which it was dropped."""

    def requests(self, ts: int | None = None) -> list[tuple[str, str | None]]:
        """What the books need now, each with its symbol.

        `snapshot` (by REST), `resubscribe`; or `reconnect` and `pong`, with None.
        """

    def book(self, symbol: str, levels: int | None = None) -> Book:
        """The book of a symbol with its best `levels` of each side, or all. Raises KeyError for another symbol."""

@final
class GateCore:
    """A gate whose numbers are decimal text. Use `Gate`."""

    def __new__(cls, text: str) -> GateCore: ...
    @staticmethod
    def from_toml(path: str | PathLike[str]) -> GateCore: ...
    @property
    def symbols(self) -> list[str]: ...
    def mark(self, symbol: str, bid: str, ask: str, ts: int | None, is_verified: bool) -> None: ...
    def check(self, intent: Mapping[str, object], ts: int | None) -> tuple[bool, list[str], int]: ...
    def report(self, report: Mapping[str, object], ts: int | None) -> str: ...

@final
class Recorder:
    """A feed that is written to a file. It never blocks the feed; what finds no room is counted."""

    def __new__(
        cls, source: Source, path: str | PathLike[str], append: bool, packed: bool, timeout: float
    ) -> Recorder: ...
    @property
    def records(self) -> int:
        """Records that were written."""

    @property
    def bytes(self) -> int:
        """Bytes that were written."""

    @property
    def dropped(self) -> int:
        """Records that were dropped because the disk was too slow; the recording counts them, too."""

    def wait(self, seconds: float | None = None) -> None:
        """Wait `seconds`, or for ever. Raises RecordingError if nothing can be written any more."""

    def close(self) -> None:
        """Close the connections and bring the recording to its end."""

    def __enter__(self) -> Recorder: ...
    def __exit__(self, kind: object, error: object, trace: object) -> None: ...

@final
class Replay:
    """A recording through the engine again: an iterator of the books that the live feed had."""

    def __new__(cls, path: str | PathLike[str], levels: int) -> Replay: ...
    def __iter__(self) -> Replay: ...
    def __next__(self) -> Book: ...
    def check(self) -> None:
        """Replay what is left. Raises RecordingError if the state is not the recorded one or the file is damaged."""

    @property
    def hash(self) -> str:
        """Hash of the whole state at the end, as `truetick replay` prints it. Replays what is left."""

    @property
    def is_right(self) -> bool:
        """Whether the recording contains states, and each is the same as the replayed one. Replays what is left."""

    @property
    def checkpoints(self) -> int:
        """Recorded states that were compared. Replays what is left."""

    @property
    def records(self) -> int:
        """Records of the file. Replays what is left."""

    @property
    def frames(self) -> int:
        """WebSocket frames of the file. Replays what is left."""

    def to_arrow(self, levels: int = 20) -> ArrowBooks:
        """All books of the recording as an Arrow stream with the best `levels` of each side."""

@final
class ArrowBooks:
    """Books of a recording as an Arrow stream. Each reader replays the recording from its beginning, batch by batch.

    Pass it to `pyarrow.table`, `polars.from_arrow` or any other reader of the Arrow PyCapsule interface.
    """

    @property
    def levels(self) -> int:
        """Levels of each side in a row."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Simulator:
    """Simulated venues on loopback: scripted books over real WebSocket and REST."""

    def __new__(cls, *, instruments: int = 3, rate: float = 200.0, seed: int = 1) -> Simulator: ...
    @property
    def venues(self) -> list[str]:
        """The names of the simulated venues."""

    def url(self, venue: str) -> str:
        """The WebSocket address of a venue."""

    def symbols(self, venue: str) -> list[str]:
        """The symbols of a venue."""

    def step(self, venue: str, symbol: str, count: int = 1) -> int:
        """Make `count` updates of a symbol at once; returns the script's number of the last one."""

    def fault(self, venue: str, symbol: str, kind: str) -> None:
        """Inject a fault into the next update of a symbol.

        `drop`, `duplicate`, `reorder`, `flip-digit`, `checksum`, `truncate`, `delay`, `half-open` or `reset`.
        """

    def truth(
        self, venue: str, symbol: str
    ) -> tuple[int, list[tuple[int, int]], list[tuple[int, int]], tuple[int, int]]:
        """The true book of a symbol, from the simulator's script.

        Number of the update, bids and asks as price and quantity in steps of `10**-decimals`, best first, and the
        decimals of price and of quantity.
        """

    def close(self) -> None:
        """Stop the venues."""

    def __enter__(self) -> Simulator: ...
    def __exit__(self, kind: object, error: object, trace: object) -> None: ...

def examine_recording(paths: Sequence[str | PathLike[str]], venue: str | None) -> tuple[str, str]:
    """Report of an audit as text and as JSON. Use `audit`."""

def venues() -> list[str]:
    """The names of all venues."""
