"""What becomes of a pod, in one word."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What becomes of the pod."""

    LANDS = "Lands"
    PREEMPTS = "Preempts"
    PREEMPTS_VIOLATING_BUDGETS = "PreemptsViolatingBudgets"
    NEVER_LANDS = "NeverLands"
    NOT_SCHEDULED = "NotScheduled"
    UNCERTAIN = "Uncertain"
