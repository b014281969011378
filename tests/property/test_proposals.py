"""Every proposal works when its options are applied as a reader would apply them."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.explain.single_edits import just_above
from kpreempt.analysis.nodes.changes import changed
from kpreempt.analysis.what_if import Assignment, Overrides, override_pod, pod_document, split_assignment
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.documents import parse_yaml_value
from kpreempt.verdict import ChangeKind, Outcome, Proposal, Verdict
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.strategies import scenarios

LAWS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SCHEDULER = scheduler_for()


def explain(cluster: ClusterSnapshot, pod: Pod, **wanted: Any) -> Verdict:
    return explain_pods(AnalysisContext(cluster, SCHEDULER, NOW), [ExplainInput(pod=pod)], **wanted)[0]


def applied(cluster: ClusterSnapshot, pod: Pod, options: list[str]) -> tuple[ClusterSnapshot, Pod]:
    """The cluster and the pod that ``kpreempt explain`` builds from the options."""
    by_cluster = {"--without": "removed", "--cordon": "cordons", "--uncordon": "uncordons", "--budget": "budgets"}
    document = pod_document(pod)
    for option, _, value in (each.partition("=") for each in options):
        if option in by_cluster:
            cluster = changed(cluster, **{by_cluster[option]: [value]})
            continue
        if option == "--set":
            path, text = split_assignment(value)
            overrides = Overrides(assignments=[Assignment(path, parse_yaml_value(text))])
        elif option == "--priority":
            overrides = Overrides(priority=int(value))
        else:
            assert option == "--preemption-policy"
            overrides = Overrides(preemption_policy=value)
        document = override_pod(document, overrides)
    decoded = decode_object("Pod", document)
    assert isinstance(decoded, Pod)
    return cluster, decoded


def check(cluster: ClusterSnapshot, pod: Pod, proposal: Proposal) -> Verdict:
    """The verdict with the proposal, which must match its description."""
    verdict = explain(*applied(cluster, pod, proposal.options))
    assert verdict.outcome == proposal.outcome
    assert (verdict.nominated_nodes or verdict.lands_on) == proposal.nodes
    assert len(proposal.changes) >= 1
    return verdict


@LAWS
@given(scenarios(), st.integers(0, 3))
def test_each_proposal_for_a_node_selects_it(scenario: dict[str, Any], number: int) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    name = cluster.nodes[number % len(cluster.nodes)].name
    story = explain(cluster, pod, node_name=name).node_report
    assert story is not None
    if story.is_chosen:
        assert not story.proposals
    for proposal in story.proposals:
        check(cluster, pod, proposal)
        assert name in proposal.nodes


@LAWS
@given(scenarios(max_nodes=3))
def test_each_proposal_for_an_unschedulable_pod_makes_it_fit(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    verdict = explain(cluster, pod, proposes=True)
    if verdict.outcome != Outcome.UNSCHEDULABLE:
        assert verdict.proposal_search is None
        return
    for proposal in verdict.proposals:
        assert check(cluster, pod, proposal).outcome != Outcome.UNSCHEDULABLE


@LAWS
@given(scenarios(max_nodes=3))
def test_each_proposal_for_a_preemptor_avoids_evictions(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    verdict = explain(cluster, pod, proposes=True)
    if verdict.outcome == Outcome.UNSCHEDULABLE:
        return
    if verdict.outcome not in (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS):
        assert verdict.proposals == []
    for proposal in verdict.proposals:
        assert check(cluster, pod, proposal).outcome == Outcome.LANDS


@LAWS
@given(scenarios(max_nodes=3))
def test_a_slightly_larger_request_does_not_fit(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    verdict = explain(cluster, pod, proposes=True)
    is_pending = verdict.outcome == Outcome.UNSCHEDULABLE
    for proposal in verdict.proposals:
        if [change.kind for change in proposal.changes] == [ChangeKind.REQUEST]:
            *others, last = proposal.options
            path, text = last.rsplit("=", 1)
            more = f"{quantity(text).milli_value + 1}m" if path.endswith(".cpu") else str(quantity(text).value + 1)
            larger = explain(*applied(cluster, pod, [*others, f"{path}={more}"]))
            assert (larger.outcome == Outcome.UNSCHEDULABLE) if is_pending else (larger.outcome != Outcome.LANDS)


@LAWS
@given(scenarios(max_nodes=3))
def test_a_priority_below_the_proposed_one_does_not_suffice(scenario: dict[str, Any]) -> None:
    cluster, pod = cluster_of(scenario["objects"]), pod_of(scenario["pod"])
    verdict = explain(cluster, pod, proposes=True)
    if (
        verdict.outcome != Outcome.UNSCHEDULABLE
        or not verdict.proposal_search
        or not verdict.proposal_search.is_complete
    ):
        return
    raised = [each for each in verdict.proposals if {change.kind for change in each.changes} == {ChangeKind.PRIORITY}]
    least = raised[0].changes[0].after if raised else None
    for priority in just_above(cluster.pods, pod):
        lands = explain(*applied(cluster, pod, [f"--priority={priority}"])).outcome != Outcome.UNSCHEDULABLE
        assert not lands or (least is None and len(verdict.proposals) == 6) or (least or 0) <= priority
        assert lands or priority != least


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
