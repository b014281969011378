"""Decisions of the schedulers 1.8.15 and 1.13.12 on recorded scenarios, and the table tests of their preemption.

Every case of the tables is run; none is omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES
from kpreempt.schedulers.legacy.base.cycle import Cycle
from kpreempt.schedulers.legacy.base.extenders import Filtered
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.predicates import DryRun, Filter, FilterRun, LegacyError, Victims, choose
from kpreempt.schedulers.legacy.base.version import Version
from kpreempt.schedulers.legacy.factory import LegacyScheduler
from kpreempt.schedulers.legacy.v1_8 import Version18
from kpreempt.schedulers.legacy.v1_13 import Version113
from kpreempt.verdict import Code, Outcome, PodSummary, Status, Verdict
from tests.conformance.cases import cluster_of, pod_of, read_lines
from tests.conformance.comparison import batch_answers, disagreeing
from tests.tiers import Sample

Case = dict[str, Any]

LEGACY = Path(__file__).resolve().parents[2] / "fixtures" / "conformance" / "legacy"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
VERSIONS: dict[str, tuple[Version, Sequence[Filter]]] = {
    "v1.8.15": (Version18(), Version18.predicates),
    "v1.13.12": (Version113(), Version113.predicates),
}
CASES = [case for minor in ("1.8", "1.13") for case in read_lines(LEGACY / "upstream" / f"upstream-{minor}.jsonl.gz")]
KINDS = ("nodesWherePreemptionMightHelp", "pickOneNodeForPreemption", "preempt", "selectNodesForPreemption")

# Upstream's predicates and extenders on a node's name.
BY_NAME = {
    "truePredicate": lambda node, pod: True,
    "falsePredicate": lambda node, pod: False,
    "matchesPredicate": lambda node, pod: node == pod,
    "truePredicateExtender": lambda node, pod: True,
    "falsePredicateExtender": lambda node, pod: False,
    "machine1PredicateExtender": lambda node, pod: node == "machine1",
}


def filter_by_name(name: str) -> Filter:
    def check(meta: Any, node_info: NodeInfo) -> Status:
        fits = BY_NAME[name](node_info.name, meta.pod.pod.metadata.name)
        return Status(Code.NONE) if fits else Status(Code.NONE, ["FakePredicateError"])

    return Filter(name, check)


class FakeExtender:
    """Upstream's extender with such predicates."""

    name = "fake"

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.is_ignorable = bool(case.get("ignorable"))
        self.is_prioritizer = False
        self.supports_preemption = bool(case.get("supportsPreemption"))
        self._is_interested = not case.get("unInterested")
        self._predicates: Sequence[str] = case["predicates"]

    def is_interested(self, pod: Pod) -> bool:
        return self._is_interested

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        passing = [node_info.name for node_info in nodes if self._fits(node_info.name)]
        return Filtered(passing, {info.name: "refused" for info in nodes if info.name not in passing})

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], node_infos: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        return {node: victims for node, victims in candidates.items() if self._fits(node)}

    def _fits(self, node: str) -> bool:
        if "errorPredicateExtender" in self._predicates:
            raise LegacyError("Some error")
        return all(BY_NAME[predicate](node, "") for predicate in self._predicates)


class Table:
    """The scheduler and the cluster of one case."""

    def __init__(self, case: Case) -> None:
        self.version, predicates = VERSIONS[case["version"]]
        wanted = set(case["filters"])
        real = [each for each in predicates if each.name in wanted]
        self.filters = [*real, *(filter_by_name(name) for name in wanted - {each.name for each in real})]
        self.scheduler = LegacyScheduler(self.version, filters=self.filters)
        self.cluster: Cluster = self.scheduler.prepare(cluster_of(case["objects"]), now=NOW)
        self.pod = pod_of(case["pod"])

    def candidates(self) -> dict[str, Victims]:
        version, info = self.version, PodInfo(self.pod, self.version.accounting)
        fits = FilterRun(
            self.filters,
            self.cluster,
            info,
            stops_at_first=version.stops_at_first,
            counts_nominated=version.counts_nominated,
        )
        dry_run = DryRun(fits, version.importance(NOW), version.budget_rule, self.cluster.budgets)
        state = version.prepare_pod(self.cluster, info)
        outcomes = {node.name: dry_run.select_victims(state, node) for node in self.cluster.node_infos}
        return {node: outcome for node, outcome in outcomes.items() if isinstance(outcome, Victims)}

    def preempt(self, failed: Mapping[str, Sequence[str]], extenders: Iterable[Case]) -> Verdict:
        """The preemption after the filters failed."""
        metadata = self.pod.metadata
        summary = PodSummary(namespace=metadata.namespace, name=metadata.name)
        frame = Verdict(algorithm=self.version.algorithm, outcome=Outcome.NOT_SCHEDULED, pod=summary)
        request = [FakeExtender(each) for each in extenders]
        cycle = Cycle(self.version, self.filters, request, self.cluster, self.pod, frame, NO_PHASES)
        return cycle.preempt({node: Status(Code.NONE, list(reasons or [])) for node, reasons in failed.items()})


def shown(candidates: Mapping[str, Victims], expected: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates, with the expected fields of each: 1.8 has no violations."""
    found = {
        node: {"numPDBViolations": each.num_violations, "victims": [info.key for info in each.pods]}
        for node, each in candidates.items()
    }
    keys = {key for each in expected.values() for key in each} or {"victims"}
    return {node: {key: value for key, value in each.items() if key in keys} for node, each in found.items()}


def cases_of(kind: str) -> Any:
    cases = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize(
        "case", cases, ids=[f"{case['version']} {case['name'].split('/')[1]}" for case in cases]
    )


def test_every_case_is_of_a_kind_that_is_run() -> None:
    assert {case["kind"] for case in CASES} == set(KINDS)
    assert len(CASES) == 54


@cases_of("selectNodesForPreemption")
def test_victims_on_each_node(case: Case) -> None:
    expected = case["expect"]["candidates"]
    # The scheduler's cache in the tests of 1.13 does not have this node yet.
    objects = [each for each in case["objects"] if each["metadata"]["name"] != "newnode"]
    assert shown(Table({**case, "objects": objects}).candidates(), expected) == expected


@cases_of("pickOneNodeForPreemption")
def test_the_chosen_node(case: Case) -> None:
    table, expected = Table(case), case["expect"]
    candidates = table.candidates()
    assert shown(candidates, expected["candidates"]) == expected["candidates"]
    assert sorted(choose(candidates, table.version.criteria(NOW)).tied) == sorted(expected["chosenAnyOf"])


@cases_of("nodesWherePreemptionMightHelp")
def test_nodes_to_try(case: Case) -> None:
    version, _ = VERSIONS[case["version"]]
    nodes = [each["metadata"]["name"] for each in case["objects"] if each["kind"] == "Node"]
    tried = [node for node in nodes if version.may_help(Status(Code.NONE, case["filter"].get(node, [])))]
    assert tried == case["expect"]["nodesToTry"]


@cases_of("preempt")
def test_whole_preemption(case: Case) -> None:
    verdict, expected = Table(case).preempt(case["filter"], case["extenders"]), case["expect"]
    assert verdict.nominated_nodes == ([expected["chosen"]] if expected["chosen"] else [])
    assert [victim.pod for node in verdict.nominated_nodes for victim in verdict.victims[node]] == expected["victims"]
    assert verdict.nominations_to_clear == expected["nominatedPodsToClear"]


WITH_PROFILE = [case for case in CASES if case.get("expectDefaultProfile")]


@pytest.mark.parametrize("case", WITH_PROFILE, ids=[f"{case['version']} {case['name']}" for case in WITH_PROFILE])
def test_whole_default_profile_on_the_objects_of_a_case(case: Case) -> None:
    version, expected = VERSIONS[case["version"]][0], case["expectDefaultProfile"]
    scheduler = LegacyScheduler(version)
    verdict = scheduler.decide(scheduler.prepare(cluster_of(case["objects"]), now=NOW), pod_of(case["pod"]))
    failed = {node: sorted(status.reasons) for node, status in verdict.filter.items() if not status.is_success}
    assert failed == {node: sorted(reasons) for node, reasons in expected["filter"].items()}
    assert sorted(verdict.feasible_nodes) == sorted(expected["feasible"])
    assert verdict.message == (expected["fitError"] or "")
    assert verdict.potential_nodes == (expected["nodesToTry"] or [])
    assert sorted(verdict.nominated_nodes) == sorted(expected["chosenAnyOf"] or [])
    assert {each.node: each.victims for each in verdict.candidates} == {
        node: each["victims"] for node, each in (expected["candidates"] or {}).items()
    }


@pytest.mark.parametrize("minor", ["1.8", "1.13"])
def test_all_recorded_verdicts_agree(minor: str, tmp_path: Path, sample: Sample) -> None:
    scenarios = sample(read_lines(LEGACY / f"kube-{minor}.jsonl.gz"))
    assert not [each["name"] for each in scenarios if "error" in each["expect"]]
    assert disagreeing(scenarios, batch_answers(scenarios, tmp_path)) == {}
