"""Order books of exchanges that carry their proof, live and from recordings.

>>> import truetick as tt
>>> with tt.Simulator() as venues, tt.books("kraken", venues.symbols("kraken"), url=venues.url("kraken")) as books:
...     book = next(books)
>>> book.venue
'kraken'
"""

from ._level import Level
from ._truetick import (
    ArrowBooks,
    Book,
    FeedError,
    FrameReader,
    Proof,
    Recorder,
    RecordingError,
    Replay,
    Simulator,
    venues,
)
from .audits import Audit, Finding, audit
from .books import Books, books
from .gates import Gate, Intent, Verdict
from .recordings import Recorded, record, recorder, replay

__all__ = [
    "ArrowBooks",
    "Audit",
    "Book",
    "Books",
    "FeedError",
    "Finding",
    "FrameReader",
    "Gate",
    "Intent",
    "Level",
    "Proof",
    "Recorded",
    "Recorder",
    "RecordingError",
    "Replay",
    "Simulator",
    "Verdict",
    "audit",
    "books",
    "record",
    "recorder",
    "replay",
    "venues",
]
