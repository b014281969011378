"""Asks the real scheduler anew for every recorded verdict: ``python -m tests.parity.record [--check] [NAME...]``.

Rewrites ``expect`` in ``fixtures/conformance/kube-1.36/*.jsonl.gz`` and in ``fixtures/parity/*.json``, and notes the
version that answered. What means the same stays as it is: the order of some lists depends on the order of a map in the
real scheduler. Exit code 1 where ``--check`` finds that something would change, 2 where the reference cannot be built.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance.cases import FIXTURES
from tests.conformance.comparison import disagreements
from tests.parity.differences import KEYS
from tests.parity.kept import FOLDER, MORE_KEYS
from tests.parity.reference import Answer, Genuine, Scenario, UnavailableError, program, version_of

Ask = Callable[[Scenario], Answer]


def recorded(scenario: Scenario, ask: Ask, version: str, keys: tuple[str, ...]) -> Scenario:
    """The scenario with what the real scheduler answers now."""
    asked = {key: value for key, value in scenario.items() if key not in ("expect", "recordedFrom")}
    answer = ask(asked)
    if "error" in answer:
        expect: dict[str, Any] = {"error": answer["error"]}
    else:
        expect = {key: value for key, value in answer["verdict"].items() if key in keys}
    before = scenario["expect"]
    if not disagreements(before, expect) and not disagreements(expect, before):
        expect = before
    return {**asked, "recordedFrom": f"kube-scheduler {version}", "expect": expect}


def suite_text(path: Path, ask: Ask, version: str) -> str:
    """A suite of JSON lines, recorded anew."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return "".join(
        json.dumps(recorded(json.loads(line), ask, version, KEYS), separators=(",", ":")) + "\n" for line in lines
    )


def kept_text(path: Path, ask: Ask, version: str) -> str:
    """One kept scenario, recorded anew."""
    scenario = recorded(json.loads(path.read_text(encoding="utf-8")), ask, version, (*KEYS, *MORE_KEYS))
    return json.dumps(scenario, indent=1) + "\n"


def main() -> int:
    """Record what is asked for, and say which files changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="suites or kept scenarios (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where something would change")
    asked = parser.parse_args()
    try:
        reference = program("reference")
    except UnavailableError as reason:
        sys.stderr.write(f"record: {reason}\n")
        return 2
    paths = [*sorted(FIXTURES.glob("*.jsonl.gz")), *sorted(FOLDER.glob("*.json"))]
    changed = []
    with Genuine(reference) as genuine:
        version = version_of(reference)
        for path in paths:
            if asked.names and path.name.partition(".")[0] not in asked.names:
                continue
            is_suite = path.suffix == ".gz"
            text = (suite_text if is_suite else kept_text)(path, genuine.answer, version)
            before = gzip.decompress(path.read_bytes()).decode() if is_suite else path.read_text(encoding="utf-8")
            if text != before:
                changed.append(path)
                if not asked.check:
                    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0) if is_suite else text.encode())
    sys.stdout.write("".join(f"{path.name} changed\n" for path in changed) or "nothing changed\n")
    return 1 if changed and asked.check else 0


if __name__ == "__main__":
    sys.exit(main())
