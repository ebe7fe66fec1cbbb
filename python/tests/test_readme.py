"""The examples of README.md, word by word. Where one follows a venue, it gets the simulator's address of that venue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import truetick as tt

README = (Path(__file__).parent.parent / "README.md").read_text()


def examples() -> list[tuple[str, str]]:
    """Heading and text of each example."""
    found, heading = [], ""
    for part in README.split("\n## "):
        heading = part.splitlines()[0]
        found += [(heading, block.split("```")[0]) for block in part.split("```python\n")[1:]]
    return found


@pytest.fixture(scope="module")
def venues() -> Iterator[tt.Simulator]:
    with tt.Simulator() as venues:
        yield venues


def test_there_are_examples() -> None:
    assert len(examples()) >= 6


@pytest.mark.parametrize("text", [pytest.param(text, id=heading) for heading, text in examples()])
def test_example(
    text: str,
    venues: tt.Simulator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def simulated(follow: Callable[..., Any]) -> Callable[..., Any]:
        def at_simulator(venue: str, *arguments: Any, **options: Any) -> Any:
            return follow(venue, *arguments, **{"url": venues.url(venue), **options})

        return at_simulator

    for name in ["books", "record"]:
        monkeypatch.setattr(tt, name, simulated(getattr(tt, name)))
    monkeypatch.chdir(tmp_path)
    exec(compile(text, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out, "an example that prints nothing shows nothing"
