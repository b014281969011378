"""Record every verdict of the real scheduler again: ``python -m tests.parity.record [--check] [NAME...]``.

Rewrites ``expect`` in ``fixtures/conformance/kube-1.36/*.jsonl.gz`` and in ``fixtures/parity/*.json``, with the version
that was used. Equivalent results stay as they are: the order of some lists depends on the order of a map in the real
scheduler. Exit code 1 if ``--check`` finds that something would change, 2 if the reference cannot be built.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kpreempt.scheduler_table import DEFAULT_ALGORITHM, DEFAULT_VERSION
from kpreempt.schedulers.kube.versions import minor_of
from kpreempt.schedulers.kube.versions import version_of as version_of_algorithm
from tests.conformance.cases import FIXTURES
from tests.conformance.comparison import disagreements
from tests.parity.differences import KEYS
from tests.parity.kept import FOLDER, MORE_KEYS
from tests.parity.reference import Answer, Genuine, Scenario, UnavailableError, program, version_of

Ask = Callable[[Scenario], Answer]


def recorded(scenario: Scenario, ask: Ask, version: str, keys: tuple[str, ...]) -> Scenario:
    """The scenario with the real scheduler's current result."""
    request = {key: value for key, value in scenario.items() if key not in ("expect", "recordedFrom")}
    answer = ask(request)
    if "error" in answer:
        expect: dict[str, Any] = {"error": answer["error"]}
    else:
        expect = {key: value for key, value in answer["verdict"].items() if key in keys}
    before = scenario["expect"]
    if not disagreements(before, expect) and not disagreements(expect, before):
        expect = before
    return {**request, "recordedFrom": f"kube-scheduler {version}", "expect": expect}


def suite_text(path: Path, ask: Ask, version: str) -> str:
    """A suite of JSON lines, recorded again."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return "".join(
        json.dumps(recorded(json.loads(line), ask, version, KEYS), separators=(",", ":")) + "\n" for line in lines
    )


def kept_text(path: Path, ask: Ask, version: str) -> str:
    """A kept scenario, recorded again."""
    scenario = recorded(json.loads(path.read_text(encoding="utf-8")), ask, version, (*KEYS, *MORE_KEYS))
    return json.dumps(scenario, indent=1) + "\n"


def requested_version(path: Path) -> str:
    """The minor version of the scheduler for a suite or a kept scenario."""
    algorithm = DEFAULT_ALGORITHM if path.suffix == ".gz" else json.loads(path.read_text()).get("algorithm")
    return minor_of(version_of_algorithm(algorithm or DEFAULT_ALGORITHM) or DEFAULT_VERSION)


def _record(paths: list[Path], reference: Path, *, is_check: bool) -> list[Path]:
    """Run one version of the scheduler, and return the files that changed."""
    changed = []
    with Genuine(reference) as real:
        version = version_of(reference)
        for path in paths:
            is_suite = path.suffix == ".gz"
            text = (suite_text if is_suite else kept_text)(path, real.answer, version)
            before = gzip.decompress(path.read_bytes()).decode() if is_suite else path.read_text(encoding="utf-8")
            if text != before:
                changed.append(path)
                if not is_check:
                    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0) if is_suite else text.encode())
    return changed


def main() -> int:
    """Record the selected files, and print which files changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="suites or kept scenarios (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where something would change")
    options = parser.parse_args()
    paths = [*sorted(FIXTURES.glob("*.jsonl.gz")), *sorted(FOLDER.glob("*.json"))]
    wanted = [path for path in paths if not options.names or path.name.partition(".")[0] in options.names]
    by_version: dict[str, list[Path]] = {}
    for path in wanted:
        by_version.setdefault(requested_version(path), []).append(path)
    changed = []
    try:
        for version, of_version in by_version.items():
            changed += _record(of_version, program("reference", version), is_check=options.check)
    except UnavailableError as reason:
        sys.stderr.write(f"record: {reason}\n")
        return 2
    sys.stdout.write("".join(f"{path.name} changed\n" for path in changed) or "nothing changed\n")
    return 1 if changed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
