"""Check a change: simulate it and evaluate the rules of a gate on what happens.

A drain's result is built from the same parts, such as the utilization of nodes before and after. A result can also be
compared with a previous one, possibly of another version: what is worse, better or new since then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import Scheduler, has_queue, pending_pods
from kpreempt.analysis.check.deadlocks import budgets_of, deadlocks_in, pods_on_broken_nodes, stalled_sets
from kpreempt.analysis.check.gate import (
    EvaluatedRun,
    Facts,
    GateRules,
    PodFacts,
    StaticFinding,
    Suppressions,
    aggregate,
    decode_json,
    evaluate,
    passes,
)
from kpreempt.analysis.check.headroom import placeholders
from kpreempt.analysis.check.protection import ProtectionRules
from kpreempt.analysis.check.rollout.records import Plan
from kpreempt.analysis.check.simulations import (
    Rollouts,
    Simulated,
    SimulationContext,
    Simulations,
    SomeSimulated,
    severity_key,
    share_of,
    shares,
)
from kpreempt.analysis.check.static_findings import check_manifests, of_autoscalers, of_rejected_pods, removals
from kpreempt.analysis.check.unread import unread_except_workloads, unread_policies, unread_quotas
from kpreempt.analysis.check.without_change import WithoutChange
from kpreempt.analysis.check.without_nodes import without_simulation
from kpreempt.analysis.explain.pods import summed_up
from kpreempt.analysis.hypothetical_pods import RequestsOfMany
from kpreempt.analysis.nodes.copies import allocatable_of
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.simulation.claims import claims_of_pod
from kpreempt.analysis.simulation.cluster import Workloads
from kpreempt.errors import InputError
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import ClusterSnapshot, cannot_simulate
from kpreempt.model.documents import mapping_in
from kpreempt.model.meta import grouped
from kpreempt.model.pod import Pod
from kpreempt.scheduler_table import VOLCANO
from kpreempt.verdict import API_VERSION, Assumption, AssumptionKind
from kpreempt.verdict.check import (
    Change,
    ChangeKind,
    Check,
    Drift,
    DriftKind,
    FindingStatus,
    GateFinding,
    NodeUtilization,
    PreviousRun,
    Range,
)
from kpreempt.verdict.headroom import headroom_used, without_headroom
from kpreempt.verdict.records import SETTING_UNMODELED
from kpreempt.verdict.unread import unread_of, unreadable_of

_PODS = "pods"


class CheckInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a check: the plan of the change, and the rules.

    ``base`` is the plan of the old manifests (by default, there are none): findings that occur with it do not count.
    ``runs`` is the number of
    random simulations from ``seed`` on (``None``: as many as needed); ``worst_of`` instead simulates every possible
    choice, up to that many runs. ``assumptions`` are those of the input, ``is_live`` means that the cluster was just
    read, and ``apis`` are the API versions of the change's objects. ``largest_plan`` is the plan in which autoscaled
    workloads of the change have their maximum replicas. If it ``knows_base``, the suppressions have the findings
    without the change.
    """

    cluster: ClusterSnapshot
    plan: Plan
    rules: GateRules
    suppressions: Suppressions
    base: Plan | None = None
    seed: int = 0
    runs: int | None = None
    worst_of: int = 0
    assumptions: Sequence[Assumption] = ()
    is_live: bool = False
    apis: Mapping[str, str] = {}
    largest_plan: Plan | None = None
    knows_base: bool = False


class CheckedRollout(NamedTuple):
    """A check with its simulations, and what suppresses findings, including those of the base."""

    check: Check
    plan: Plan
    simulated: Sequence[Simulated]
    suppressions: Suppressions


def check_rollout(check_input: CheckInput, decode: Decode, context: SimulationContext) -> CheckedRollout:
    """Simulate the change and evaluate the rules.

    Raises ``InputError`` and ``NotFoundError`` for objects that the API server would reject.
    """
    scheduler = context.scheduler

    def simulations(plan: Plan) -> Simulations[Simulated]:
        run = Rollouts(plan, decode, context)
        specs = (mapping_in(each.after, "spec") for each in plan.workloads if each.after is not None)
        replicas = sum(size for spec in specs if isinstance(size := spec.get("replicas"), int))
        return Simulations(run, context, decisions=replicas * len(plan.cluster.nodes), cluster=plan.cluster)

    summary = summed_up(check_input.cluster, context.now)
    # Controllers may do a lot even if nothing is scheduled.
    general = [
        *check_input.assumptions,
        *of_settings(scheduler),
        *_method_assumptions(check_input, scheduler.algorithm),
        *(unread_of(check_input.cluster, ["Node", "Pod"]) if cannot_simulate(check_input.cluster) else []),
    ]

    budgets = dict(budgets_of(check_input.plan))

    def facts(simulated: Simulated, plan: Plan, protection: ProtectionRules, extra: Iterable[Assumption] = ()) -> Facts:
        assumptions = [*general, *plan.assumptions, *simulated.assumptions, *extra]
        found = facts_of(simulated, assumptions, snapshot_age=summary.age_seconds, is_live=check_input.is_live)
        versions = (summary.version, scheduler.algorithm)
        broken = dict(pods_on_broken_nodes(simulated))
        deadlocks = {
            name: msgspec.structs.replace(each, sentence=_sentences(each.sentence, broken.get(name)))
            for name, each in deadlocks_in(plan, simulated, scheduler, context.at)
        }
        violations = check_manifests(
            plan, check_input.apis, versions, simulated.after, simulated.simulation, protection, deadlocks
        )
        refused = (of_rejected_pods(*each) for each in simulated.rejected.items())
        waiting, unbound = unbound_claims(simulated.after, simulated.unbound, simulated.waiting_claims)
        full = (
            StaticFinding(RuleId.QUOTA_REJECTIONS, f"ResourceQuota {key}", why)
            for key, why in simulated.exceeded.items()
        )
        removed = removals(check_input.cluster, plan, simulated.after, simulated.simulation)
        violations += [*refused, *full, *unbound, *removed]
        if most is not None:
            violations += of_autoscalers(plan.autoscalers, simulated.simulation, most.simulation)
        return msgspec.structs.replace(
            found,
            static_findings=violations,
            unbound=waiting,
            deadlocks={
                **broken,
                **{name: each.sentence for name, each in deadlocks.items()},
                **dict(stalled_sets(plan, simulated)),
            },
            budgets=budgets,
        )

    most = (
        simulations(check_input.largest_plan).by_chance(check_input.seed)
        if check_input.largest_plan is not None
        else None
    )
    simulated, is_all = simulations(check_input.plan).run_requested(
        check_input.seed, check_input.runs, check_input.worst_of
    )
    base, suppressions = check_input.base, check_input.suppressions
    if base is not None:
        suppressions = msgspec.structs.replace(suppressions, base_option="--base")
    without = WithoutChange(suppressions)
    if base is None and not check_input.knows_base and pending_pods(check_input.cluster):
        base = Plan(cluster=check_input.cluster, changes=[], workloads=[], pods=[], deleted_pods=[])
    if base is not None:
        old, old_protection = base, ProtectionRules(check_input.cluster, base)
        without.follow(
            simulated,
            check_input.plan.changes,
            without=simulations(old),
            old_changes=old.changes,
            facts=lambda each: facts(each, old, old_protection),
            rules=check_input.rules,
        )
    extra = [] if is_all or not check_input.worst_of else [not_all(len(simulated))]
    protection = ProtectionRules(check_input.cluster, check_input.plan)
    judgment = judge(
        simulated,
        is_all,
        check_input.plan.changes,
        lambda each: facts(each, check_input.plan, protection, extra),
        check_input.rules,
        without.suppressions,
        placeholders(
            check_input.cluster,
            {each.object for each in check_input.plan.changes if each.kind is not ChangeKind.UNCHANGED},
            check_input.rules.expendable,
        ),
    )
    assumed = (assumption for each in (judgment.shown, *simulated) for assumption in each.assumptions)
    check = Check(
        algorithm=scheduler.algorithm,
        cluster=summary,
        at=context.at,
        changes=check_input.plan.changes,
        only_in_base=check_input.plan.only_in_base,
        assumptions=list(dict.fromkeys([*general, *check_input.plan.assumptions, *assumed, *extra])),
        without_change=without.outcome(judgment.shown),
        **judgment.fields,
    )
    if cannot_simulate(check_input.cluster):
        check = without_simulation(check)
    return CheckedRollout(check, check_input.plan, [judgment.shown, *simulated], without.all)


def _sentences(*parts: str | None) -> str:
    return "; ".join(filter(None, parts))


class AggregatedRuns(NamedTuple, Generic[SomeSimulated]):
    """The simulation that is shown (the only or the worst one), and the fields of the document."""

    shown: SomeSimulated
    fields: dict[str, Any]


def judge(
    simulated: Sequence[SomeSimulated],
    is_all: bool,
    changes: Sequence[Change],
    facts: Callable[[SomeSimulated], Facts],
    rules: GateRules,
    suppressions: Callable[[SomeSimulated], Suppressions],
    headroom: Collection[str],
) -> AggregatedRuns[SomeSimulated]:
    """Evaluate the rules on the simulations, which are all possible ones if ``is_all``.

    ``suppressions`` returns what suppresses findings of a simulation. ``headroom`` are the workloads of placeholders.
    """
    evaluated = []
    for each in simulated:
        counted = without_headroom(each.simulation, headroom)
        results, findings = evaluate(counted, changes, facts(each), rules, suppressions(each))
        # Random simulations already occur in proportion to their likelihood.
        evaluated.append(EvaluatedRun(results, findings, each.likelihood if is_all else 1.0))
    total = sum(each.likelihood for each in evaluated)
    fails = [not passes(each.results) for each in evaluated]

    def severity_of(index: int) -> tuple[int, ...]:
        failures, warnings = (
            sum(getattr(each, field) for each in evaluated[index].results) for field in ("failures", "warnings")
        )
        return failures, warnings, *severity_key(simulated[index].simulation), -simulated[index].seed

    worst = max(range(len(simulated)), key=severity_of)
    results, findings = aggregate(evaluated, worst)
    outcomes = [
        share_of(each, fails=failing, share=of.likelihood / total)
        for each, of, failing in zip(simulated, evaluated, fails, strict=True)
    ]
    shown = simulated[worst]
    evictions = [len(each.simulation.displaced) for each in simulated]
    return AggregatedRuns(
        shown,
        {
            "passed": not any(fails),
            "rules": results,
            "findings": findings,
            "simulation": shown.simulation,
            "seed": shown.seed,
            "runs": len(simulated),
            "failing_runs": sum(fails),
            "failing_share": sum(each.share for each in outcomes if each.fails),
            "outcomes": shares(outcomes) if len(simulated) > 1 else [],
            "evictions": Range(min=min(evictions), max=max(evictions)),
            "explored_all": is_all,
            "headroom": headroom_used(shown.simulation, headroom),
            "nodes": changed_nodes(shown.before, shown.after),
            "free": spare(shown.after),
        },
    )


def facts_of(
    simulated: Simulated, assumptions: Sequence[Assumption], *, snapshot_age: float | None, is_live: bool
) -> Facts:
    """What the rules need to know about the cluster and the simulation."""
    victims = {each.pod for each in simulated.simulation.displaced}
    pods = {
        pod.key: PodFacts(labels=pod.metadata.labels, priority_class=pod.spec.priority_class_name)
        for cluster in (simulated.after, simulated.before)
        for pod in cluster.pods
        if pod.key in victims
    }
    return Facts(
        pods=pods,
        workloads=Workloads(simulated.after).above,
        assumptions=list(dict.fromkeys(assumptions)),
        snapshot_age=snapshot_age,
        is_live=is_live,
    )


def _method_assumptions(check_input: CheckInput, algorithm: str) -> list[Assumption]:
    """The assumptions that result from how the change is simulated."""
    plan = check_input.plan
    found = [*unread_quotas(check_input.cluster, plan.changes), *plan.missing_namespaces.assumptions]
    if algorithm == VOLCANO:
        message = "sessions are simulated one pod at a time; a real session decides about all pods at once"
        found.append(Assumption("scheduler", VOLCANO, message, AssumptionKind.UNCERTAIN))
    else:
        found += of_queue(algorithm)
    # If existing objects of a kind in the change could not be read, the change's objects of that kind count as new.
    kinds = dict.fromkeys(each.object.partition(" ")[0] for each in plan.changes)
    pod_creators = {each.kind for each in plan.workloads if each.after is not None}
    pod_creators |= {"Pod"} if plan.pods else set()
    if "Deployment" in kinds:
        kinds.setdefault("ReplicaSet")
    return [
        *found,
        *unreadable_of(check_input.cluster, kinds),
        *unread_except_workloads(check_input.cluster, pod_creators),
        *unread_policies(check_input.cluster, plan.changes),
    ]


def not_all(simulations: int) -> Assumption:
    """The assumption that there are more possible outcomes than the simulated ones."""
    message = f"more outcomes are possible than the {simulations:,} simulated; another outcome may be worse"
    return Assumption("simulation", "draws", message, AssumptionKind.UNCERTAIN)


def unbound_claims(
    after: ClusterSnapshot, unbound: Mapping[str, str], waiting: Mapping[str, str]
) -> tuple[dict[str, str], list[StaticFinding]]:
    """Why pods of workloads wait for their claims, and violations for unbound claims that no pod waits for.

    ``waiting`` claims are bound when a pod is scheduled, so they count only if a pod waits for them.
    """
    reasons = {**unbound, **waiting}
    found: dict[str, str] = {}
    reported: set[str] = set()
    names = Workloads(after)
    for pod in after.pods if reasons else ():
        if pod.spec.node_name:
            continue
        for key in claims_of_pod(pod):
            if key in reasons:
                reported.add(key)
                found.setdefault(names.of(pod), f"PersistentVolumeClaim {key}: {reasons[key]}")
    findings = [
        StaticFinding(RuleId.REQUIRE_SCHEDULABLE, f"PersistentVolumeClaim {key}", reason)
        for key, reason in unbound.items()
        if key not in reported
    ]
    return found, findings


def of_settings(scheduler: Scheduler) -> list[Assumption]:
    """The scheduler's unmodeled settings; feature gates also affect controllers."""
    return [each for each in scheduler.assumptions if each.message == SETTING_UNMODELED]


def of_queue(algorithm: str) -> list[Assumption]:
    """The assumption that a scheduler's queue is not modeled."""
    if has_queue(algorithm):
        return []
    message = f"the queue of {algorithm} is not modeled; pods are tried in the order of the current queue"
    return [Assumption("scheduler", "queue", message, AssumptionKind.UNCERTAIN)]


def changed_nodes(before: ClusterSnapshot, after: ClusterSnapshot) -> list[NodeUtilization]:
    """The nodes whose pods changed, in the order of the cluster."""
    old, new = _by_node(before), _by_node(after)
    names, requests = Workloads(after), RequestsOfMany()
    found = []
    for node in after.nodes:
        pods_before, pods_after = old.get(node.name, []), new.get(node.name, [])
        if {pod.metadata.uid or pod.key for pod in pods_before} == {pod.metadata.uid or pod.key for pod in pods_after}:
            continue
        found.append(
            NodeUtilization(
                node=node.name,
                allocatable=allocatable_of(node),
                before=_used(pods_before, requests),
                after=_used(pods_after, requests),
                pods_before=_workloads(pods_before, names),
                pods_after=_workloads(pods_after, names),
            )
        )
    return found


def spare(cluster: ClusterSnapshot) -> dict[str, int]:
    """The total free capacity of schedulable nodes, by resource; an overcommitted node counts as full."""
    total: Counter[str] = Counter()
    pods, requests = _by_node(cluster), RequestsOfMany()
    for node in cluster.nodes:
        if not node.spec.unschedulable:
            used = _used(pods.get(node.name, []), requests)
            total.update({name: max(amount - used.get(name, 0), 0) for name, amount in allocatable_of(node).items()})
    return dict(sorted(total.items()))


def _used(pods: Iterable[Pod], requests: RequestsOfMany) -> dict[str, int]:
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(requests.of(pod))
        total[_PODS] += 1
    return dict(sorted(total.items()))


def _workloads(pods: Iterable[Pod], names: Workloads) -> dict[str, int]:
    counts = Counter(names.of(pod) for pod in pods)
    return {name: counts[name] for name in sorted(counts, key=lambda each: (-counts[each], each))}


def _by_node(cluster: ClusterSnapshot) -> dict[str, list[Pod]]:
    assigned = (pod for pod in cluster.pods if pod.spec.node_name and not pod.is_terminal)
    return grouped(assigned, lambda pod: pod.spec.node_name)


_KIND = "Check"
_GROUP = API_VERSION.partition("/")[0]


class _FormerFinding(msgspec.Struct, frozen=True, rename="camel"):
    rule: str = ""
    subject: str = ""
    status: str = FindingStatus.FAILS
    amount: int = 0
    change: str = ""
    fingerprint: str = ""


class _FormerSimulation(msgspec.Struct, frozen=True, rename="camel"):
    """Lists that only need to be counted, and a flag; ``None`` if the document lacks them."""

    displaced: list[Any] | None = None
    pending: list[dict[str, Any]] | None = None
    budgets: list[dict[str, Any]] | None = None
    broken_dependencies: list[Any] | None = None
    depth: int | None = None


class FormerCheck(msgspec.Struct, frozen=True, rename="camel"):
    """The fields read from a previous result. Missing fields are not compared; unknown ones are ignored."""

    api_version: str = ""
    kind: str = ""
    passed: bool | None = None
    summary: str = ""
    algorithm: str = ""
    at: str | None = None
    findings: list[_FormerFinding] | None = None
    simulation: _FormerSimulation = _FormerSimulation()


def read_former(content: bytes, source: str) -> FormerCheck:
    """Read a result of ``check -o json``, of this version or another. Raises ``InputError``."""
    found = decode_json(content, FormerCheck, source)
    if found.kind != _KIND or found.api_version.partition("/")[0] != _GROUP:
        what = f"{found.api_version} {found.kind}".strip() or "no kind"
        raise InputError(
            f"not a check result: {what}", source=source, hint="write one with kpreempt check -o json=FILE"
        )
    return found


def since(former: FormerCheck, check: Check) -> PreviousRun:
    """The differences in the worst simulations' figures and in the findings that count, worse ones first."""
    drifts = [*_figures(former.simulation, check), *_findings(former.findings, check)]
    order = list(DriftKind)
    drifts.sort(key=lambda each: order.index(each.kind))
    is_complete = former.findings is not None and None not in msgspec.structs.astuple(former.simulation)
    return PreviousRun(
        passed=former.passed,
        summary=former.summary,
        algorithm=former.algorithm,
        at=former.at or "",
        drifts=drifts,
        is_complete=is_complete,
    )


def _figures(former: _FormerSimulation, check: Check) -> Iterator[Drift]:
    simulation = check.simulation
    numbers: dict[str, tuple[int | None, int]] = {
        "pods evicted": (_sum(former.displaced, lambda _: 1), len(simulation.displaced)),
        "budget violations": (
            _sum(former.budgets, lambda each: each.get("violations", 0)),
            sum(each.violations for each in simulation.budgets),
        ),
        "evictions in a chain": (former.depth, simulation.depth),
        "previously running pods pending": (
            _sum(former.pending, lambda each: each.get("wasRunning") is True),
            sum(each.was_running for each in simulation.pending),
        ),
        "new pods pending": (
            _sum(former.pending, lambda each: not (each.get("wasRunning") or each.get("pendingBefore"))),
            sum(not (each.was_running or each.pending_before) for each in simulation.pending),
        ),
        "broken dependencies": (_sum(former.broken_dependencies, lambda _: 1), len(simulation.broken_dependencies)),
    }
    for what, (before, after) in numbers.items():
        if before is not None and before != after:
            kind = DriftKind.WORSE if after > before else DriftKind.BETTER
            yield Drift(kind=kind, metric=what, before=before, after=after)


def _sum(items: list[dict[str, Any]] | None, of: Callable[[dict[str, Any]], Any]) -> int | None:
    if items is None:
        return None
    numbers = [of(each) for each in items]
    return sum(numbers) if all(isinstance(each, int) for each in numbers) else None


def _findings(former: Iterable[_FormerFinding] | None, check: Check) -> Iterator[Drift]:
    if former is None:
        return
    had = {_key(each): each for each in former if each.status in (FindingStatus.FAILS, FindingStatus.WARNS)}
    have = {_key(each): each for each in check.findings if each.status.counts}
    for key, each in have.items():
        before = had.get(key)
        if before is None:
            yield Drift(kind=DriftKind.NEW, rule=each.rule, subject=each.subject, after=each.amount)
        elif before.amount != each.amount:
            kind = DriftKind.WORSE if each.amount > before.amount else DriftKind.BETTER
            yield Drift(kind=kind, rule=each.rule, subject=each.subject, before=before.amount, after=each.amount)
    for key, gone in had.items():
        if key not in have:
            yield Drift(kind=DriftKind.FIXED, rule=gone.rule, subject=gone.subject, before=gone.amount)


def _key(finding: _FormerFinding | GateFinding) -> tuple[str, ...]:
    """The identity of a finding: its fingerprint, or else its rule, subject and change."""
    return (finding.fingerprint,) if finding.fingerprint else (str(finding.rule), finding.subject, finding.change)
