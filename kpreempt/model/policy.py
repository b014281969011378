"""PodDisruptionBudgets and PriorityClasses."""

from __future__ import annotations

from typing import Literal

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import Keyed, ObjectMeta
from kpreempt.model.pod import Int32

# The maximum number of budgets that may select a pod. The eviction API rejects pods selected by two or more.
MAX_SELECTING = 100


class PodDisruptionBudgetSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The pods that a budget protects, and how many must stay or may be disrupted (a number or a percentage).

    ``unhealthy_pod_eviction_policy`` only affects the eviction API: whether pods that are not ready may always be
    evicted.
    """

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last status from the disruption controller.

    ``disrupted_pods`` has names of pods that it already counts as gone.
    """

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = NO_ENTRIES
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A budget. ``status`` is ``None`` for a manifest that no controller has seen."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus | None = None

    @property
    def allowed(self) -> int:
        """The number of disruptions allowed now; 0 without a status."""
        return self.status.disruptions_allowed if self.status else 0


def check_selecting(pod: str, budgets: int) -> None:
    """Raise ``InputError`` if an unrealistic number of budgets selects the pod ``namespace/name``."""
    if budgets > MAX_SELECTING:
        raise InputError(f"more than {MAX_SELECTING} PodDisruptionBudgets select it", object_name=f"Pod {pod}")


class PriorityClass(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A named priority, and whether its pods may preempt."""

    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
