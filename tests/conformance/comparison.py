"""Compare verdicts with recorded expectations, individually or as ``kpreempt batch`` prints them.

Every key of the expectation must be in the verdict with an equal value. Nothing, null, and an empty list, object or
string are equal. The order of some lists does not matter, and in ``filter`` and ``dryRun`` the nodes must be complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kpreempt.cli import process

UNORDERED = {
    "candidates",
    "chosenNodes",
    "feasibleNodes",
    "nominatedNodes",
    "nominationsToClear",
    "potentialNodes",
    "reasons",
}
COMPLETE = ("filter", "dryRun")


def disagreements(expected: dict[str, Any], verdict: dict[str, Any]) -> list[str]:
    """Return the differences, one line each."""
    return list(_differences(_plain(expected), _plain(verdict), ""))


def batch_answers(scenarios: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Return the output of ``kpreempt batch`` for recorded scenarios, in order; ``folder`` holds its files."""
    given, answered = folder / "in.jsonl", folder / "out.jsonl"
    texts = (json.dumps({key: value for key, value in each.items() if key != "expect"}) for each in scenarios)
    given.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    process.run(["batch", str(given), "-o", f"jsonl={answered}"])
    answers = [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
    assert [answer["name"] for answer in answers] == [each["name"] for each in scenarios]
    return answers


def disagreeing(scenarios: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the differences by scenario name; scenarios recorded with an error are omitted."""
    found = {
        each["name"]: disagreements(each["expect"], answer.get("verdict", {}))
        for each, answer in zip(scenarios, answers, strict=True)
        if "error" not in each["expect"]
    }
    return {name: lines for name, lines in found.items() if lines}


def _plain(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        items = {name: _plain(item, name) for name, item in value.items()}
        return {name: item for name, item in items.items() if item not in (None, [], {}, "")}
    if isinstance(value, list):
        items_in_order = [_plain(item, key) for item in value]
        if key in UNORDERED:
            return sorted(items_in_order, key=_without_evidence)
        return items_in_order
    return value


def _without_evidence(item: Any) -> str:
    if isinstance(item, dict):
        item = {name: value for name, value in item.items() if name in ("node", "victims", "numPDBViolations")}
    return json.dumps(item, sort_keys=True)


def _differences(want: Any, got: Any, path: str) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key, value in want.items():
            yield from _differences(value, got.get(key), f"{path}.{key}")
        if path.rsplit(".", maxsplit=1)[-1] in COMPLETE:
            yield from (f"{path}.{key}: unexpected" for key in sorted(got.keys() - want.keys()))
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for index, (one, other) in enumerate(zip(want, got, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif want != got:
        yield f"{path}: want {want!r}, got {got!r}"
