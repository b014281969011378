"""Every remedy keeps its promise when it is applied as a reader would, and a change that helps is not missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.explain.single_edits import just_above, lower_requests
from kpreempt.analysis.nodes.copies import kinds_of
from kpreempt.analysis.remedies.excluded import has_control_plane, is_device, is_of_control_plane, is_set_by_controller
from kpreempt.analysis.simulation.engine import SimulationStart, simulate
from kpreempt.analysis.workload.placing import CHOICES
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import NodeSpec
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import Taint
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import ChangeKind, Outcome, Verdict
from kpreempt.verdict.remedies import Remedy, RemedyStage
from tests import remedies
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.factories import owned
from tests.remedies import applied, destinations, with_options
from tests.strategies import scenarios

LAWS = settings(
    max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SCHEDULER = scheduler_for()
SEARCHED = (Outcome.UNSCHEDULABLE, Outcome.WAITS_FOR_VICTIMS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
EVICTING = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# The share of scenarios that must have a remedy if a single change helps, and the number from which on it counts.
MIN_SHARE = 0.9
MIN_HELPED = 10


def explain(cluster: ClusterSnapshot, pod: Pod, **wanted: Any) -> Verdict:
    return remedies.explain(cluster, pod, SCHEDULER, **wanted)


# What may keep a pod from a node: taints of users and of controllers, or a cordon.
UNUSABLE = [
    NodeSpec(taints=[Taint("dedicated", "gpu", "NoSchedule")]),
    NodeSpec(taints=[Taint("node.kubernetes.io/unreachable", "", "NoExecute")]),
    NodeSpec(unschedulable=True),
    NodeSpec(unschedulable=True, taints=[Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")]),
]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterSnapshot, Pod]:
    """A cluster and a new pod; in most clusters, some nodes are not usable, and controllers replace evicted pods."""
    scenario = draw(scenarios(max_nodes=3))
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    if draw(st.integers(0, 3)):
        pods = [owned(each, "ReplicaSet", f"of-{each.metadata.name}") for each in cluster.pods]
        cluster = msgspec.structs.replace(cluster, pods=pods)
    if draw(st.integers(0, 3)):
        specs = [draw(st.sampled_from([node.spec, *UNUSABLE])) for node in cluster.nodes]
        pairs = zip(cluster.nodes, specs, strict=True)
        nodes = [msgspec.structs.replace(node, spec=spec) for node, spec in pairs]
        cluster = msgspec.structs.replace(cluster, nodes=nodes)
    if draw(st.booleans()):
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=-20))
    return cluster, pod


def is_certain(verdict: Verdict) -> bool:
    return verdict.volume_choices is None or not verdict.volume_choices.uncertain


def check(cluster: ClusterSnapshot, pod: Pod, remedy: Remedy) -> Verdict:
    """Apply a remedy, and compare the verdict with its promise."""
    changed, edited = applied(cluster, pod, remedy)
    # No pod is lost, except the old ones whose stop the remedy promises.
    kept = {each.key for each in changed.pods}
    assert {each.key for each in cluster.pods} - kept == set(remedy.stops)
    after = explain(changed, edited)
    assert remedy.changes
    assert destinations(after) == remedy.nodes
    assert after.outcome in (Outcome.LANDS, *EVICTING)
    assert bool(remedy.evicted) == (after.outcome is not Outcome.LANDS)
    return after


@LAWS
@given(clusters(), st.integers(0, 3))
def test_each_remedy_for_a_node_selects_it(found: tuple[ClusterSnapshot, Pod], number: int) -> None:
    cluster, pod = found
    name = cluster.nodes[number % len(cluster.nodes)].name
    report = explain(cluster, pod, node_name=name).node_report
    assert report is not None
    assert not report.is_chosen or not report.remedies
    for remedy in report.remedies:
        assert check(cluster, pod, remedy).outcome is not Outcome.PREEMPTS_VIOLATING_BUDGETS
        assert name in remedy.nodes


@LAWS
@given(clusters())
def test_each_remedy_for_a_pod_keeps_its_promise(found: tuple[ClusterSnapshot, Pod]) -> None:
    cluster, pod = found
    verdict = explain(cluster, pod, proposes=True)
    assert (verdict.remedy_search is not None) is (verdict.outcome in SEARCHED and bool(cluster.nodes))
    for remedy in verdict.remedies:
        after = check(cluster, pod, remedy)
        if remedy.evicted:
            assert verdict.outcome.stays_pending
            assert remedy.stage is RemedyStage.PRIORITY
            changed, edited = applied(cluster, pod, remedy)
            assert evicts_without_harm(changed, edited)
        else:
            assert after.outcome is Outcome.LANDS
    assert [bool(each.evicted) for each in verdict.remedies] == sorted(bool(each.evicted) for each in verdict.remedies)


@LAWS
@given(clusters())
def test_amounts_and_priorities_are_minimal(found: tuple[ClusterSnapshot, Pod]) -> None:
    cluster, pod = found
    verdict = explain(cluster, pod, proposes=True)
    for remedy in verdict.remedies:
        kinds = [change.kind for change in remedy.changes]
        if kinds == [ChangeKind.REQUEST]:
            (change,) = remedy.changes
            assert 2 * (change.after or 0) >= (change.before or 0)
            *others, last = remedy.options
            path, text = last.rsplit("=", 1)
            more = f"{quantity(text).milli_value + 1}m" if path.endswith(".cpu") else str(quantity(text).value + 1)
            larger = explain(*with_options(cluster, pod, [*others, f"{path}={more}"]))
            assert larger.outcome is not Outcome.LANDS or destinations(larger) != remedy.nodes
        elif kinds == [ChangeKind.PRIORITY]:
            lowest = remedy.changes[0].after or 0
            for priority in just_above(cluster.pods, pod):
                if priority < lowest:
                    below = explain(*with_options(cluster, pod, [f"--priority={priority}"]))
                    assert below.outcome.stays_pending or not is_certain(below)


def evicts_without_harm(cluster: ClusterSnapshot, pod: Pod) -> bool:
    """Whether all evicted pods run again at the end, and no PodDisruptionBudget is violated."""
    pods = [each for each in cluster.pods if each.spec.node_name or each.status.nominated_node_name or each.is_terminal]
    cluster = msgspec.structs.replace(cluster, pods=pods)
    for choose in CHOICES:
        start = SimulationStart(arriving=[pod], choose=choose)
        simulation, _, _ = simulate(cluster, start, SCHEDULER, now=NOW)
        if pod.key not in simulation.starts_at or simulation.pending:
            return False
        if any(each.lost or not each.lands_on for each in simulation.displaced):
            return False
        if any(each.violations for each in simulation.budgets):
            return False
        if any(each.ready_after < each.ready_before for each in simulation.workloads):
            return False
    return True


def drops(pod: Pod) -> Iterator[str]:
    """Options that each drop one requirement of the pod."""
    spec = pod.spec
    yield from (f"--set=spec.nodeSelector.{key}=null" for key in spec.node_selector)
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.required is not None:
        place = f"spec.affinity.nodeAffinity.{REQUIRED}"
        terms = affinity.node_affinity.required.node_selector_terms
        # Terms with fields are set by controllers.
        if not any(term.match_fields for term in terms):
            yield f"--set={place}=null"
            for index, term in enumerate(terms):
                if len(term.match_expressions) > 1:
                    for number in range(len(term.match_expressions)):
                        yield f"--set={place}.nodeSelectorTerms[{index}].matchExpressions[{number}]=null"
    if affinity is not None:
        for field, rules in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
            yield from (
                f"--set=spec.affinity.{field}.{REQUIRED}[{index}]=null"
                for index in range(len(rules.required) if rules is not None else 0)
            )
    for index, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == "DoNotSchedule":
            yield f"--set=spec.topologySpreadConstraints[{index}]=null"
            yield f"--set=spec.topologySpreadConstraints[{index}].nodeTaintsPolicy=Honor"
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            for number, port in enumerate(container.ports):
                if port.host_port and not spec.host_network:
                    yield f"--set=spec.{field}[{index}].ports[{number}].hostPort=null"


def lowered(cluster: ClusterSnapshot, pod: Pod) -> Iterator[list[str]]:
    """Options that lower the pod's requests to what is free on a node, by at most half."""
    wanted = requests_in_units(pod_requests(pod))
    for node in cluster.nodes:
        here = [each for each in cluster.pods if each.spec.node_name == node.name and not each.is_terminal]
        free = requests_in_units({name: amount.nano for name, amount in node.status.allocatable.items()})
        for each in here:
            for name, amount in requests_in_units(pod_requests(each)).items():
                free[name] = free.get(name, 0) - amount
        amounts = {name: (amount, free.get(name, 0)) for name, amount in wanted.items() if amount > free.get(name, 0)}
        too_little = any(
            2 * after < before or (is_device(name) and after < 1) for name, (before, after) in amounts.items()
        )
        edit = lower_requests(pod, amounts) if amounts and not too_little else None
        if edit is not None:
            yield edit.options(len(pod.spec.tolerations))


def tolerated(cluster: ClusterSnapshot, pod: Pod) -> Iterator[str]:
    """Options that each tolerate a taint that a user has set."""
    index = len(pod.spec.tolerations)
    only_control_plane = all(map(has_control_plane, cluster.nodes))
    for taint in dict.fromkeys(taint for node in cluster.nodes for taint in node.spec.taints):
        if is_set_by_controller(taint) or (is_of_control_plane(taint) and not only_control_plane):
            continue
        yield f'--set=spec.tolerations[{index}]={{"key":"{taint.key}","operator":"Exists","effect":"{taint.effect}"}}'


def single_changes(cluster: ClusterSnapshot, pod: Pod) -> Iterator[tuple[str, list[str]]]:
    """Single changes of the kinds that are tried, by kind."""
    yield from (("drop", [option]) for option in drops(pod))
    yield from (("request", options) for options in lowered(cluster, pod))
    yield from (("toleration", [option]) for option in tolerated(cluster, pod))
    yield from (("uncordon", [f"--uncordon={each.name}"]) for each in cluster.nodes if each.spec.unschedulable)
    yield from (("new node", [f"--add-node={kind.like.name}"]) for kind in kinds_of(cluster))


def helpful(cluster: ClusterSnapshot, pod: Pod, *, stays_pending: bool) -> set[str]:
    """The kinds of single changes that help."""
    found = {
        kind
        for kind, options in single_changes(cluster, pod)
        if (after := explain(*with_options(cluster, pod, options))).outcome is Outcome.LANDS
        and after.volume_choices is None
    }
    if stays_pending:
        evicting = [f"--priority={priority}" for priority in just_above(cluster.pods, pod)]
        evicting += ["--preemption-policy=PreemptLowerPriority"] if pod.spec.preemption_policy == "Never" else []
        for option in evicting:
            changed, edited = with_options(cluster, pod, [option])
            if explain(changed, edited).outcome in EVICTING and evicts_without_harm(changed, edited):
                found.add("eviction")
    return found


@pytest.fixture(scope="module")
def helped() -> Iterator[Counter[bool]]:
    """The number of scenarios in which a single change helps, with and without a remedy."""
    counts: Counter[bool] = Counter()
    yield counts
    total = counts[True] + counts[False]
    print(f"a remedy in {counts[True]:,} of {total:,} scenarios in which a single change helps")  # noqa: T201
    assert total < MIN_HELPED or counts[True] >= MIN_SHARE * total


@LAWS
@given(found=clusters())
def test_a_single_change_that_helps_is_not_missed(helped: Counter[bool], found: tuple[ClusterSnapshot, Pod]) -> None:
    cluster, pod = found
    verdict = explain(cluster, pod, proposes=True)
    if verdict.outcome in SEARCHED and helpful(cluster, pod, stays_pending=verdict.outcome.stays_pending):
        helped[bool(verdict.remedies)] += 1


@LAWS
@given(scenarios(), st.integers(0, 3))
def test_the_first_rejection_in_the_node_report_is_the_schedulers(scenario: dict[str, Any], number: int) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    name = cluster.nodes[number % len(cluster.nodes)].name
    verdict = explain(cluster, pod, node_name=name)
    assert verdict.node_report is not None
    evaluation = verdict.node_report.evaluation
    rejections = [status for status in evaluation.filters if not status.is_success]
    if evaluation.pre_filter is not None:
        assert verdict.pre_filter == evaluation.pre_filter
    elif not evaluation.excluded_by and not evaluation.nominated_pods:
        assert verdict.filter[name].plugin == (rejections[0].plugin if rejections else "")
        assert verdict.filter[name].is_success == (not rejections)
