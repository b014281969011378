"""What a scheduler decided as a recording shows it, held against what was predicted from just before."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption


class DecisionKind(StrEnum):
    """What a scheduler did with a pod: it bound it, nominated it to a node, or refused it with a message."""

    BOUND = "Bound"
    NOMINATED = "Nominated"
    REFUSED = "Refused"


# What stands in a redacted recording for the rest of a message.
REDACTED = "[redacted"


class TakenDecision(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One decision, as the API server told of it ``at`` a time; ``pod`` is ``namespace/name``.

    ``node`` is that of the binding or nomination, ``victims`` are the pods that were evicted for it, and ``message``
    is the condition's.
    """

    decision: DecisionKind
    pod: str
    at: datetime
    node: str = ""
    victims: list[str] = []
    message: str = ""


class Cause(StrEnum):
    """Why a decision is another than was predicted from the state just before it, as far as can be told.

    ``Race``: it is the one predicted from a state a moment earlier, or with a pod more or less that was on its way to
    its node; ``changes`` are what lies between. ``Order``: an order that nobody has seen decides. ``NotModelled``:
    something that the prediction assumes. ``Configuration``: it fits there, and scores say another node, as those of
    another configuration or plugin may. ``Version``: that of another version is the one. ``Unknown``: none of these,
    and perhaps a defect of kpreempt.
    """

    RACE = "Race"
    ORDER = "Order"
    NOT_MODELLED = "NotModelled"
    CONFIGURATION = "Configuration"
    VERSION = "Version"
    UNKNOWN = "Unknown"


class DecisionDifference(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A decision that is another than was predicted from just before.

    ``differences`` are lines with what was decided and what was predicted. ``why`` has the words of the cause,
    ``changes`` those of a race. ``file`` is a line for ``kpreempt batch`` that predicts it anew, under other names.
    """

    decision: TakenDecision
    differences: list[str]
    cause: Cause
    why: str = ""
    changes: list[str] = []
    file: str = ""


class DecisionCounts(Record, frozen=True, kw_only=True):
    """How many decisions of one kind were predicted, raced, are different, and could not be compared."""

    decision: DecisionKind
    predicted: int = 0
    raced: int = 0
    different: int = 0
    not_compared: int = 0


class PreemptionCounts(Record, frozen=True, kw_only=True):
    """How often pods of a namespace and priority class had others evicted, and how many pods had to go for them.

    ``violating_budgets`` are the preemptions that violate a budget, as far as they were predicted.
    """

    namespace: str
    priority_class: str
    preemptions: int = 0
    victims: int = 0
    violating_budgets: int = 0


class Verification(Record, frozen=True, kw_only=True):
    """The decisions of a recording, held against predictions.

    The ``score`` is the share, in percent, of decisions that were predicted among those predicted or different; races
    and what could not be compared count for neither, and it is ``None`` where nothing is left. ``items`` are all
    decisions that differ from the prediction from just before, races among them. ``not_compared`` says why how many
    could not be compared.
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
