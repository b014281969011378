"""Draw states of workloads until our controllers' next actions differ from the real ones'."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from tests.parity.controllers_budgets import draw_budget
from tests.parity.controllers_daemon_sets import draw_daemon_set
from tests.parity.controllers_deployments import draw_deployment
from tests.parity.controllers_jobs import draw_job
from tests.parity.controllers_replica_sets import draw_replica_set
from tests.parity.controllers_stateful_sets import draw_stateful_set
from tests.parity.controllers_states import Compared, Draw, Object
from tests.parity.search import Ask

DRAWS: dict[str, Draw] = {
    "ReplicaSet": draw_replica_set,
    "Deployment": draw_deployment,
    "StatefulSet": draw_stateful_set,
    "DaemonSet": draw_daemon_set,
    "Job": draw_job,
    "PodDisruptionBudget": draw_budget,
}


@dataclass
class ControllerSearch:
    """The result of drawing ``examples`` states of one controller: the outcomes, and the states that differ."""

    controller: str
    examples: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[Object, Compared]] = field(default_factory=list)


def controller_search(ask: Ask, controller: str, examples: int, seed: int) -> ControllerSearch:
    """Run ``examples`` states from the seed through the real controller and ours.

    The states lie around the present, since the real ReplicaSet controller reads the clock; otherwise they are the same
    every time.
    """
    # A text as seed, so that controllers do not share a sequence.
    random = Random(f"{controller} {seed}")
    found = ControllerSearch(controller)
    for _ in range(examples):
        state = DRAWS[controller](random, datetime.now(UTC).replace(microsecond=0))
        compared = state.compared(ask(state.request))
        found.examples += 1
        found.outcomes[compared.outcome] += 1
        if compared.real != compared.ours:
            found.differences.append((state.request, compared))
    return found
