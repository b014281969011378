"""PodDisruptionBudgets with conditions, responses of the API server, and differences between its versions.

The version facts have the names used in ``kpreempt/schedulers/kube/versions.py``; the defaults are those of 1.36.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.model.meta import Time
from kpreempt.model.policy import PodDisruptionBudget

ALLOWED_CONDITION = "DisruptionAllowed"
TOO_MANY_REQUESTS = 429
CREATED = 201


class EvictionRules(NamedTuple):
    """Differences between versions in how the API server handles evictions."""

    eviction_rejections_have_reason: bool = True
    forbidden_evictions_have_reason: bool = False
    eviction_rejects_unreadable_store_option: bool = True
    clamps_grace_end: bool = True


DEFAULT_RULES = EvictionRules()


class BudgetCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A condition of a budget's status. ``message_one_of`` are the possible messages if it is random."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: Time | None = None
    message_one_of: tuple[str, ...] = ()


class StoredBudget(msgspec.Struct, frozen=True):
    """A budget as the API server stores it; the model has no conditions, because schedulers do not read them."""

    budget: PodDisruptionBudget
    conditions: tuple[BudgetCondition, ...] = ()

    @property
    def allowed_condition(self) -> BudgetCondition | None:
        """The condition that says whether disruptions are allowed."""
        return next((each for each in self.conditions if each.type == ALLOWED_CONDITION), None)


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was rejected; ``reason`` is its type, as in the API."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object of a rejection. ``retry_after_seconds`` is the delay that the client should wait."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Answer(msgspec.Struct, frozen=True):
    """A response of the API server; reason and details are empty if it gives none."""

    status: int = CREATED
    reason: str = ""
    message: str = ""
    details: Details | None = None


ACCEPTED = Answer()


class EvictionRejectedError(Exception):
    """Raised when the API server rejects a request; never shown to a user."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


def with_condition(
    conditions: tuple[BudgetCondition, ...], new: BudgetCondition, now: datetime | None
) -> tuple[BudgetCondition, ...]:
    """Set a condition; its transition time changes if its status does."""
    for place, old in enumerate(conditions):
        if old.type == new.type:
            since = old.last_transition_time if old.status == new.status else now
            changed = msgspec.structs.replace(new, last_transition_time=since)
            return (*conditions[:place], changed, *conditions[place + 1 :])
    return (*conditions, msgspec.structs.replace(new, last_transition_time=now))
