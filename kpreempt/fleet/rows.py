"""The rows of a sweep: the columns of each table, and how answers become rows.

Each query of a cluster and an algorithm has rows in ``verdicts`` or in ``failures``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kpreempt.errors import KpreemptError
from kpreempt.verdict.records import Assumption, AssumptionKind
from kpreempt.verdict.status import Outcome

if TYPE_CHECKING:
    from kpreempt.verdict import Verdict
    from kpreempt.verdict.budgets import BudgetAudit
    from kpreempt.verdict.check import Check
    from kpreempt.verdict.pending import PendingPods
    from kpreempt.verdict.records import Alternatives, Victim
    from kpreempt.verdict.workload import Totals

# Changes with any column.
SCHEMA_VERSION = 1

TEXT, NUMBER, FLAG, TEXTS = "text", "number", "flag", "texts"


class Column(NamedTuple):
    """A column: its name, type, and description."""

    name: str
    type: str
    meaning: str


_KEY = (
    Column("cluster", TEXT, "the cluster's name in this sweep"),
    Column("query", TEXT, "the query's ID, with the value used from each list in the query"),
    Column("algorithm", TEXT, "the scheduler as requested in the plan"),
)
_POD = Column("pod", TEXT, "`namespace/name` of the pod")
TABLES: Mapping[str, tuple[Column, ...]] = {
    "verdicts": (
        *_KEY,
        Column("kind", TEXT, "the kind of query"),
        Column("item", NUMBER, "the row's index in the answer, counted from 0"),
        Column("pod", TEXT, "`namespace/name` of the pod; empty if the answer is not about a single pod"),
        Column("priority", NUMBER, "the pod's priority"),
        Column("decided_by", TEXT, "the scheduler that decided, such as `kube-1.36`"),
        Column(
            "outcome",
            TEXT,
            "the outcome as in `explain`, or `NothingPending` if no pod is pending; for `budgets`, the worst severity "
            "or `ok`; for `check` and `drain`, `error` if the gate fails, `warning` if it passes with findings, "
            "or `ok`",
        ),
        Column("worst_outcome", TEXT, "the worst possible outcome, over all replicas and all orders of tied pods"),
        Column("certain", FLAG, "true if neither chance nor missing information can change the outcome or the victims"),
        Column("victims", NUMBER, "the maximum number of evicted pods"),
        Column("violations", NUMBER, "the maximum number of evictions that violate a budget"),
        Column("replicas", NUMBER, "the number of requested pods"),
        Column(
            "placed",
            NUMBER,
            "the number of requested pods that get a node, including pods that wait for their victims to terminate",
        ),
        Column("capacity", NUMBER, "the minimum number of additional pods that fit, if requested"),
        Column("message", TEXT, "the scheduler's message, or why the pod waits"),
    ),
    "victims": (
        *_KEY,
        _POD,
        Column("node", TEXT, "the node from which the victim is evicted"),
        Column("victim", TEXT, "`namespace/name` of the evicted pod"),
        Column("priority", NUMBER, "the victim's priority; null if it is evicted only in another order of tied pods"),
        Column("owner", TEXT, "the victim's owner, such as `ReplicaSet api`"),
        Column("violates_budget", FLAG, "whether the victim's eviction violates a budget; null if unknown"),
        Column("certain", FLAG, "whether the victim is evicted in every possible outcome"),
    ),
    "budgets": (
        *_KEY,
        Column("pod", TEXT, "the pod whose victims the budget protects; empty in an audit"),
        Column("node", TEXT, "the node from which the victims are evicted; empty in an audit"),
        Column("budget", TEXT, "`namespace/name` of the PodDisruptionBudget"),
        Column("allowed", NUMBER, "the number of disruptions that the budget allows before the evictions"),
        Column(
            "remaining",
            NUMBER,
            "the number of disruptions that the budget allows after the evictions; negative if it is violated",
        ),
        Column("severity", TEXT, "in an audit, the worst severity of the budget's findings, or `ok`"),
        Column("findings", TEXTS, "in an audit, the IDs of the budget's findings"),
    ),
    "nodes": (
        *_KEY,
        _POD,
        Column("node", TEXT, "a node on which the pod may land"),
        Column("role", TEXT, "`lands`, or `nominated` if victims are evicted first"),
        Column("victims", NUMBER, "the number of pods evicted from the node"),
    ),
    "assumptions": (
        *_KEY,
        _POD,
        Column("subject", TEXT, "the object that the assumption is about"),
        Column("field", TEXT, "the field of the object that the assumption is about"),
        Column("message", TEXT, "what is not evaluated, and how it could change the answer"),
        Column("kind", TEXT, "`Unmodeled`, `Unreadable`, `Skipped`, `Uncertain`, `NotCompared` or `Informational`"),
    ),
    "failures": (
        *_KEY,
        Column("reason", TEXT, "`Input`, `Usage`, `NotFound`, `TooBig`, `Killed`, `Memory` or `Bug`"),
        Column("message", TEXT, "the problem, its location and the field, in one line"),
        Column("hint", TEXT, "a one-line remedy"),
    ),
    "clusters": (
        _KEY[0],
        Column("source", TEXT, "the path, the URL without secrets, or `context NAME`"),
        Column("version", TEXT, "the cluster's Kubernetes version; empty if unknown"),
        Column("taken_at", TEXT, "the time of the snapshot, in RFC 3339 format"),
        Column("nodes", NUMBER, "the number of nodes"),
        Column("pods", NUMBER, "the number of pods"),
        Column("unpacked_bytes", NUMBER, "the decompressed size of the snapshot; null for a live cluster"),
    ),
}
# From best to worst.
BY_SEVERITY = (
    Outcome.LANDS,
    Outcome.PREEMPTS,
    Outcome.PREEMPTS_VIOLATING_BUDGETS,
    Outcome.UNCERTAIN,
    Outcome.WAITS_FOR_VICTIMS,
    Outcome.UNSCHEDULABLE,
    Outcome.NOT_SCHEDULED,
    Outcome.REJECTED,
)
Row = tuple[Any, ...]
Tables = dict[str, list[Row]]


def no_rows() -> Tables:
    """Return all tables, empty."""
    return {name: [] for name in TABLES}


class Rows:
    """Collects the rows of one query against one cluster and algorithm."""

    def __init__(self, cluster: str, query: str, algorithm: str) -> None:
        self.tables = no_rows()
        self._key = (cluster, query, algorithm)
        self._items = 0

    def add(self, table: str, **values: Any) -> None:
        """Add a row; missing values are null."""
        columns = TABLES[table][len(self._key) :]
        unknown = values.keys() - {each.name for each in columns}
        assert not unknown, unknown
        self.tables[table].append((*self._key, *(values.get(each.name) for each in columns)))

    def verdict(self, **values: Any) -> None:
        """Add a numbered row to ``verdicts``."""
        self.add("verdicts", item=self._items, **values)
        self._items += 1

    def assume(self, pod: str, assumptions: Iterable[Assumption]) -> None:
        """Add the assumptions of an answer."""
        for each in dict.fromkeys(assumptions):
            self.add(
                "assumptions", pod=pod, subject=each.subject, field=each.field, message=each.message, kind=each.kind
            )

    def fail(self, error: Exception) -> None:
        """Replace the rows with a failure."""
        self.add("failures", **reason_of(error))


def failure(cluster: str, reason: str, message: str, hint: str = "") -> Row:
    """Return the row of a cluster that answers nothing."""
    return (cluster, "", "", reason, message, hint)


def reason_of(error: Exception) -> dict[str, str]:
    """Describe why there is no answer: reason, message and hint. For a bug, only where it happened, no input data."""
    if isinstance(error, KpreemptError):
        kind = type(error).__name__.removesuffix("Error")
        reason = kind if kind in ("Usage", "NotFound") else "Input"
        return {"reason": reason, "message": error.message, "hint": error.hint}
    if isinstance(error, MemoryError):
        return {"reason": "Memory", "message": "not enough memory for this cluster", "hint": ""}
    import traceback

    frames = [each for each in traceback.extract_tb(error.__traceback__) if "kpreempt" in each.filename]
    where = [f"kpreempt{each.filename.rpartition('kpreempt')[2]}:{each.lineno}" for each in frames[-1:]]
    return {
        "reason": "Bug",
        "message": " at ".join([type(error).__name__, *where]),
        "hint": "please report this bug in kpreempt",
    }


def is_reliable(assumptions: Iterable[Assumption]) -> bool:
    """Return whether there are no assumptions that could change an answer."""
    return all(each.kind is AssumptionKind.INFORMATIONAL or each.lists_files for each in assumptions)


def add_verdicts(rows: Rows, kind: str, verdicts: Sequence[Verdict]) -> None:
    """Add the answers of ``explain``."""
    for each in verdicts:
        pod = f"{each.pod.namespace}/{each.pod.name}"
        workload, stakes, outcomes = each.workload, each.pods_at_stake, each.possible_outcomes
        totals = [] if workload is None else [workload.totals, *workload.others]
        is_certain = (
            not _depends_on_chance(each) and is_reliable(each.assumptions) and each.outcome != Outcome.UNCERTAIN
        )
        rows.verdict(
            kind=kind,
            pod=pod,
            priority=each.pod.priority,
            decided_by=each.algorithm,
            outcome=each.outcome,
            worst_outcome=max([each.worst_outcome, *map(_outcome_of, totals)], key=BY_SEVERITY.index),
            certain=is_certain,
            victims=max([*(one.num_victims for one in outcomes), *(one.evictions for one in totals)], default=0),
            violations=max(
                [*(one.num_pdb_violations for one in outcomes), *(one.violations for one in totals)], default=0
            ),
            replicas=None if workload is None else workload.replicas,
            placed=None if workload is None else min(one.lands + one.preempts for one in totals),
            capacity=None if each.capacity is None else each.capacity.pods,
            message=each.message or each.error or each.reason,
        )
        _add_victims(rows, pod, each.victims, stakes, each.surely_evicts)
        for replica in workload.items[1:] if workload is not None else ():
            for victim in replica.victims:
                rows.add(
                    "victims",
                    pod=replica.pod,
                    node=replica.node,
                    victim=victim,
                    owner="",
                    violates_budget=victim in replica.violating,
                    certain=is_certain,
                )
        for node in each.lands_on:
            rows.add("nodes", pod=pod, node=node, role="lands", victims=0)
        for node in dict.fromkeys([*each.nominated_nodes, *stakes]):
            most = max((one.num_victims for one in outcomes if one.node == node), default=0)
            rows.add("nodes", pod=pod, node=node, role="nominated", victims=most)
        rows.assume(pod, each.assumptions)


def _depends_on_chance(verdict: Verdict) -> bool:
    """Return whether ties or randomness decide more than which of several equal nodes is chosen."""
    workload, capacity = verdict.workload, verdict.capacity
    return bool(
        verdict.alternatives
        or verdict.odds
        or verdict.volume_choices
        or len(verdict.nominated_nodes) > 1
        or (verdict.sampling is not None and verdict.outcome != Outcome.LANDS)
        or (workload is not None and (workload.others or workload.ties or workload.totals.uncertain))
        or (capacity is not None and capacity.is_by_choice)
    )


def _outcome_of(totals: Totals) -> Outcome:
    """Return the worst outcome of a replica."""
    if totals.pending or totals.rejected:
        return Outcome.UNSCHEDULABLE
    if totals.uncertain:
        return Outcome.UNCERTAIN
    if totals.violations:
        return Outcome.PREEMPTS_VIOLATING_BUDGETS
    return Outcome.PREEMPTS if totals.preempts else Outcome.LANDS


def add_pending(rows: Rows, kind: str, answer: PendingPods) -> None:
    """Add the answer of ``pending``; if no pod is pending, a single row reports that."""
    has_certain_input = is_reliable(answer.assumptions)
    for each in answer.items:
        others = each.alternatives.outcomes if each.alternatives else []
        may_violate = any(one.num_pdb_violations for one in others)
        rows.verdict(
            kind=kind,
            pod=each.pod,
            priority=each.priority,
            decided_by=answer.algorithm,
            outcome=each.outcome,
            worst_outcome="PreemptsViolatingBudgets" if may_violate and each.outcome == "Preempts" else each.outcome,
            certain=has_certain_input and not others and len(each.victims) < 2 and each.outcome != "Uncertain",
            victims=max([*map(len, each.victims.values()), *(one.num_victims for one in others)], default=0),
            violations=max([each.num_pdb_violations, *(one.num_pdb_violations for one in others)]),
            message=each.message or each.reason,
        )
        _add_victims(rows, each.pod, each.victims, *_stakes(each.victims, each.alternatives))
        for node in each.nodes:
            goes = len(each.victims.get(node, ()))
            rows.add("nodes", pod=each.pod, node=node, role="nominated" if each.victims else "lands", victims=goes)
    if not answer.items:
        rows.verdict(
            kind=kind,
            pod="",
            decided_by=answer.algorithm,
            outcome="NothingPending",
            worst_outcome="NothingPending",
            certain=has_certain_input,
            victims=0,
            violations=0,
            message="",
        )
    rows.assume("", answer.assumptions)


def add_budgets(rows: Rows, kind: str, answer: BudgetAudit) -> None:
    """Add the answer of ``budgets``: a row with the worst finding, and one for each budget."""
    from kpreempt.verdict.budgets import Severity

    def worst(severities: Iterable[Severity]) -> str:
        return min(severities, key=lambda each: each.rank, default="ok")

    breaches = [one for item in answer.items for one in item.violations]
    outcome = worst(each.severity for each in answer.findings)
    rows.verdict(
        kind=kind,
        pod="",
        decided_by=answer.algorithm,
        outcome=outcome,
        worst_outcome=outcome,
        certain=is_reliable(answer.assumptions) and all(each.is_certain for each in breaches),
        victims=max((len(each.victims) for each in breaches), default=0),
        violations=max((-each.remaining for each in breaches if each.remaining < 0), default=0),
        message="",
    )
    for item in answer.items:
        rows.add(
            "budgets",
            pod="",
            node="",
            budget=item.budget,
            allowed=item.disruptions_allowed,
            remaining=min((each.remaining for each in item.violations), default=item.disruptions_allowed),
            severity=worst(each.severity for each in item.findings),
            findings=list(dict.fromkeys(str(each.id) for each in item.findings)),
        )
    rows.assume("", answer.assumptions)


def add_gate(rows: Rows, kind: str, answer: Check) -> None:
    """Add the answer of ``check`` or ``drain``: whether rules are violated, the victims, and the budgets."""
    is_certain = answer.explored_all and is_reliable(answer.assumptions) and answer.failing_runs in (0, answer.runs)
    outcome = ("warning" if answer.findings else "ok") if answer.passed else "error"
    displaced = answer.simulation.displaced
    rows.verdict(
        kind=kind,
        pod="",
        decided_by=answer.algorithm,
        outcome=outcome,
        worst_outcome=outcome,
        certain=is_certain,
        victims=answer.evictions.max,
        violations=sum(bool(each.violated) for each in displaced),
        message=answer.summary,
    )
    for each in displaced:
        rows.add(
            "victims",
            pod="" if each.drained else each.cause,
            node=each.node,
            victim=each.pod,
            priority=each.priority,
            owner=each.owner,
            violates_budget=bool(each.violated),
            certain=is_certain,
        )
    for low in answer.simulation.budgets:
        rows.add(
            "budgets",
            pod="",
            node="",
            budget=low.budget,
            allowed=low.before,
            remaining=low.min,
        )
    rows.assume("", answer.assumptions)


def _stakes(victims: Mapping[str, Sequence[Victim]], alternatives: Alternatives | None) -> tuple[Any, Any]:
    """Return all pods that may be evicted by node, and a function that returns whether a pod certainly is."""
    outcomes = alternatives.outcomes if alternatives else []
    stakes: dict[str, list[str]] = {node: [each.pod for each in listed] for node, listed in victims.items()}
    for each in outcomes:
        stakes[each.node] = list(dict.fromkeys([*stakes.get(each.node, ()), *each.pods]))
    is_complete = alternatives is None or (alternatives.exact and not alternatives.omitted)
    sets = [set(each.victims) for each in outcomes] or [{each.pod for each in listed} for listed in victims.values()]
    return stakes, lambda pod: is_complete and all(pod in each for each in sets)


def _add_victims(
    rows: Rows, pod: str, victims: Mapping[str, Sequence[Victim]], stakes: Mapping[str, Sequence[str]], surely: Any
) -> None:
    for node in dict.fromkeys([*victims, *stakes]):
        known = {each.pod: each for each in victims.get(node, ())}
        least: dict[str, tuple[int, int]] = {}
        for name in dict.fromkeys([*known, *stakes.get(node, ())]):
            each = known.get(name)
            rows.add(
                "victims",
                pod=pod,
                node=node,
                victim=name,
                priority=None if each is None else each.priority,
                owner="" if each is None else each.owner,
                violates_budget=None if each is None else any(use.remaining < 0 for use in each.budgets),
                certain=surely(name),
            )
            for use in each.budgets if each is not None else ():
                before = least.get(use.budget, (use.allowed, use.remaining))
                least[use.budget] = (max(before[0], use.allowed), min(before[1], use.remaining))
        for budget, (allowed, left) in least.items():
            rows.add("budgets", pod=pod, node=node, budget=budget, allowed=allowed, remaining=left)
