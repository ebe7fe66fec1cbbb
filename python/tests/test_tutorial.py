"""docs/tutorial-quant.md, word by word: its programs are saved, its commands run, and what they print is compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/tutorial-quant.md"
BLOCK = re.compile(r"```(\w*)\n(.*?)```\n", re.DOTALL)


def pattern(expected: list[str]) -> re.Pattern[str]:
    """`...` is any text within a line; a line `...` is any lines."""
    lines = [r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in expected]
    return re.compile("".join(lines))


PROGRAM = os.environ.get("TRUETICK_PROGRAM")


def programs(folder: Path) -> str:
    """Search path on which `python` is this Python, and `truetick` the program of TRUETICK_PROGRAM if it names one."""
    folder.mkdir()
    for name, program in [("python", sys.executable), ("truetick", PROGRAM)]:
        if program:
            (folder / name).write_text(f"#!/bin/sh\nexec '{program}' \"$@\"\n")
            (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_a_line_that_differs_is_found() -> None:
    assert pattern(["a ... c"]).fullmatch("a b c\n")
    assert pattern(["...", "c"]).fullmatch("a\nb\nc\n")
    assert not pattern(["a ... c"]).fullmatch("a b d\n")
    assert not pattern(["a"]).fullmatch("a\nb\n")


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    text = PAGE.read_text()
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {**os.environ, "PATH": programs(tmp_path / "bin")}
    files = commands = start = 0
    for block in BLOCK.finditer(text):
        paragraph = text[start : block.start()].rstrip().rsplit("\n\n", 1)[-1].replace("\n", " ")
        start = block.end()
        language, content = block.groups()
        if language == "python":
            (folder / paragraph.split("Save this as `")[1].split("`")[0]).write_text(content)
            files += 1
        elif language == "console":
            command, *expected = content.removeprefix("$ ").splitlines()
            if command.startswith("truetick ") and not PROGRAM:
                continue
            ran = subprocess.run(command.split(), cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
            assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
            assert pattern(expected).fullmatch(ran.stdout), f"{command} prints\n{ran.stdout}"
            commands += 1
        else:
            assert "The test of this page does not run" in paragraph, paragraph
    assert (files, commands) == (4, 5 if PROGRAM else 4)
    assert (folder / "candles.png").stat().st_size > 1000
