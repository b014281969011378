"""The Python of docs/library.md runs, one block after the other, and prints what the page says."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "library.md"
_BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL)


def test_the_page_runs_and_prints_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    blocks = list(_BLOCK.finditer(PAGE.read_text(encoding="utf-8")))
    assert len(blocks) >= 5
    for block in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(block["code"], str(PAGE), "exec"), names)
        assert printed.getvalue() == (block["output"] or ""), block["code"]
