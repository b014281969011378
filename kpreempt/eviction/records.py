"""Budgets with their conditions, what the API server answers, and the facts that differ between its versions.

The facts have the names that ``kpreempt/schedulers/kube/versions.py`` gives them; the defaults are those of 1.36.
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
    """What the API server of one version does otherwise with evictions than that of another."""

    eviction_refusals_tell_why: bool = True
    eviction_forbidden_tells_why: bool = False
    eviction_refuses_unreadable_store_option: bool = True
    grace_never_ends_in_the_past: bool = True


USUAL = EvictionRules()


class BudgetCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A condition of a budget's status. ``message_one_of`` are the messages that chance chooses from, if it does."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: Time | None = None
    message_one_of: tuple[str, ...] = ()


class StoredBudget(msgspec.Struct, frozen=True):
    """A budget as the API server keeps it; schedulers read no conditions, so that the model has none."""

    budget: PodDisruptionBudget
    conditions: tuple[BudgetCondition, ...] = ()

    @property
    def allowed_condition(self) -> BudgetCondition | None:
        """The condition that says whether a pod may go."""
        return next((each for each in self.conditions if each.type == ALLOWED_CONDITION), None)


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was refused; ``reason`` is its type, as on the wire."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a refusal is about. ``retry_after_seconds`` is what the client is told to wait."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Answer(msgspec.Struct, frozen=True):
    """An answer of the API server; without a reason and details where it gives none."""

    status: int = CREATED
    reason: str = ""
    message: str = ""
    details: Details | None = None


ACCEPTED = Answer()


class RefusalError(Exception):
    """Raised where the API server refuses; never reaches a user."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


def with_condition(
    conditions: tuple[BudgetCondition, ...], new: BudgetCondition, now: datetime | None
) -> tuple[BudgetCondition, ...]:
    """The conditions with ``new`` in its place; the time moves where the status does."""
    for place, old in enumerate(conditions):
        if old.type == new.type:
            since = old.last_transition_time if old.status == new.status else now
            changed = msgspec.structs.replace(new, last_transition_time=since)
            return (*conditions[:place], changed, *conditions[place + 1 :])
    return (*conditions, msgspec.structs.replace(new, last_transition_time=now))
