"""All replicas of a workload on a page: what becomes of each, on which nodes, the victims, and violated budgets."""

from __future__ import annotations

from kpreempt.report.html.markup import TABLE_LIMIT, Html, message, name, names, table, tag
from kpreempt.report.html.page import Part
from kpreempt.verdict import Outcome
from kpreempt.verdict.workload import BudgetViolations, Pending, Replica, ReplicasOnNode, Workload

_NAMES_SHOWN = 5
_WORDS: dict[Outcome, tuple[str, str]] = {
    Outcome.LANDS: ("lands", "good"),
    Outcome.PREEMPTS: ("preempts", "warn"),
    Outcome.PREEMPTS_VIOLATING_BUDGETS: ("preempts", "bad"),
    Outcome.NEVER_LANDS: ("pending", "bad"),
    Outcome.NOT_SCHEDULED: ("not scheduled", "warn"),
    Outcome.UNCERTAIN: ("uncertain", "warn"),
}


def workload_parts(workload: Workload, *, knows_budgets: bool) -> list[Part]:
    """The replicas, their nodes, why some are pending, the victims, and the budgets; none where there is nothing.

    Of a victim ``knows_budgets`` says whether it is known which budgets there are.
    """
    return [
        Part("replicas", "Replicas", "Replicas", _replicas(workload)),
        Part("by-node", "By node", "Replicas by node", _nodes(workload)),
        Part("pending", "Pending", "Why replicas stay pending", _pending(workload)),
        Part("evicted", "Evicted", "Pods that are evicted", _victims(workload, knows_budgets)),
        Part("violated", "Budgets", "Budgets that are violated", _budgets(workload)),
    ]


def _replicas(workload: Workload) -> Html:
    if not workload.items:
        return Html("")
    columns = ("Replica", "Outcome", "Node", "Evicts")
    return table(
        "One after the other, the victims of one gone before the next is tried",
        columns,
        _replica,
        workload.items,
        limit=TABLE_LIMIT,
        what="replicas",
    )


def _replica(each: Replica) -> list[str]:
    words, tone = _WORDS[each.outcome]
    others = [node for node in each.ties if node != each.node]
    where = name(each.node) if each.node else Html("-")
    if others:
        where += Html(" or ") + names(others, limit=_NAMES_SHOWN)
    return [name(each.pod), tag("span", words, class_=tone), where, names(each.victims, limit=_NAMES_SHOWN) or "-"]


def _nodes(workload: Workload) -> Html:
    if not workload.nodes:
        return Html("")

    def row(each: ReplicasOnNode) -> list[str]:
        return [name(each.node), f"{each.replicas:,}", f"{each.evictions:,}"]

    columns = ("Node", "Replicas", "Evictions")
    return table("Where they end", columns, row, workload.nodes, limit=TABLE_LIMIT, what="nodes")


def _pending(workload: Workload) -> Html:
    if not workload.pending:
        return Html("")

    def row(each: Pending) -> list[str]:
        return [f"{each.replicas:,}", message(each.message)]

    return table("By message", ("Replicas", "Message"), row, workload.pending, limit=TABLE_LIMIT, what="messages")


def _victims(workload: Workload, knows_budgets: bool) -> Html:
    victims = [(victim, each) for each in workload.items for victim in each.victims]
    if not victims:
        return Html("")

    def row(item: tuple[str, Replica]) -> list[str]:
        victim, each = item
        spared = "none violated" if knows_budgets else "not known"
        budget = tag("span", "violated", class_="bad") if victim in each.violating else spared
        return [name(victim), name(each.node), name(each.pod), budget]

    columns = ("Pod", "Node", "For", "Budget")
    return table("In the order in which they go", columns, row, victims, limit=TABLE_LIMIT, what="pods")


def _budgets(workload: Workload) -> Html:
    if not workload.budgets:
        return Html("")

    def row(each: BudgetViolations) -> list[str]:
        return [name(each.budget), f"{each.allowed:,}", f"{each.violations:,}"]

    columns = ("Budget", "Allowed disruptions before", "Violations")
    return table("By all evictions together", columns, row, workload.budgets, limit=TABLE_LIMIT, what="budgets")
