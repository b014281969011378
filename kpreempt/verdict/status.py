"""The status of a plugin or an extension point, and the outcome of a pod."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.details import Detail

# The continuation of a message of an attempt that evicts, in versions that report it (``reports_preemption``): the node
# that is picked follows, and the number of victims (``Preempt``, ``framework/preemption/preemption.go``).
FOUND_PLACEMENT = "found a potential placement for pod on node "


class Code(StrEnum):
    """Status codes of the scheduling framework (``k8s.io/kube-scheduler`` v0.36.3 ``framework/interface.go``).

    ``NONE`` is for the schedulers of 1.8 and 1.13, which have no codes.
    """

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"
    NONE = ""


class Status(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A plugin's result with its reasons, the name of the plugin, and details."""

    code: Code
    reasons: list[str] = []
    plugin: str = ""
    detail: Detail | None = None

    @property
    def is_success(self) -> bool:
        """Whether the code is Success or, without codes, whether there is no reason."""
        return self.code == Code.SUCCESS or (self.code == Code.NONE and not self.reasons)

    @property
    def is_skip(self) -> bool:
        return self.code == Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """Whether the pod was rejected, as opposed to an error."""
        if self.code == Code.NONE:
            return bool(self.reasons)
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    @property
    def message(self) -> str:
        """All reasons, as upstream joins them."""
        return ", ".join(self.reasons)

    def of_plugin(self, plugin: str) -> Status:
        """Return the same status, attributed to ``plugin``."""
        return self if self.plugin == plugin else msgspec.structs.replace(self, plugin=plugin)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def is_permanent(status: Status) -> bool:
    """Whether the node rejects the pod whatever runs there, because of its size or labels."""
    return status.detail is not None and status.detail.is_permanent


class Outcome(StrEnum):
    """The outcome of a pod.

    ``Unschedulable``: the pod fits on no node now, and evictions don't help. ``WaitsForVictims``: the pod fits on no
    node until the victims of its earlier preemption, on its nominated node, have terminated. ``Rejected``: the API
    server rejects the pod's manifest, so the pod never exists.
    """

    LANDS = "Lands"
    PREEMPTS = "Preempts"
    PREEMPTS_VIOLATING_BUDGETS = "PreemptsViolatingBudgets"
    UNSCHEDULABLE = "Unschedulable"
    WAITS_FOR_VICTIMS = "WaitsForVictims"
    NOT_SCHEDULED = "NotScheduled"
    UNCERTAIN = "Uncertain"
    REJECTED = "Rejected"

    @property
    def stays_pending(self) -> bool:
        """Whether the scheduler has tried the pod, and neither places nor nominates it now."""
        return self in (Outcome.UNSCHEDULABLE, Outcome.WAITS_FOR_VICTIMS)

    @property
    def preempts(self) -> bool:
        """Whether the scheduler nominates the pod and evicts others for it."""
        return self in (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)

    @property
    def finds_node(self) -> bool:
        """Whether the scheduler places or nominates the pod now."""
        return self is Outcome.LANDS or self.preempts
