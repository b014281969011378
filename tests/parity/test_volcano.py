"""Sessions are equal to those of the real Volcano scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import read_lines
from tests.parity.reference import CHECKOUT, Reference
from tests.parity.volcano import kept_sessions
from tests.parity.volcano_answers import volcano_answer
from tests.parity.volcano_differences import volcano_differences
from tests.parity.volcano_reference import volcano_program_for_tests
from tests.parity.volcano_search import volcano_search

RECORDED = [
    CHECKOUT / "fixtures" / "conformance" / "volcano-1.8" / f"{name}.jsonl.gz" for name in ("generated", "upstream")
]
SESSION_SEEDS = (1, 2)


@pytest.fixture(scope="session")
def program() -> Path:
    """The path of the program with real sessions; the test is skipped if it cannot be built."""
    return volcano_program_for_tests()


@pytest.fixture
def real(program: Path) -> Iterator[Reference]:
    """The running program."""
    running = Reference(program)
    yield running
    running.close()


@pytest.mark.go
@pytest.mark.parametrize("seed", SESSION_SEEDS)
def test_random_sessions_match_the_real_scheduler(real: Reference, seed: int) -> None:
    found = volcano_search(real.ask, 150, seed)
    assert found.difference is None, found.difference
    assert found.outcomes["evicts"] > 10
    assert found.outcomes["binds"] > 10


@pytest.mark.go
def test_random_sessions_end_the_same_every_time(real: Reference, program: Path) -> None:
    other = Reference(program)
    try:
        found = volcano_search(real.ask, 150, 3, without=frozenset(), answer=other.ask)
    finally:
        other.close()
    assert found.difference is None, found.difference


@pytest.mark.go
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_sessions_match_the_real_scheduler(real: Reference, path: Path) -> None:
    for scenario in read_lines(path):
        expect: dict[str, Any] = scenario["expect"]
        given = real.ask({key: value for key, value in scenario.items() if key != "expect"})
        if "error" in expect:
            assert given["error"]["message"] == expect["error"]
        elif expect["panics"]:
            assert given["verdict"]["panics"]
        else:
            verdict = given["verdict"]
            final = {key: verdict["final"][key] for key in expect["final"]}
            assert volcano_differences({"verdict": expect}, {"verdict": verdict | {"final": final}}) == []


@pytest.mark.go
def test_devices_switched_on_in_one_session_are_off_in_the_next(real: Reference) -> None:
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "resources": {"limits": {"volcano.sh/gpu-memory": "1"}}}],
        },
        "status": {"phase": "Pending"},
    }
    group = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1}}
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "9", "volcano.sh/gpu-memory": "1"}
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
    plain = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: predicates\n'
    switched = plain + "    arguments:\n      predicate.GPUSharingEnable: true\n"
    scenario = {"name": "s", "objects": [node, group, pod], "conf": plain}
    before = real.ask(scenario)
    assert real.ask(scenario | {"conf": switched}) != before
    assert real.ask(scenario) == before


@pytest.mark.parametrize("scenario", list(kept_sessions()), ids=lambda scenario: scenario["name"])
def test_a_kept_session_matches_the_real_scheduler(scenario: dict[str, Any]) -> None:
    assert volcano_differences(scenario["expect"], volcano_answer(scenario)) == []
