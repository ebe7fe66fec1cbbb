"""Audit of recordings."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ._truetick import RecordingError, examine_recording


@dataclass(frozen=True)
class Finding:
    """One kind of finding in a recording."""

    name: str
    count: int
    is_error: bool
    first_record: int | None
    text: str


class Audit:
    """Result of an audit. `str` is the report that `truetick audit` prints, `report` the same as JSON's types."""

    def __init__(self, text: str, report: dict[str, Any]) -> None:
        self._text = text
        self.report = report

    @property
    def is_right(self) -> bool:
        """Whether there were records, and no finding is an error."""
        return bool(self.report["right"]) and self.report["records"] > 0

    @property
    def findings(self) -> list[Finding]:
        """All findings: errors and notes, of the file and of its feeds."""
        found = [*self.report["findings"], *(one for feed in self.report["feeds"] for one in feed["findings"])]
        return [Finding(one["name"], one["count"], one["wrong"], one["first_record"], one["text"]) for one in found]

    def raise_for_fault(self) -> None:
        """Raise RecordingError with the errors if there are any, or if there was nothing to check."""
        errors = [finding for finding in self.findings if finding.is_error]
        if errors:
            raise RecordingError("; ".join(f"{finding.count} {finding.name}: {finding.text}" for finding in errors))
        if not self.is_right:
            raise RecordingError("nothing to check: no record")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Audit(is_right={self.is_right}, findings={self.findings})"


def audit(path: str | os.PathLike[str], *continued: str | os.PathLike[str], venue: str | None = None) -> Audit:
    """Check a recording for gaps, bad checksums, crossed books and damage, with the whole engine.

    It reads recordings of truetick, hftbacktest, cryptofeed (.ws, with the .http in the same folder), cbcap and JSON
    lines; plain, gzip or zip. `continued` are further parts of the same recording. The content shows the venue if
    `venue` is absent.

    Raises OSError if there is no such file, and RecordingError if it is no recording. Errors within a recording are
    findings: `raise_for_fault` raises them.
    """
    text, report = examine_recording([path, *continued], venue)
    return Audit(text, json.loads(report))
