"""Decisions of the real kube-scheduler 1.18.19 on recorded scenarios, and the table tests of its preemption.

Every case of the tables is run, with its own filters and with the default profile; none is omitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES
from kpreempt.schedulers.legacy.base.cycle import Cycle
from kpreempt.schedulers.legacy.base.extenders import Filtered
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.predicates import DryRun, FilterRun, LegacyError, Victims, choose
from kpreempt.schedulers.legacy.factory import legacy_scheduler
from kpreempt.schedulers.legacy.v1_18.filters import InterPodAffinity, NodeResourcesFit, PodTopologySpread
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin
from kpreempt.schedulers.legacy.v1_18.version import Version118
from kpreempt.verdict import SUCCESS, Code, Outcome, PodSummary, Status, Verdict
from tests.conformance.cases import NOW, cluster_of, pod_of, read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.tiers import Sample

Case = dict[str, Any]

LEGACY = Path(__file__).resolve().parents[2] / "fixtures" / "conformance" / "legacy"
CASES = list(read_lines(LEGACY / "upstream" / "upstream-1.18.jsonl.gz"))
REAL_PLUGINS = (NodeResourcesFit, InterPodAffinity, PodTopologySpread)


class NamedFilter(FilterPlugin):
    """Upstream's filters on names, and its fake one, which is first and counts its calls."""

    def __init__(self, name: str, code: Code = Code.UNSCHEDULABLE) -> None:
        self.name = name  # type: ignore[misc]  # each instance stands for another upstream plugin
        self._code = code
        self.calls = 0

    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        self.calls += 1
        fits = {
            "TrueFilter": True,
            "FalseFilter": False,
            "MatchFilter": node_info.name == state.pod.pod.metadata.name,
            "FakeFilter": self._code == Code.SUCCESS,
        }[self.name]
        return SUCCESS if fits else Status(self._code, [f"refused by {self.name}"])


class FakeExtender:
    """Upstream's extender with predicates on a node's name."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.name = "fake"
        self.is_ignorable = bool(case["ignorable"])
        self.is_prioritizer = False
        self.supports_preemption = bool(case["supportsPreemption"])
        self._is_interested = not case["unInterested"]
        self._predicates: Sequence[str] = case["predicates"]

    def is_interested(self, pod: Pod) -> bool:
        return self._is_interested

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        passing = [node_info.name for node_info in nodes if self._fits(node_info.name)]
        return Filtered(passing, {info.name: "" for info in nodes if info.name not in passing})

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], node_infos: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        return {node: victims for node, victims in candidates.items() if self._fits(node)}

    def _fits(self, node: str) -> bool:
        if "errorPredicateExtender" in self._predicates:
            raise LegacyError("Some error")
        answers = {
            "truePredicateExtender": True,
            "falsePredicateExtender": False,
            "machine1PredicateExtender": node == "machine1",
        }
        return all(answers[predicate] for predicate in self._predicates)


class Table:
    """The scheduler and the cluster of one case."""

    def __init__(self, case: Case, first: Sequence[FilterPlugin] = ()) -> None:
        real = {plugin.name: plugin for plugin in REAL_PLUGINS}
        named = [real[name]() if name in real else NamedFilter(name) for name in case["filters"]]
        self.version = Version118([*first, *named], never_preempts=case.get("config", {}).get("enableNonPreempting"))
        self.cluster = Cluster(
            cluster_of(case["objects"]),
            self.version.accounting,
            self.version.nominated_node,
            now=NOW,
            scheduler_names=frozenset(["default-scheduler"]),
        )
        self.pod = PodInfo(pod_of(case["pod"]), self.version.accounting)
        self.state = self.version.prepare_pod(self.cluster, self.pod)

    def candidates(self) -> dict[str, Victims]:
        """The victims on every node on which preemption helps."""
        version = self.version
        fits = FilterRun(version.filters, self.cluster, self.pod, stops_at_first=True, counts_nominated=True)
        dry_run = DryRun(fits, version.importance(NOW), version.budget_rule, self.cluster.budgets)
        outcomes = {info.name: dry_run.select_victims(self.state, info) for info in self.cluster.node_infos}
        return {node: outcome for node, outcome in outcomes.items() if isinstance(outcome, Victims)}

    def preempt(self, statuses: dict[str, Status], extenders: Sequence[FakeExtender]) -> Verdict:
        """The preemption after these filter results."""
        metadata = self.pod.pod.metadata
        frame = Verdict(
            algorithm="kube-1.18",
            outcome=Outcome.NOT_SCHEDULED,
            pod=PodSummary(namespace=metadata.namespace, name=metadata.name),
        )
        cycle = Cycle(self.version, self.version.filters, extenders, self.cluster, self.pod.pod, frame, NO_PHASES)
        return cycle.preempt(statuses)


def shown(candidates: Mapping[str, Victims]) -> dict[str, Any]:
    return {
        node: {"numPDBViolations": each.num_violations, "victims": [info.key for info in each.pods]}
        for node, each in candidates.items()
    }


def statuses_of(case: Case) -> dict[str, Status]:
    """The given statuses; a node without one has passed, as far as is known."""
    nodes = [each["metadata"]["name"] for each in case["objects"] if each["kind"] == "Node"]
    given = {node: Status(Code(case["filterCodes"][node]), reasons or []) for node, reasons in case["filter"].items()}
    return {node: given.get(node, SUCCESS) for node in nodes}


def cases_of(kind: str) -> Any:
    cases = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize("case", cases, ids=[case["name"].split("/")[1] for case in cases])


def test_every_case_is_of_a_kind_that_is_run() -> None:
    run = {"nodesWherePreemptionMightHelp", "pickOneNodeForPreemption", "preempt", "selectNodesForPreemption"}
    assert {case["kind"] for case in CASES} == run


@cases_of("selectNodesForPreemption")
def test_victims_on_each_node(case: Case) -> None:
    fake = NamedFilter("FakeFilter", Code(case["filterReturnCode"]))
    assert shown(Table(case, [fake]).candidates()) == case["expect"]["candidates"]
    assert fake.calls == case["expectedNumFilterCalled"]


@cases_of("pickOneNodeForPreemption")
def test_the_chosen_node(case: Case) -> None:
    table = Table(case)
    candidates = table.candidates()
    assert shown(candidates) == case["expect"]["candidates"]
    assert choose(candidates, table.version.criteria(NOW)).tied == case["expect"]["chosenAnyOf"]


@cases_of("nodesWherePreemptionMightHelp")
def test_nodes_to_try(case: Case) -> None:
    version = Version118()
    tried = [node for node, status in statuses_of(case).items() if version.may_help(status)]
    assert tried == case["expect"]["nodesToTry"]


@cases_of("preempt")
def test_whole_preemption(case: Case) -> None:
    verdict = Table(case).preempt(statuses_of(case), [FakeExtender(each) for each in case["extenders"]])
    expected = case["expect"]
    assert verdict.nominated_nodes == ([expected["chosen"]] if expected["chosen"] else [])
    assert [victim.pod for node in verdict.nominated_nodes for victim in verdict.victims[node]] == expected["victims"]
    assert verdict.nominations_to_clear == expected["nominatedPodsToClear"]


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "expectDefaultProfile" in case],
    ids=lambda case: "/".join((case["kind"], case["name"].split("/")[1])),
)
def test_default_profile_on_the_same_objects(case: Case) -> None:
    gates = {"NonPreemptingPriority": case.get("config", {}).get("enableNonPreempting", False)}
    scheduler = legacy_scheduler("kube-1.18", feature_gates=gates)
    verdict = scheduler.decide(scheduler.prepare(cluster_of(case["objects"]), now=NOW), pod_of(case["pod"]))
    refused = {node: status for node, status in verdict.filter.items() if not status.is_success}
    candidates = {
        each.node: {"victims": each.victims, "numPDBViolations": each.num_pdb_violations} for each in verdict.candidates
    }
    expected = case["expectDefaultProfile"]
    assert {node: status.reasons for node, status in refused.items()} == expected["filter"]
    assert {node: str(status.code) for node, status in refused.items()} == expected["filterCodes"]
    assert verdict.feasible_nodes == expected["feasible"]
    assert verdict.message == (expected["fitError"] or "")
    assert (verdict.eligibility and verdict.eligibility.eligible) == expected["eligible"]
    assert verdict.potential_nodes == expected["nodesToTry"]
    assert candidates == expected["candidates"]
    assert sorted(verdict.nominated_nodes) == sorted(expected["chosenAnyOf"])


def test_all_recorded_verdicts_agree(tmp_path: Path, sample: Sample) -> None:
    scenarios = sample(read_lines(LEGACY / "kube-1.18.jsonl.gz"))
    assert not [each["name"] for each in scenarios if "error" in each["expect"]]
    assert disagreeing(scenarios, batch_answers(scenarios, tmp_path)) == {}
