"""Run ``explain``, ``pending`` and ``batch`` on one input, passed in every possible way."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kpreempt.cli import process
from tests.batch_lines import as_document

Object = dict[str, Any]

NOW = ("--now", "2026-11-21T03:12:00Z")


class Evicted(NamedTuple):
    """A victim, as far as all commands report it."""

    pod: str
    priority: int
    grace_seconds: int


class Answer(NamedTuple):
    """The result for a pod that all commands report; victims on every node it may get."""

    outcome: str
    priority: int
    requests: dict[str, int]
    message: str
    victims: list[Evicted]


def ask_all_ways(objects: Sequence[Object], directory: Path) -> dict[str, Answer]:
    """The results for the pod ``new``, by the way in which the input was passed."""
    answers = {way: _answer_of(_requested(objects, way, directory)) for way in _WAYS if way != "pending"}
    return {**answers, "pending": _answer_of_item(_requested(objects, "pending", directory)["items"])}


def assumptions_of(objects: Sequence[Object], way: str, directory: Path) -> list[Object]:
    """The assumptions of one of the results."""
    found: list[Object] = _requested(objects, way, directory).get("assumptions", [])
    return found


def write_list(directory: Path, name: str, objects: Sequence[Object]) -> str:
    """Write a file of these objects, and return its path."""
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


_WAYS = ("explain", "--with", "pending", "batch", "batch over a snapshot")
# The meaning of a batch line.
_AS_RECORDED = ("--algorithm", "kube-1.36")


def _requested(objects: Sequence[Object], way: str, directory: Path) -> Any:
    subject = next(each for each in objects if each["metadata"]["name"] == "new")
    others = [each for each in objects if each is not subject]
    nodes = [each for each in objects if each["kind"] == "Node"]
    rest = [each for each in objects if each["kind"] != "Node"]
    if way == "batch":
        return as_document(_run("batch", stdin=_line(others, subject))["verdict"])
    if way == "batch over a snapshot":
        laid_over = [each for each in rest if each is not subject]
        base = write_list(directory, "base", nodes)
        return as_document(_run("batch", "--snapshot", base, stdin=_line(laid_over, subject))["verdict"])
    if way == "--with":
        bare, more = write_list(directory, "bare", nodes), write_list(directory, "rest", rest)
        return _run("explain", *_AS_RECORDED, "pod/new", "--snapshot", bare, "--with", more, "-o", "json")
    whole = write_list(directory, "whole", objects)
    if way == "pending":
        return _run("pending", *_AS_RECORDED, "--snapshot", whole, "-o", "json")
    return _run("explain", *_AS_RECORDED, "pod/new", "--snapshot", whole, "-o", "json")


def _line(objects: Sequence[Object], subject: Object) -> str:
    return json.dumps({"name": "x", "objects": list(objects), "pod": subject, "queued": True}) + "\n"


def _run(*arguments: str, stdin: str = "") -> Any:
    before = sys.stdin, sys.stdout
    written = io.TextIOWrapper(io.BytesIO(), write_through=True)
    sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(stdin.encode())), written
    try:
        code = process.run([*arguments, *NOW])
    finally:
        sys.stdin, sys.stdout = before
    text = written.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert code == 0, f"{arguments}: {code}: {text}"
    return json.loads(text)


def _answer_of(verdict: Object) -> Answer:
    nodes, pod = verdict.get("nominatedNodes", []), verdict["pod"]
    return Answer(
        verdict["outcome"],
        pod.get("priority", 0),
        pod.get("requests", {}),
        verdict.get("message", ""),
        _victims({node: verdict["victims"][node] for node in nodes}),
    )


def _answer_of_item(items: Sequence[Object]) -> Answer:
    item = next(each for each in items if each["pod"].endswith("/new"))
    return Answer(
        item["outcome"],
        item.get("priority", 0),
        item.get("requests", {}),
        item.get("message", ""),
        _victims(item.get("victims", {})),
    )


def _victims(by_node: dict[str, list[Object]]) -> list[Evicted]:
    return [
        Evicted(each["pod"], each["priority"], each["gracePeriodSeconds"])
        for node in sorted(by_node)
        for each in by_node[node]
    ]
