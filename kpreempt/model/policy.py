"""PodDisruptionBudgets and PriorityClasses."""

from __future__ import annotations

from typing import Literal

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import Keyed, ObjectMeta
from kpreempt.model.pod import Int32

# So many may select a pod. The eviction API refuses a pod already that two select.
MAX_SELECTING = 100


class PodDisruptionBudgetSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which pods a budget protects, and how many of them must stay or may go (a number or a percentage).

    ``unhealthy_pod_eviction_policy`` is for the eviction API only: whether pods that are not ready may always go.
    """

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the disruption controller last computed. ``disrupted_pods`` are names of pods it counts as gone already."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = NO_ENTRIES
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A budget. ``status`` is ``None`` where it comes from a manifest that no controller has seen."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus | None = None

    @property
    def allowed(self) -> int:
        """How many disruptions it allows now; none without a status."""
        return self.status.disruptions_allowed if self.status else 0


def check_selecting(pod: str, budgets: int) -> None:
    """Raise ``InputError`` where so many budgets select the pod ``namespace/name`` as nobody has in earnest."""
    if budgets > MAX_SELECTING:
        raise InputError(f"more than {MAX_SELECTING} PodDisruptionBudgets select it", object_name=f"Pod {pod}")


class PriorityClass(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A named priority, and whether pods of it may preempt."""

    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
