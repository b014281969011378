"""Answers from several clusters, each under the name of its context."""

from __future__ import annotations

from kpreempt.verdict.base import Record
from kpreempt.verdict.budgets import BudgetAudit
from kpreempt.verdict.pending import PendingPods
from kpreempt.verdict.records import API_VERSION


class PendingPodsOfContext(Record, frozen=True, kw_only=True):
    """The pending pods in a context's cluster, or the reason why they are unknown (``error``)."""

    context: str
    answer: PendingPods | None = None
    error: str = ""


class PendingPodsOfContexts(Record, frozen=True, kw_only=True):
    """The pending pods of several clusters, in the requested order."""

    api_version: str = API_VERSION
    kind: str = "PendingPodsOfContexts"
    items: list[PendingPodsOfContext] = []


class BudgetAuditOfContext(Record, frozen=True, kw_only=True):
    """The budgets in a context's cluster, or the reason why they are unknown (``error``)."""

    context: str
    answer: BudgetAudit | None = None
    error: str = ""


class BudgetAuditOfContexts(Record, frozen=True, kw_only=True):
    """The budgets of several clusters, in the requested order."""

    api_version: str = API_VERSION
    kind: str = "BudgetAuditOfContexts"
    items: list[BudgetAuditOfContext] = []
