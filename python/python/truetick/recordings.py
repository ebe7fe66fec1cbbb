"""Recordings of a venue: written, and replayed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ._truetick import Recorder, Replay
from .books import source


class Recorded(NamedTuple):
    """Size of a recording."""

    records: int
    bytes: int
    dropped: int


def record(
    venue: str,
    symbols: Sequence[str],
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    append: bool = False,
    packed: bool = False,
    url: str | None = None,
    rest_url: str | None = None,
    region: str | None = None,
    depth: int | None = None,
    timeout: float = 30.0,
) -> Recorded:
    """Record all inputs of a venue's feed until Ctrl-C, or for `seconds`, and return what was written.

    Ctrl-C brings the file to its end. It raises KeyboardInterrupt only if `seconds` is given. `append` goes on with a
    file that exists, `packed` compresses it; the other arguments are those of `books`. `dropped` records found the
    disk too slow; the file counts them.

    Raises RecordingError if the file cannot be written, and what `books` raises.
    """
    with recorder(
        venue,
        symbols,
        path,
        append=append,
        packed=packed,
        url=url,
        rest_url=rest_url,
        region=region,
        depth=depth,
        timeout=timeout,
    ) as running:
        try:
            running.wait(seconds)
        except KeyboardInterrupt:
            if seconds is not None:
                raise
        running.close()
        return Recorded(running.records, running.bytes, running.dropped)


def recorder(
    venue: str,
    symbols: Sequence[str],
    path: str | os.PathLike[str],
    *,
    append: bool = False,
    packed: bool = False,
    url: str | None = None,
    rest_url: str | None = None,
    region: str | None = None,
    depth: int | None = None,
    timeout: float = 30.0,
) -> Recorder:
    """Begin to record, and return at once: a context manager whose end is the recording's. Arguments as of `record`."""
    return Recorder(source(venue, symbols, url, rest_url, region, depth), path, append, packed, timeout)


def replay(path: str | os.PathLike[str], *, levels: int = 50) -> Replay:
    """Replay a recording of truetick: an iterator of the books that the live feed had, each with its proof.

    The end of the iteration raises RecordingError if the state is another one than the recorded state, or the file is
    damaged. `to_arrow` has all books as an Arrow stream, `hash` the state at the end.

    Raises OSError if there is no such file, and RecordingError if it is no recording.
    """
    return Replay(path, levels)
