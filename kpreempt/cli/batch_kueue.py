"""Lines of a batch for Kueue: the cycles of its scheduler on the objects of a line."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from kpreempt.analysis.kueue.objects import KUEUE_WANTED, assumed_of, assumed_of_chance, kueue_objects
from kpreempt.cli.scenarios import Scenario
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import Time
from kpreempt.schedulers.kueue import KueueConfiguration, run_cycles
from kpreempt.snapshot import decode_document
from kpreempt.verdict import Assumption

__all__ = ["KUEUE_WANTED", "KueueScenario", "answer_cycles"]

_MOST_CYCLES = 10_000
_ALL = "all"


class KueueScenario(Scenario, frozen=True, rename="camel"):
    """So many cycles at most, with all Workloads that wait, or with one, by its key.

    ``config`` is what of the manager's configuration decides; ``now`` is when the first cycle begins.
    """

    now: Time | None = None
    cycles: Annotated[int, msgspec.Meta(ge=1, le=_MOST_CYCLES)] = 1
    workload: str = _ALL
    config: KueueConfiguration = KueueConfiguration()  # type: ignore[assignment]


def answer_cycles(
    scenario: KueueScenario, cluster: ClusterSnapshot, assumptions: list[Assumption], source: str, now: datetime
) -> dict[str, Any]:
    """The cycles, with what was assumed. Raises ``InputError``."""
    objects = kueue_objects(cluster, decode_document, source=source)
    only = () if scenario.workload == _ALL else (scenario.workload,)
    found = run_cycles(objects, scenario.config, now=scenario.now or now, cycles=scenario.cycles, only=only)
    assumptions = [
        *assumptions,
        *assumed_of(objects, scenario.config),
        *assumed_of_chance(found),
    ]
    return {
        "cycles": found.cycles,
        "outcomes": 1 + len(found.others),
        "otherOutcomes": found.others,
        "assumptions": msgspec.to_builtins(assumptions),
    }
