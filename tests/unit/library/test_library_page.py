"""The Python of docs/library.md runs and prints what the page says; that of docs/library.ipynb shows its answers."""

from __future__ import annotations

import ast
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "docs" / "library.ipynb"
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


def test_the_notebook_runs_and_shows_the_page_of_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the notebook is, as Jupyter runs it; it is kept without what machines and moments differ in."""
    monkeypatch.chdir(NOTEBOOK.parent)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], len({each["id"] for each in notebook["cells"]})) == (4, len(notebook["cells"]))
    names: dict[str, Any] = {}
    shown = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            shown[cell["id"]] = value_of("".join(cell["source"]), names)
    assert repr(shown["load"]).startswith("<Cluster v1.36.3")
    assert shown["explain"]._repr_html_().startswith("<iframe srcdoc=")
    assert set(shown["nodes"].values()) == {True}
    assert all(shown["table"].values())
    assert not shown["check"].passed
    assert "max-victims" in shown["check"]._repr_html_()


def value_of(code: str, names: dict[str, Any]) -> Any:
    """Run a cell, and give what its last line comes to, which a notebook shows."""
    parsed = ast.parse(code)
    last = parsed.body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(parsed, str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
