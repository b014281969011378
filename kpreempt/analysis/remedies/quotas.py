"""Raises a ResourceQuota by what its rejection of a pod says is missing."""

from __future__ import annotations

import re
from typing import Any

from kpreempt.analysis.remedies.search import Candidate
from kpreempt.errors import KpreemptError
from kpreempt.model.quantity import quantity
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, RemedyStage

EXCEEDED = re.compile(r"exceeded quota: (?P<quota>.*?), requested: (.*), used: (.*), limited: (.*)")
_WITH_UNITS = ("cpu", "memory", "ephemeral-storage")


def larger_quota(name: str, message: str, pods: int, manager: str = "") -> Candidate | None:
    """The quota (``ResourceQuota shop/team``) with enough for ``pods`` pods like the rejected one.

    ``message`` is that of the rejection; ``None`` if it does not give amounts.
    """
    match = EXCEEDED.search(message)
    if match is None:
        return None
    requested, used, limited = (_listed(each) for each in match.groups()[1:])
    hard: dict[str, str] = {}
    changes = []
    for resource, limit in limited.items():
        short = resource.rpartition(".")[2]
        more, there = (amount_of(each.get(resource), short) for each in (requested, used))
        if more is not None and there is not None:
            needed = more * pods + there
            hard[resource] = amount_text(short, needed) if short in _WITH_UNITS else str(needed)
            field, before = f"spec.hard.{resource}", amount_of(limit, short)
            changes.append(
                Change(ChangeKind.SET, subject=name, field=field, value=hard[resource], before=before, after=needed)
            )
    edits = [ObjectEdit(name, {"spec": {"hard": hard}})]
    return Candidate(stage=RemedyStage.LIMIT, changes=changes, edits=edits, manager=manager)


def amount_of(value: Any, resource: str) -> int | None:
    """An amount in milli-CPU, bytes or units; ``None`` if it cannot be parsed."""
    try:
        nano = quantity(str(value)).nano
    except (KpreemptError, ValueError):
        return None
    return int(nano // (10**6 if resource == "cpu" else 10**9))


def amount_text(resource: str, amount: int) -> str:
    """An amount in milli-CPU or bytes, as in a manifest."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    return f"{amount // 2**20}Mi" if amount >= 2**20 else str(amount)


def _listed(text: str) -> dict[str, str]:
    return dict(each.split("=", 1) for each in text.split(",") if "=" in each)
