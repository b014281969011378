"""Scenarios on which kpreempt and the real scheduler once differed, with the real one's result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.parity.differences import KEYS
from tests.parity.reference import CHECKOUT

FOLDER = CHECKOUT / "fixtures" / "parity"
# Parts of the reference's verdict other than the compared keys.
MORE_KEYS = ("preEnqueue", "nominatedNodeFits")


def keep(scenario: dict[str, Any], real: dict[str, Any], version: str, folder: Path = FOLDER) -> Path:
    """Write the scenario, named after its content, with the result of the scheduler of that version."""
    scenario = {key: value for key, value in scenario.items() if key not in ("name", "expect", "recordedFrom")}
    if "error" in real:
        expect = {"error": real["error"]}
    else:
        expect = {key: value for key, value in real["verdict"].items() if key in (*KEYS, *MORE_KEYS)}
    return write(scenario, expect, f"kube-scheduler {version}", folder)


def write(scenario: dict[str, Any], expect: dict[str, Any], origin: str, folder: Path) -> Path:
    """Write a scenario with the result of ``origin``, to a file named after the scenario's content."""
    name = hashlib.sha256(json.dumps(scenario, sort_keys=True).encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    kept = {"name": name, **scenario, "recordedFrom": origin, "expect": expect}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return path


def kept_scenarios(folder: Path = FOLDER) -> Iterator[dict[str, Any]]:
    """All kept scenarios, by name."""
    for path in sorted(folder.glob("*.json")):
        scenario: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        yield scenario


def expected_answer(scenario: dict[str, Any]) -> dict[str, Any]:
    """The real scheduler's result for a kept scenario."""
    expect = scenario["expect"]
    return expect if "error" in expect else {"verdict": expect}
