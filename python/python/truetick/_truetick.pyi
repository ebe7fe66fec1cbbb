"""The compiled part of truetick."""

from datetime import timedelta
from decimal import Decimal
from typing import TypedDict, final

import numpy as np
import numpy.typing as npt

from ._level import Level

class FeedError(Exception):
    """A feed that cannot be followed."""

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

def venues() -> list[str]:
    """The names of all venues."""
