"""The same question put to several clusters: each answer under the name of its context."""

from __future__ import annotations

from kpreempt.verdict.base import Record
from kpreempt.verdict.budgets import BudgetAudit
from kpreempt.verdict.pending import PendingPods
from kpreempt.verdict.records import API_VERSION


class PendingPodsOfContext(Record, frozen=True, kw_only=True):
    """What is pending in the cluster of a context, or why that is not known (``error``)."""

    context: str
    answer: PendingPods | None = None
    error: str = ""


class PendingPodsOfContexts(Record, frozen=True, kw_only=True):
    """What is pending in several clusters, in the order in which they were asked for."""

    api_version: str = API_VERSION
    kind: str = "PendingPodsOfContexts"
    items: list[PendingPodsOfContext] = []


class BudgetAuditOfContext(Record, frozen=True, kw_only=True):
    """The budgets of the cluster of a context, or why they are not known (``error``)."""

    context: str
    answer: BudgetAudit | None = None
    error: str = ""


class BudgetAuditOfContexts(Record, frozen=True, kw_only=True):
    """The budgets of several clusters, in the order in which they were asked for."""

    api_version: str = API_VERSION
    kind: str = "BudgetAuditOfContexts"
    items: list[BudgetAuditOfContext] = []
