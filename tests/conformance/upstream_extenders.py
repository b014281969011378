"""Upstream's table tests with extenders, each run with objects and through a real HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpreempt.phases import NO_PHASES
from kpreempt.schedulers.choice import CandidateVictims
from kpreempt.schedulers.extender_protocol import HttpExtender
from kpreempt.schedulers.kube.extender_session import ExtenderSession, call_extenders
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FrameworkError
from kpreempt.schedulers.kube.plugins.default_preemption import DefaultPreemption, default_args
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Code, Status, Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.conformance.made_up_extenders import PREDICATES, PRIORITIZERS, MadeUp, Way, name_of, reached
from tests.conformance.statuses import same_status
from tests.conformance.upstream_cycles import Bench, all_refused, node_to_status, profile_of, unassigned
from tests.conformance.upstream_schedule import fit_error_differences
from tests.conformance.upstream_values import differ

Case = dict[str, Any]
InAWay = Callable[[Case, list[HttpExtender], Way], list[str]]


def made_up_of(case: Case) -> list[MadeUp]:
    """The extenders that a case describes."""
    return [_made_up(number, each) for number, each in enumerate(case["input"].get("extenders") or ())]


def _made_up(number: int, described: Mapping[str, Any]) -> MadeUp:
    if "supportsPreemption" in described:
        preemption = "predicates" if described["supportsPreemption"] else ""
        preemption = "error" if described["errProcessPreemption"] else preemption
        preemption = "no victims" if described["returnsNoVictims"] else preemption
        return MadeUp(f"fake-{number}", preemption=preemption, ignorable=described["ignorable"])
    return MadeUp(
        described["name"],
        [PREDICATES[each] for each in described["predicates"]],
        [(PRIORITIZERS[each["function"]], each["weight"]) for each in described.get("prioritizers") or ()],
        weight=described.get("weight", 0),
        ignorable=described["ignorable"],
        is_interested=not described["unInterested"],
    )


def in_every_way(run: InAWay) -> Callable[[Case], list[str]]:
    """Run a case with each way to reach an extender."""

    def run_in_all(case: Case) -> list[str]:
        found = []
        for way in Way:
            with reached(made_up_of(case), way) as extenders:
                found += [f"{way.value}: {difference}" for difference in run(case, extenders, way)]
        return found

    return run_in_all


def _extender_calls(bench: Bench, case: Case, extenders: Sequence[HttpExtender]) -> ExtenderSession:
    return ExtenderSession(extenders, bench.cluster, unassigned(case["pod"]), NO_PHASES)


@in_every_way
def run_passing(case: Case, extenders: list[HttpExtender], _: Way) -> list[str]:
    """Which nodes pass the extenders, and the statuses of the others."""
    bench, expect = Bench(case), case["expect"]
    statuses = node_to_status(case["input"]["filteredNodeStatuses"])
    try:
        passing = _extender_calls(bench, case, extenders).filter(list(bench.cluster.node_infos), statuses)
    except FrameworkError:
        return differ("error", expect["error"], True)
    want = expect["nodeStatuses"]
    found = differ("error", expect["error"], False)
    found += differ("nodes", expect["nodes"], [node_info.name for node_info in passing])
    found += differ("statuses", sorted(want["nodes"]), sorted(statuses.statuses))
    for name, status in [*statuses.statuses.items(), ("", statuses.absent)]:
        expected = want["nodes"].get(name, want["absentNodes"])
        if not same_status(expected, status):
            found.append(f"{name}: want {expected}, got {status}")
    return found


@in_every_way
def run_candidates(case: Case, extenders: list[HttpExtender], way: Way) -> list[str]:
    """The preemption candidates that extenders keep."""
    bench, expect = Bench(case), case["expect"]
    pods = {pod_info.pod.metadata.name: pod_info.pod for node in bench.cluster.node_infos for pod_info in node.pods}
    candidates = {
        each["node"]: CandidateVictims([pods[victim] for victim in each["victims"]], each["numPDBViolations"])
        for each in case["input"]["candidates"]
    }
    try:
        left = _extender_calls(bench, case, extenders).process_preemption(candidates)
    except FrameworkError as error:
        found = differ("status", expect["statusCode"], error.status.code.value)
        # An HTTP status has less information than an error, and the node without victims must exist.
        stated = case["observed"]["status"]["reasons"] if way == Way.OBJECT else error.status.reasons
        return found + differ("message", [each.replace("mock", "node1") for each in stated], error.status.reasons)
    got = [
        {"node": node, "numPDBViolations": each.num_violations, "victims": [pod.metadata.name for pod in each.pods]}
        for node, each in left.items()
    ]
    return differ("status", expect["statusCode"], "Success") + differ("candidates", expect["candidates"], got)


@in_every_way
def run_preempt(case: Case, extenders: list[HttpExtender], _: Way) -> list[str]:
    """Run a complete preemption with extenders."""
    bench, expect, state = Bench(case), case["expect"], CycleState()
    pod = pod_of(case["pod"])
    bench.framework.run_pre_filter(state, pod)
    call_extenders(state, _extender_calls(bench, case, extenders))
    result, status = DefaultPreemption(default_args({}, bench.behavior), bench.handle).post_filter(
        state, pod, all_refused()
    )
    nominated = ((result.nominated_node_names if result else None) or [""])[0]
    candidates = result.evidence.candidates if result and result.evidence else []
    victims = next((each.victims for each in candidates if each.node == nominated), [])
    found = differ("node", (expect["result"] or {}).get("nominatedNodeName", ""), nominated)
    found += differ("victims", sorted(expect["victims"] or ()), sorted(victim.split("/")[-1] for victim in victims))
    want = case["observed"]["status"]
    # The plugin prefixes the evaluator's message.
    reasons = [f"preemption: {reason}" for reason in want.get("reasons") or ()]
    return found + differ("status", (want["code"], reasons), (status.code.value, status.reasons))


@in_every_way
def run_prioritize(case: Case, extenders: list[HttpExtender], _: Way) -> list[str]:
    """The weighted scores of plugins and extenders, and their sums."""
    bench, expect = Bench(case), case["expect"]
    state, pod = CycleState(), unassigned(case["pod"])
    bench.framework.run_pre_filter(state, pod)
    scores = bench.framework.run_scores(state, pod, bench.cluster.node_infos)
    given = _extender_calls(bench, case, extenders).prioritize(bench.cluster.node_infos)
    together = {
        node: by_plugin | {name_of(name): score for name, score in given[node].items()}
        for node, by_plugin in scores.items()
    }
    totals = {node: sum(by_name.values()) for node, by_name in together.items()}
    return differ("scores", expect["pluginScores"], together) + differ("totals", expect["totalScores"], totals)


@in_every_way
def run_schedule_pod(case: Case, extenders: list[HttpExtender], _: Way) -> list[str]:
    """Run a complete cycle that ends without a node."""
    verdict = decided(case, extenders)
    diagnosis = case["expect"]["fitError"]["diagnosis"]
    found = fit_error_differences(diagnosis, _without_addresses(verdict, extenders))
    return found + differ("message", case["observed"]["error"], verdict.message)


def decided(case: Case, extenders: Sequence[HttpExtender]) -> Verdict:
    """The verdict of a scheduler with the case's plugins and these extenders."""
    pod = unassigned(case["pod"])
    profile, registry = profile_of(case, pod.spec.scheduler_name)
    scheduler = KubeScheduler(
        [profile], gates_of(case.get("featureGates")), registry=registry, extenders=list(extenders)
    )
    return scheduler.decide(scheduler.prepare(cluster_of(case["objects"]), now=NOW), pod)


def _without_addresses(verdict: Verdict, extenders: Sequence[HttpExtender]) -> Verdict:
    """Upstream's statuses do not name their extender."""
    names = {extender.name for extender in extenders}
    for node, status in verdict.filter.items():
        if status.plugin in names:
            verdict.filter[node] = Status(Code(status.code), status.reasons)
    return verdict


RUN: dict[str, Callable[[Case], list[str]]] = {
    "preemption/TestCallExtenders": run_candidates,
    "scheduler/TestFindNodesThatPassExtenders": run_passing,
    "scheduler/TestSchedulerSchedulePod": run_schedule_pod,
    "scheduler/Test_prioritizeNodes": run_prioritize,
    "defaultpreemption/TestPreempt": run_preempt,
}
