# ruff: noqa: E501 - texts read better in one piece
"""The objects of a change, from files, folders and a stream, each with its place."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kpreempt.cli.check import read_change
from kpreempt.errors import InputError
from kpreempt.snapshot.archives import InputLimits

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
    found = read_change([str(tmp_path / "one.yaml"), "-", str(tmp_path / "folder")], InputLimits())
    assert [(each.document["kind"], Path(each.source).name, each.line, each.origin) for each in found] == [
        ("One", "one.yaml", 1, ""),
        ("A", "standard input", 3, "shop/templates/a.yaml"),
        ("B", "standard input", 8, "shop/templates/b.yaml"),
        ("C", "standard input", 9, "shop/templates/b.yaml"),
        ("Two", "b.json", 1, ""),
        ("Three", "c.yaml", 1, ""),
        ("Four", "c.yaml", 4, ""),
    ]


def test_of_a_folder_only_what_kubectl_reads_is_read(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml", "c.json", "d.yaml.bak", "e.txt", "f.tpl", "values.yaml.orig", "Makefile"):
        text = "{" if name not in ("a.yaml", "b.yml", "c.json") else '{"apiVersion": "v1", "kind": "Of' + name[0] + '"}'
        (tmp_path / name).write_text(text)
    input_limits = InputLimits()
    assert [each.document["kind"] for each in read_change([str(tmp_path)], input_limits)] == ["Ofa", "Ofb", "Ofc"]
    assert [Path(each).name for each in input_limits.skipped.not_read] == [
        *("Makefile", "d.yaml.bak", "e.txt", "f.tpl", "values.yaml.orig")
    ]


def test_a_file_that_is_named_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "change.txt").write_text("apiVersion: v1\nkind: One\n")
    assert [each.document["kind"] for each in read_change([str(tmp_path / "change.txt")], InputLimits())] == ["One"]


def test_a_folder_with_nothing_that_is_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "change.txt").write_text("apiVersion: v1\nkind: One\n")
    with pytest.raises(InputError, match="contains no objects"):
        read_change([str(tmp_path)], InputLimits())


def test_a_chart_that_was_not_rendered_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: A\nmetadata:\n  name: {{ .Release.Name }}-a\n")
    with pytest.raises(InputError, match="is a template that was not rendered"):
        read_change([str(tmp_path)], InputLimits())
