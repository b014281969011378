"""Our controllers take the same next actions as the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from tests.parity.controllers_search import DRAWS, controller_search
from tests.parity.reference import Reference, program_for_tests

NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
# Outcomes that must occur, so that the states are useful.
OUTCOMES = {
    "ReplicaSet": ["deletes of 2 pods", "deletes of 6 pods"],
    "Deployment": ["RollingUpdate", "Recreate", "paused"],
    "StatefulSet": ["creates", "scale-down", "finished", "update"],
    "DaemonSet": ["manages", "updates"],
    "Job": ["CreatePods", "DeletePod+ReleasePod", "Failed+DeletePod+ReleasePod"],
    "PodDisruptionBudget": ["maxUnavailable", "minAvailable", "fails"],
}
# The results of controllers that never act.
IDLE: dict[str, dict[str, Any]] = {
    "ReplicaSet": {"deleted": []},
    "Deployment": {"written": []},
    "StatefulSet": {"actions": [], "status": {}},
    "DaemonSet": {"created": [], "deleted": [], "isUpdate": True},
    "Job": {"created": [], "deleted": [], "released": [], "status": {}, "after": []},
    "PodDisruptionBudget": {},
}


@pytest.fixture(scope="module")
def real() -> Iterator[Reference]:
    """The running program with the real controllers."""
    running = Reference(program_for_tests("controllers"))
    yield running
    running.close()


@pytest.mark.go
@pytest.mark.parametrize("controller", DRAWS)
def test_a_controller_takes_the_same_actions_as_the_real_one(real: Reference, controller: str) -> None:
    found = controller_search(real.ask, controller, 400, 11)
    assert found.differences == []
    assert {outcome for outcome in OUTCOMES[controller] if not found.outcomes[outcome]} == set()


@pytest.mark.go
@pytest.mark.parametrize("controller", DRAWS)
def test_the_real_controller_is_deterministic(real: Reference, controller: str) -> None:
    # If the order of Go maps decides, as in a DaemonSet's update, the compared parts must be equal all the same.
    for number in range(50):
        state = DRAWS[controller](Random(number), datetime.now(UTC).replace(microsecond=0))
        first, second = (state.compared(real.ask(state.request)) for _ in range(2))
        assert first == second


@pytest.mark.parametrize("controller", DRAWS)
def test_a_controller_that_never_acts_is_detected(controller: str) -> None:
    found = controller_search(lambda _: {"answer": IDLE[controller]}, controller, 50, 1)
    assert found.differences


@pytest.mark.parametrize("controller", DRAWS)
def test_a_controller_that_always_fails_is_detected(controller: str) -> None:
    found = controller_search(lambda _: {"error": "no"}, controller, 50, 1)
    assert found.differences


@pytest.mark.parametrize("controller", DRAWS)
def test_a_seed_draws_the_same_states_every_time(controller: str) -> None:
    requests = [[DRAWS[controller](random, NOW).request for _ in range(20)] for random in (Random(5), Random(5))]
    assert requests[0] == requests[1]
