# ruff: noqa: E501 - texts read better in one piece
"""The objects of a change, from files, folders and a stream, each with its place."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kpreempt.cli.check_run import read_change
from kpreempt.errors import InputError

STREAM = "---\n# Source: shop/templates/a.yaml\nkind: A\n---\n# Source: shop/templates/b.yaml\nkind: List\nitems:\n- kind: B\n- kind: C\n"


def test_files_folders_and_a_stream_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder" / "more").mkdir(parents=True)
    (tmp_path / "one.yaml").write_text("apiVersion: v1\nkind: One\n")
    (tmp_path / "folder" / "b.json").write_text('{"apiVersion": "v1", "kind": "Two"}')
    (tmp_path / "folder" / "more" / "c.yaml").write_text(
        "apiVersion: v1\nkind: Three\n---\napiVersion: v1\nkind: Four\n"
    )
    (tmp_path / "folder" / "README.md").write_text("nothing here\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(STREAM.encode())))
    found = read_change([str(tmp_path / "one.yaml"), "-", str(tmp_path / "folder")])
    assert [(each.document["kind"], Path(each.source).name, each.line, each.origin) for each in found] == [
        ("One", "one.yaml", 1, ""),
        ("A", "standard input", 3, "shop/templates/a.yaml"),
        ("B", "standard input", 8, "shop/templates/b.yaml"),
        ("C", "standard input", 9, "shop/templates/b.yaml"),
        ("Two", "b.json", 1, ""),
        ("Three", "c.yaml", 1, ""),
        ("Four", "c.yaml", 4, ""),
    ]


def test_a_chart_that_was_not_rendered_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: A\nmetadata:\n  name: {{ .Release.Name }}-a\n")
    with pytest.raises(InputError, match="is a template that has not been rendered"):
        read_change([str(tmp_path)])
