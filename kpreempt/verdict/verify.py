"""The decisions of a scheduler in a recording, compared with predictions from the state just before each."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption


class DecisionKind(StrEnum):
    """What a scheduler did with a pod: bound it, nominated it to a node, or marked it unschedulable with a message."""

    BOUND = "Bound"
    NOMINATED = "Nominated"
    UNSCHEDULABLE = "Unschedulable"


# Replaces the rest of a message in a redacted recording.
REDACTED = "[redacted"


class TakenDecision(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One decision as reported by the API server; ``at`` is its time, and ``pod`` is ``namespace/name``.

    ``node`` is that of the binding or nomination, ``victims`` are the pods that were evicted for it, and ``message`` is
    the condition's. ``already_evicted`` are victims that an earlier preemption had evicted; each pod is in ``victims``
    of one decision. ``message`` is empty if a pod preempts again on its nominated node and its status does not change.
    """

    decision: DecisionKind
    pod: str
    at: datetime
    node: str = ""
    victims: list[str] = []
    already_evicted: list[str] = []
    message: str = ""

    @property
    def selected(self) -> list[str]:
        """All victims that the scheduler selected, as far as events show them."""
        return sorted([*self.victims, *self.already_evicted])


class Cause(StrEnum):
    """Why a decision differs from its prediction, as far as is known.

    ``Race``: the decision matches the prediction from a slightly earlier state, or from a state that includes or
    excludes a pod that was being bound; ``changes`` lists what happened in between. ``Order``: the decision depends on
    an order that cannot be observed. ``Unmodeled``: one of the prediction's assumptions may explain the decision.
    ``Configuration``: the pod fits on that node, but the predicted scores select another, as for many other pods of its
    scheduler; a different configuration or plugin could explain it. ``Version``: the decision matches another version's
    prediction. ``Unknown``: no other cause applies; the difference may be a bug in kpreempt, and ``explanation`` is
    what is known about it.
    """

    RACE = "Race"
    ORDER = "Order"
    UNMODELED = "Unmodeled"
    CONFIGURATION = "Configuration"
    VERSION = "Version"
    UNKNOWN = "Unknown"


class DecisionDifference(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A decision that differs from the prediction, which is based on the state just before the decision.

    ``differences`` are lines with the decision and the prediction. ``explanation`` describes the cause, ``changes``
    those of a race. ``file`` is a line for ``kpreempt batch`` that repeats the prediction under other names.
    """

    decision: TakenDecision
    differences: list[str]
    cause: Cause
    explanation: str = ""
    changes: list[str] = []
    file: str = ""


class DecisionCounts(Record, frozen=True, kw_only=True):
    """The numbers of decisions of one kind that were predicted, explained by a race, different, or not compared."""

    decision: DecisionKind
    predicted: int = 0
    raced: int = 0
    different: int = 0
    not_compared: int = 0


class PreemptionCounts(Record, frozen=True, kw_only=True):
    """The preemptions by pods of a namespace and priority class, and the number of pods evicted for them.

    ``violating_budgets`` are the preemptions predicted to violate a budget.
    """

    namespace: str
    priority_class: str
    preemptions: int = 0
    victims: int = 0
    violating_budgets: int = 0


class Verification(Record, frozen=True, kw_only=True):
    """The decisions of a recording, compared with predictions.

    The ``score`` is the percentage of decisions that were predicted among those predicted or different; races and
    decisions that could not be compared don't count, and it is ``None`` if nothing is left. ``items`` are all decisions
    that differ from the prediction, including races. ``not_compared`` counts the decisions that could not be compared,
    by reason.
    """

    api_version: str = API_VERSION
    kind: str = "Verification"
    begins: datetime
    ends: datetime
    algorithms: list[str] = []
    score: float | None = None
    decisions: list[DecisionCounts] = []
    preemptions: list[PreemptionCounts] = []
    items: list[DecisionDifference] = []
    not_compared: dict[str, int] = {}
    assumptions: list[Assumption] = []
