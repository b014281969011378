"""What becomes of a pod, in one word."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What becomes of the pod. ``NeverLands`` is said of this moment: it fits nowhere, and evictions do not help."""

    LANDS = "Lands"
    PREEMPTS = "Preempts"
    PREEMPTS_VIOLATING_BUDGETS = "PreemptsViolatingBudgets"
    NEVER_LANDS = "NeverLands"
    NOT_SCHEDULED = "NotScheduled"
    UNCERTAIN = "Uncertain"
