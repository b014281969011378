"""Remedies for Workloads that Kueue does not admit: an expert's for each cause, and that all keep their promise.

Each is applied to the objects or to the manifest, and the request is answered again.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kpreempt.analysis.remedies.edits import edited_documents
from kpreempt.report.remedies import action, commands
from kpreempt.schedulers.kueue import KueueConfiguration
from kpreempt.schedulers.kueue.objects import FairSharingConfiguration
from kpreempt.verdict.kueue import KueueAnswer
from kpreempt.verdict.remedies import Remedy, RemedyStage
from tests.kueue_scenarios import (
    Document,
    applied,
    check_promise,
    cluster_queue,
    explained,
    flavor,
    job,
    local_queue,
    namespace,
    node,
    workload,
)

BASE = [namespace(), flavor()]
LOWER = {"withinClusterQueue": "LowerPriority"}


def preemption(within: str = "Never", reclaim: str = "Never", borrow: str = "") -> Document:
    found: Document = {"withinClusterQueue": within, "reclaimWithinCohort": reclaim}
    return {**found, "borrowWithinCohort": {"policy": borrow}} if borrow else found


class Case(NamedTuple):
    """A cluster with a pending Workload or manifest ``w``, its remedies in words with the Workloads they preempt."""

    objects: list[Document]
    expected: list[tuple[str, str]]
    manifest: Document | None = None
    config: KueueConfiguration = KueueConfiguration()  # type: ignore[assignment] # frozen


BORROWING = [
    *BASE,
    cluster_queue("a", "2", cohort="pool", preemption=preemption("LowerPriority", "Any", "Never")),
    cluster_queue("b", "2", cohort="pool"),
    local_queue("a"),
    local_queue("other", "b"),
    workload("low", "a", "4", admitted="4"),
    workload("w", "a", "4", priority=1000),
]
CASES = {
    "a LocalQueue's name is misspelled": Case(
        [*BASE, cluster_queue("a", "4"), local_queue("training", "a"), workload("w", "trainnig", "2")],
        [("set queueName: training in Workload team/w", "")],
    ),
    "a Job's queue is misspelled": Case(
        [*BASE, cluster_queue("a", "4"), local_queue("training", "a")],
        [("set metadata.labels[kueue.x-k8s.io/queue-name]: training in Job team/w", "")],
        job("w", "trainnig", "2"),
    ),
    "a flavor is missing": Case(
        [namespace(), cluster_queue("a", "4"), local_queue("a"), workload("w", "a", "2")],
        [("create ResourceFlavor main", "")],
    ),
    "a flavor's name is misspelled": Case(
        [namespace(), flavor("mian"), cluster_queue("a", "4"), local_queue("a"), workload("w", "a", "2")],
        [("set flavors[main].name: mian in ClusterQueue a", ""), ("create ResourceFlavor main", "")],
    ),
    "queues are stopped": Case(
        [
            *BASE,
            cluster_queue("a", "4", stopPolicy="Hold"),
            local_queue("a", stopPolicy="Hold"),
            workload("w", "a", "2"),
        ],
        [("set stopPolicy: None in LocalQueue team/a, and set stopPolicy: None in ClusterQueue a", "")],
    ),
    "the Workload is inactive": Case(
        [*BASE, cluster_queue("a", "4"), local_queue("a"), workload("w", "a", "2", active=False)],
        [("set active: true in Workload team/w", "")],
    ),
    "an admission check is missing": Case(
        [
            *BASE,
            cluster_queue("a", "4", admissionChecksStrategy={"admissionChecks": [{"name": "gone"}]}),
            local_queue("a"),
            workload("w", "a", "2"),
        ],
        [("remove admissionChecks[gone] from ClusterQueue a", "")],
    ),
    "the namespace lacks a label": Case(
        [
            *BASE,
            cluster_queue("a", "4", namespaceSelector={"matchLabels": {"tier": "batch"}}),
            local_queue("a"),
            workload("w", "a", "2"),
        ],
        [("set metadata.labels[tier]: batch in Namespace team", "")],
    ),
    "a Job has too many pods": Case(
        [*BASE, cluster_queue("a", "4"), local_queue("a"), workload("w", "a", "1", count=6, owner="Job")],
        [
            ("set parallelism: 4 in Job team/w", ""),
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 4 to 6", ""),
        ],
    ),
    "a manifest's Job has too many pods": Case(
        [*BASE, cluster_queue("a", "4"), local_queue("a")],
        [
            ("request 2 cpu instead of 3", ""),
            ("set parallelism: 1 in Job team/w", ""),
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 4 to 6", ""),
        ],
        job("w", "a", "3", parallelism=2),
    ),
    "the borrowing limit is too low": Case(
        [
            *BASE,
            cluster_queue("a", "2", cohort="pool", more={"borrowingLimit": "1"}),
            cluster_queue("b", "4", cohort="pool"),
            local_queue("a"),
            workload("w", "a", "5"),
        ],
        [
            ("request 3 cpu instead of 5", ""),
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 2 to 4", ""),
            ("raise the borrowingLimit of cpu in flavor main of ClusterQueue a from 1 to 3", ""),
        ],
    ),
    "the lending limit is too low": Case(
        [
            *BASE,
            cluster_queue("a", "2", cohort="pool"),
            cluster_queue("b", "4", cohort="pool", more={"lendingLimit": "1"}),
            local_queue("a"),
            workload("w", "a", "5"),
        ],
        [
            ("request 3 cpu instead of 5", ""),
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 2 to 4", ""),
            ("raise the lendingLimit of cpu in flavor main of ClusterQueue b from 1 to 3", ""),
        ],
    ),
    "it would preempt while borrowing": Case(
        BORROWING,
        [
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 2 to 6", ""),
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 2 to 4", "team/low"),
            ("set preemption.borrowWithinCohort.policy: LowerPriority in ClusterQueue a", "team/low"),
        ],
    ),
    "its ClusterQueue does not preempt": Case(
        [
            *BASE,
            cluster_queue("a", "4"),
            local_queue("a"),
            workload("low", "a", "4", admitted="4"),
            workload("w", "a", "4", priority=5),
        ],
        [
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 4 to 8", ""),
            ("set preemption.withinClusterQueue: LowerPriority in ClusterQueue a", "team/low"),
        ],
    ),
    "its ClusterQueue does not reclaim": Case(
        [
            *BASE,
            cluster_queue("a", "4", cohort="pool"),
            cluster_queue("b", "0", cohort="pool"),
            local_queue("a"),
            workload("low", "b", "4", admitted="4", priority=3),
            workload("w", "a", "4", priority=4),
        ],
        [
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 4 to 8", ""),
            ("set preemption.reclaimWithinCohort: LowerPriority in ClusterQueue a", "team/low"),
        ],
    ),
    "what borrows its quota is as important": Case(
        [
            *BASE,
            cluster_queue("a", "4", cohort="pool"),
            cluster_queue("b", "0", cohort="pool"),
            local_queue("a"),
            workload("low", "b", "4", admitted="4", priority=4),
            workload("w", "a", "4", priority=4),
        ],
        [("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 4 to 8", "")],
    ),
    "its priority is too low": Case(
        [
            *BASE,
            cluster_queue("a", "4", preemption=LOWER),
            local_queue("a"),
            workload("low", "a", "4", admitted="4", priority=3),
            workload("w", "a", "4", priority=3),
        ],
        [
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 4 to 8", ""),
            ("raise the priority of Workload team/w from 3 to 4", "team/low"),
        ],
    ),
    "it does not tolerate the flavor's taint": Case(
        [
            namespace(),
            flavor(nodeTaints=[{"key": "spot", "value": "true", "effect": "NoSchedule"}]),
            cluster_queue("a", "4"),
            local_queue("a"),
            workload("w", "a", "4"),
        ],
        [("tolerate the taint spot=true:NoSchedule", "")],
    ),
    "a head that does not fit is first": Case(
        [
            *BASE,
            cluster_queue("a", "4", queueingStrategy="StrictFIFO"),
            local_queue("a"),
            workload("big", "a", "6", created="2026-11-22T09:00:00Z"),
            workload("w", "a", "3"),
        ],
        [
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 4 to 10", ""),
            ("set queueingStrategy: BestEffortFIFO in ClusterQueue a", ""),
            ("raise the priority of Workload team/w from 0 to 1", ""),
        ],
    ),
    "the racks of a topology are too small": Case(
        [
            namespace(),
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Topology",
                "metadata": {"name": "racks"},
                "spec": {"levels": [{"nodeLabel": "rack"}]},
            },
            flavor(nodeLabels={"pool": "gpu"}, topologyName="racks"),
            node("n1", "4", pool="gpu", rack="r1"),
            node("n2", "4", pool="gpu", rack="r2"),
            cluster_queue("a", "20"),
            local_queue("a"),
            workload("w", "a", "2", count=5, required="rack"),
        ],
        [
            ("set podSets[main].count: 2 in Workload team/w", ""),
            ("add 2 nodes like n1", ""),
            ("add 2 nodes like n2", ""),
        ],
    ),
    "nodes are too small for more quota": Case(
        [*BASE, node("n1", "4"), cluster_queue("a", "2"), local_queue("a"), workload("w", "a", "3", count=2)],
        [
            ("request 1 cpu instead of 3", ""),
            ("raise the nominalQuota of cpu in flavor main of ClusterQueue a from 2 to 6", ""),
        ],
    ),
}


def answers(case: Case, remedy: Remedy | None = None) -> KueueAnswer:
    """The answer about the case, also after a remedy."""
    name = "" if case.manifest is not None else "w"
    if remedy is None:
        return explained(case.objects, name, case.manifest, case.config)
    manifest = edited_documents([case.manifest], remedy.edits)[0] if case.manifest is not None else None
    key = explained(case.objects, name, case.manifest, case.config).workload
    return explained(applied(case.objects, remedy, key), name, manifest, case.config)


@pytest.mark.parametrize("name", CASES)
def test_remedies_are_those_of_an_expert(name: str) -> None:
    found = [(action(each), ", ".join(each.evicted)) for each in answers(CASES[name]).remedies]
    assert found == CASES[name].expected


@pytest.mark.parametrize("name", CASES)
def test_every_remedy_keeps_its_promise(name: str) -> None:
    case = CASES[name]
    before = answers(case)
    priorities = {
        f"team/{each['metadata']['name']}": each["spec"]["priority"]
        for each in case.objects
        if each["kind"] == "Workload"
    }
    for remedy in before.remedies:
        check_promise(before, answers(case, remedy), remedy, priorities)


def test_fair_sharing_has_its_own_reason_not_to_preempt() -> None:
    config = KueueConfiguration(fair_sharing=FairSharingConfiguration())
    objects = [
        *BASE,
        cluster_queue("a", "2", cohort="pool", preemption=LOWER),
        cluster_queue("b", "2", cohort="pool"),
        local_queue("a"),
        workload("low", "a", "4", admitted="4"),
        workload("w", "a", "4", priority=1000),
    ]
    found = explained(objects, "w", config=config)
    assert found.no_preemption == [
        "preemption in flavor main is not tried: it needs 2 cpu beyond the nominal quota of 2, and"
        " reclaimWithinCohort is Never"
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "it would preempt while borrowing",
            "preemption in flavor main is not tried: it needs 2 cpu beyond the nominal quota of 2, and"
            " borrowWithinCohort is Never",
        ),
        (
            "its ClusterQueue does not reclaim",
            "preemption in flavor main has no candidates that would free enough: withinClusterQueue is Never, and"
            " reclaimWithinCohort is Never",
        ),
        ("the borrowing limit is too low", ""),
    ],
)
def test_the_answer_says_why_nothing_is_preempted(name: str, expected: str) -> None:
    assert answers(CASES[name]).no_preemption == [each for each in [expected] if each]


def test_pods_that_find_no_node_are_counted() -> None:
    fewer, more = answers(CASES["nodes are too small for more quota"]).remedies
    assert (fewer.scheduled, fewer.pods) == (2, 2)
    assert (more.scheduled, more.pods) == (1, 2)


def test_an_owner_that_would_revert_a_change_is_named() -> None:
    objects = [*BASE, cluster_queue("a", "4"), local_queue("a"), workload("w", "a", "1", count=6, owner="PyTorchJob")]
    found = {each.stage: each.manager for each in explained(objects, "w").remedies}
    assert found == {RemedyStage.REQUESTER: "PyTorchJob team/w", RemedyStage.CAPACITY: ""}


def test_an_inactive_admission_check_is_to_be_repaired() -> None:
    check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "budget"}}
    objects = [
        *BASE,
        {**check, "spec": {"controllerName": "example.com/budget"}},
        cluster_queue("a", "4", admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]}),
        local_queue("a"),
        workload("w", "a", "2"),
    ]
    before = explained(objects, "w")
    [remedy] = before.remedies
    assert (action(remedy), commands(remedy)) == ("repair AdmissionCheck budget", [])
    after = explained(applied(objects, remedy, "team/w"), "w")
    check_promise(before, after, remedy, {"team/w": 0})
    assert after.alone.waits_for_checks


def test_a_device_is_not_dropped() -> None:
    queue = cluster_queue("a", "4")
    group = queue["spec"]["resourceGroups"][0]
    group["coveredResources"] = ["cpu", "nvidia.com/gpu"]
    group["flavors"][0]["resources"].append({"name": "nvidia.com/gpu", "nominalQuota": 1})
    waiting = workload("w", "a", "1")
    container = waiting["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["nvidia.com/gpu"] = 2
    [remedy] = explained([*BASE, queue, local_queue("a"), waiting], "w").remedies
    words = "raise the nominalQuota of nvidia.com/gpu in flavor main of ClusterQueue a from 1 to 2"
    assert action(remedy) == words


def test_commands_apply_the_remedies() -> None:
    _, smaller, policy = answers(CASES["it would preempt while borrowing"]).remedies
    groups = (
        '{"spec":{"resourceGroups":[{"coveredResources":["cpu"],'
        '"flavors":[{"name":"main","resources":[{"name":"cpu","nominalQuota":"4"}]}]}]}}'
    )
    assert commands(smaller) == [f"kubectl patch clusterqueue a --type merge -p '{groups}'"]
    patch = '{"spec":{"preemption":{"borrowWithinCohort":{"policy":"LowerPriority"}}}}'
    assert commands(policy) == [f"kubectl patch clusterqueue a --type merge -p '{patch}'"]
    [create] = answers(CASES["a flavor is missing"]).remedies
    assert commands(create) == [
        'echo \'{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"main"},"spec":{}}\''
        " | kubectl create -f -"
    ]


@pytest.mark.parametrize("admitted", ["", "2"])
def test_no_remedies_are_searched_without_a_problem(admitted: str) -> None:
    objects = [*BASE, cluster_queue("a", "4"), local_queue("a"), workload("w", "a", "2", admitted=admitted)]
    found = explained(objects, "w")
    assert (found.remedies, found.search) == ([], None)
