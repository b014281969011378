"""What a change takes away from the protection of running pods, and which PDBs block drains after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt import Cluster, Gate
from kpreempt.verdict.check import Check, FindingStatus

Document = dict[str, Any]
LABELS = {"app": "db", "tier": "data"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def container(image: str = "db:1") -> Document:
    return {"name": "db", "image": image, "resources": {"requests": {"cpu": "100m"}}}


def node(name: str) -> Document:
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"allocatable": allocatable, "nodeInfo": {"kubeletVersion": "v1.36.2"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def deployment(replicas: int | None = 3, labels: Document | None = None, image: str = "db:1", **pod: Any) -> Document:
    template = {"metadata": {"labels": labels or LABELS}, "spec": {"containers": [container(image)], **pod}}
    size = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {**size, "selector": {"matchLabels": {"app": "db"}}, "template": template},
    }


def pod(number: int, *, labels: Document | None = None, owned: bool = True, **spec: Any) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "db-1", "uid": "r-db", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"db-1-{number}" if owned else f"lone-{number}",
            "namespace": "shop",
            "labels": labels or {**LABELS, "pod-template-hash": "1"},
            **({"ownerReferences": [owner]} if owned else {}),
        },
        "spec": {"nodeName": "n1", "priority": 0, "containers": [container()], **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def running(size: int = 3, *, labels: Document | None = None, **pod_spec: Any) -> list[Document]:
    """A Deployment of this size, with its ReplicaSet and pods."""
    above = deployment(size, labels, **{key: value for key, value in pod_spec.items() if key != "priority"})
    above["metadata"].update(uid="d-db", generation=1)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "d-db", "controller": True}
    hashed = {**(labels or LABELS), "pod-template-hash": "1"}
    replica_set = deployment(size, hashed, **{key: value for key, value in pod_spec.items() if key != "priority"})
    replica_set["kind"] = "ReplicaSet"
    replica_set["metadata"] = {"name": "db-1", "namespace": "shop", "uid": "r-db", "ownerReferences": [owner]}
    replica_set["spec"]["selector"] = {"matchLabels": {"app": "db", "pod-template-hash": "1"}}
    return [above, replica_set, *(pod(number, labels=hashed, **pod_spec) for number in range(size))]


def pdb(name: str = "db", selector: Document | None = None, namespace: str = "shop", **spec: Any) -> Document:
    chosen = {"matchLabels": {"app": "db"}} if selector is None else selector
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": chosen, **spec},
    }


def priority_class(name: str, value: int, *, default: bool = False) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }


def quota(**hard: str) -> Document:
    metadata = {"name": "all", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def limit_range(**most: str) -> Document:
    spec = {"limits": [{"type": "Container", "max": most}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all", "namespace": "shop"}, "spec": spec}


def hpa(least: int) -> Document:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"minReplicas": least, "maxReplicas": 9, "scaleTargetRef": target},
    }


def namespace(**labels: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}


def applied(document: Document) -> Document:
    """The object as ``kubectl apply`` leaves it."""
    metadata = {**document["metadata"], "annotations": {LAST_APPLIED: json.dumps(document)}}
    return {**document, "metadata": metadata}


def cluster(*objects: Document) -> Cluster:
    return Cluster.of([node("n1"), node("n2"), *objects])


def check(there: list[Document], change: list[Document], **options: Any) -> Check:
    return cluster(*there).check(change, **options)


def findings(answer: Check) -> list[tuple[str, str, str]]:
    return [(str(each.rule), each.subject, each.detail) for each in answer.findings]


PDB = "PodDisruptionBudget shop/db"


@pytest.mark.parametrize(
    ("before", "after", "size", "detail"),
    [
        pytest.param({"minAvailable": 3}, {"minAvailable": 1}, 3, "allowed 0 disruptions, now 2", id="fewer stay"),
        pytest.param({"maxUnavailable": 1}, {"maxUnavailable": 2}, 3, "allowed 1 disruption, now 2", id="more go"),
        pytest.param({"minAvailable": "50%"}, {"minAvailable": 1}, 4, "allowed 2 disruptions, now 3", id="to a number"),
        pytest.param({"minAvailable": 2}, {"minAvailable": "50%"}, 3, "", id="a share that is as many"),
        pytest.param(
            {"minAvailable": 2}, {"minAvailable": "33%"}, 3, "allowed 1 disruption, now 2", id="a lower share"
        ),
        pytest.param({"maxUnavailable": 1}, {"minAvailable": 2}, 3, "", id="the other field, as many"),
        pytest.param({"maxUnavailable": 2}, {"maxUnavailable": 1}, 3, "", id="stricter"),
        pytest.param(
            {"maxUnavailable": 1}, {"maxUnavailable": 2}, 1, "allowed 1 disruption of 2 pods, now 2", id="one pod alone"
        ),
        pytest.param(
            {"minAvailable": 1, "unhealthyPodEvictionPolicy": "IfHealthyBudget"},
            {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
            3,
            "protected unready pods; unhealthyPodEvictionPolicy AlwaysAllow now lets a drain evict them",
            id="unready pods may go",
        ),
    ],
)
def test_a_pdb_that_allows_more_for_the_same_pods(before: Document, after: Document, size: int, detail: str) -> None:
    answer = check([*running(size), pdb(**before)], [pdb(**after)])
    assert findings(answer) == ([("pdb-weakened", PDB, detail)] if detail else [])
    assert answer.passed is not bool(detail)
    assert answer.summary.startswith(f"{PDB} {detail}" if detail else "harmless")


@given(
    old=st.one_of(st.integers(0, 8), st.integers(0, 100).map("{}%".format)),
    new=st.one_of(st.integers(0, 8), st.integers(0, 100).map("{}%".format)),
    fields=st.tuples(*[st.sampled_from(["minAvailable", "maxUnavailable"])] * 2),
    size=st.integers(1, 5),
)
@settings(max_examples=40, deadline=None)
def test_a_pdb_is_weakened_or_its_reverse_is(
    old: int | str, new: int | str, fields: tuple[str, str], size: int
) -> None:
    one, other = pdb(**{fields[0]: old}), pdb(**{fields[1]: new})
    there, back = (
        [each for each in check([*running(size), a], [b]).findings if each.rule == "pdb-weakened"]
        for a, b in ((one, other), (other, one))
    )
    amounts = [int(word) for each in there for word in each.detail.replace(",", "").split() if word.isdigit()]
    assert not there or amounts[0] < amounts[-1]
    # One that holds nothing back at this size is compared at others, where either may allow more.
    if there and back:
        assert any("pods, now" in each.detail or "pod, now" in each.detail for each in (*there, *back))


@pytest.mark.parametrize(
    ("there", "change", "options", "detail"),
    [
        pytest.param(
            [pdb(maxUnavailable=1)],
            [pdb(selector={"matchLabels": {"app": "dbx"}}, maxUnavailable=1)],
            {},
            "protected 3 pods, now none: Deployment shop/db",
            id="another selector",
        ),
        pytest.param(
            [pdb(maxUnavailable=1)],
            [pdb("other", maxUnavailable=1, selector={"matchLabels": {"app": "x"}})],
            {"base": [pdb(maxUnavailable=1)], "prune": True},
            "protected 3 pods, now none (deleted): Deployment shop/db",
            id="pruned",
        ),
        pytest.param(
            [pdb(maxUnavailable=1)],
            [pdb("other", maxUnavailable=1)],
            {"base": [pdb(maxUnavailable=1)], "prune": True},
            "",
            id="renamed",
        ),
        pytest.param(
            [pdb(maxUnavailable=1)],
            [pdb("other", maxUnavailable=2)],
            {"base": [pdb(maxUnavailable=1)], "prune": True},
            "allowed 1 disruption, now 2 by PodDisruptionBudget shop/other",
            id="renamed and loosened",
        ),
        pytest.param(
            [pdb(maxUnavailable=1)],
            [pdb(maxUnavailable=1, namespace="default")],
            {"base": [pdb(maxUnavailable=1)], "prune": True},
            "protected 3 pods, now none (deleted): Deployment shop/db",
            id="in another namespace",
        ),
        pytest.param(
            [pdb(selector={"matchLabels": {"tier": "data"}}, maxUnavailable=1)],
            [deployment(labels={"app": "db", "tier": "cache"})],
            {},
            "protected 3 pods, now none: Deployment shop/db",
            id="another label in the template",
        ),
        pytest.param(
            [pdb(selector={"matchLabels": {"tier": "data"}}, maxUnavailable=1)],
            [deployment(labels={"app": "db"})],
            {},
            "protected 3 pods, now none: Deployment shop/db",
            id="a label less in the template",
        ),
        pytest.param(
            [pdb(maxUnavailable=1)],
            [deployment(labels={**LABELS, "version": "2"})],
            {},
            "",
            id="one more label in the template",
        ),
        pytest.param(
            [pdb(selector={"matchLabels": {"tier": "data"}}, maxUnavailable=1)],
            [pod(0, labels={"app": "db", "pod-template-hash": "1", "tier": "cache"})],
            {},
            "protected 3 pods, now 2: Deployment shop/db",
            id="a running pod",
        ),
        pytest.param([pdb(minAvailable=2)], [deployment(6)], {}, "", id="more replicas"),
        pytest.param([pdb(minAvailable=1)], [deployment(2)], {}, "", id="fewer replicas"),
        pytest.param([pdb(minAvailable="50%")], [deployment(image="db:2")], {}, "", id="a new image"),
    ],
)
def test_pods_that_a_pdb_no_longer_protects(
    there: list[Document], change: list[Document], options: Document, detail: str
) -> None:
    answer = check([*running(), *there], change, **options)
    weakened = [each for each in findings(answer) if each[0] == "pdb-weakened"]
    assert weakened == ([("pdb-weakened", PDB, detail)] if detail else [])
    if detail:
        assert not answer.passed
        assert detail in answer.summary


def test_a_label_that_the_manifest_of_a_pod_has_no_more_is_gone() -> None:
    lone = pod(0, labels={"app": "db"}, owned=False)
    without = {**lone, "metadata": {"name": "lone-0", "namespace": "shop"}}
    answer = check([applied(lone), pdb(minAvailable=1)], [without])
    assert ("pdb-weakened", PDB, "protected 1 pod, now none: Pod shop/lone-0") in findings(answer)


@pytest.mark.parametrize(
    ("there", "change", "found"),
    [
        pytest.param([pdb(minAvailable=1)], [deployment(1)], [("pdb-blocks-drain", PDB)], id="a scale-down"),
        pytest.param([pdb(minAvailable=1)], [deployment(2)], [], id="a scale-down that leaves one to go"),
        pytest.param([pdb(minAvailable=3)], [deployment(image="db:2")], [], id="it blocked before"),
        pytest.param([pdb(minAvailable=3)], [deployment(2)], [], id="it is no worse"),
        pytest.param(
            [pdb(maxUnavailable=1)],
            [pdb("second", selector={"matchLabels": {"tier": "data"}}, maxUnavailable=1)],
            [("pdb-blocks-drain", "PodDisruptionBudget shop/second")],
            id="a second PDB",
        ),
        pytest.param(
            [pdb(maxUnavailable=1), pdb("cache", selector={"matchLabels": {"tier": "cache"}}, maxUnavailable=1)],
            [deployment(labels={"app": "db", "tier": "cache"})],
            [("pdb-blocks-drain", "PodDisruptionBudget shop/cache"), ("pdb-blocks-drain", PDB)],
            id="pods that get a second PDB by their labels",
        ),
        pytest.param(
            [],
            [pdb(selector={"matchLabels": {"app": "bd"}}, maxUnavailable=1)],
            [("pdb-selector", PDB)],
            id="a mistyped selector",
        ),
        pytest.param([], [pdb(selector={}, maxUnavailable=1)], [("pdb-selector", PDB)], id="an empty selector"),
        pytest.param([], [pdb(maxUnavailable=1)], [], id="a new PDB"),
    ],
)
def test_pdbs_after_the_change(there: list[Document], change: list[Document], found: list[tuple[str, str]]) -> None:
    answer = check([*running(), *there], change)
    assert [each[:2] for each in findings(answer)] == found
    assert answer.passed is not bool(found)


@pytest.mark.parametrize(
    ("least", "spec", "rules"),
    [
        pytest.param(1, {"minAvailable": 1}, ["pdb-blocks-at-hpa-minimum"], id="one pod, and it stays"),
        pytest.param(2, {"minAvailable": 2}, ["pdb-blocks-at-hpa-minimum"], id="as many as stay"),
        pytest.param(2, {"minAvailable": "60%"}, ["pdb-blocks-at-hpa-minimum"], id="a share that is all"),
        pytest.param(2, {"minAvailable": 1}, [], id="one may go"),
        pytest.param(1, {"maxUnavailable": 1}, [], id="one may always go"),
        pytest.param(3, {"minAvailable": 3}, ["pdb-blocks-drain"], id="at its minimum"),
    ],
)
def test_a_pdb_at_the_minimum_of_an_autoscaler(least: int, spec: Document, rules: list[str]) -> None:
    answer = check([*running(3), hpa(least)], [pdb(**spec)])
    assert [each[0] for each in findings(answer)] == rules
    assert answer.passed is (rules != ["pdb-blocks-drain"])
    assert ("harmless" in answer.summary) is not bool(rules)
    audited = [str(each.id) for each in cluster(*running(3), hpa(least), pdb(**spec)).budgets().findings]
    assert ("allows-none-at-hpa-minimum" in audited) is (rules == ["pdb-blocks-at-hpa-minimum"])


def test_an_autoscaler_whose_minimum_goes_down_to_that_of_a_pdb() -> None:
    answer = check([*running(3), hpa(2), pdb(minAvailable=1)], [deployment(None), hpa(1)], autoscaled="max")
    assert ("pdb-blocks-at-hpa-minimum", PDB) in [each[:2] for each in findings(answer)]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController"])
def test_any_workload_that_is_scaled_down_to_what_a_pdb_keeps(kind: str) -> None:
    def sized(replicas: int) -> Document:
        api = "v1" if kind == "ReplicationController" else "apps/v1"
        document = {**deployment(replicas), "kind": kind, "apiVersion": api}
        if api == "v1":
            document["spec"]["selector"] = {"app": "db"}
        return document

    owner = {"apiVersion": sized(3)["apiVersion"], "kind": kind, "name": "db", "uid": "w-db", "controller": True}
    there = sized(3)
    there["metadata"] = {**there["metadata"], "uid": "w-db"}
    pods = [pod(number) for number in range(3)]
    for number, each in enumerate(pods):
        each["metadata"] = {**each["metadata"], "name": f"db-{number}", "ownerReferences": [owner]}
    answer = check([there, *pods, pdb(minAvailable=1)], [sized(1)])
    assert ("pdb-blocks-drain", PDB) in [each[:2] for each in findings(answer)]


HIGH, LOW = priority_class("high", 1000), priority_class("low", -10)


@pytest.mark.parametrize(
    ("there", "change", "options", "found"),
    [
        pytest.param(
            running(priorityClassName="high", priority=1000),
            [deployment(priorityClassName="low")],
            {},
            [("priority-lowered", "Deployment shop/db", "had priority 1,000, now -10")],
            id="a lower class",
        ),
        pytest.param(
            running(priorityClassName="high", priority=1000),
            [deployment()],
            {},
            [("priority-lowered", "Deployment shop/db", "had priority 1,000, now 0")],
            id="no class",
        ),
        pytest.param(running(), [deployment(priorityClassName="high")], {}, [], id="a higher class"),
        pytest.param(
            running(priorityClassName="high", priority=1000),
            [deployment(image="db:2", priorityClassName="high")],
            {},
            [],
            id="a new image",
        ),
        pytest.param(
            running(),
            [deployment(preemptionPolicy="Never")],
            {},
            [
                (
                    "priority-lowered",
                    "Deployment shop/db",
                    "had preemptionPolicy PreemptLowerPriority, now Never",
                )
            ],
            id="it no longer preempts",
        ),
        pytest.param(
            running(priorityClassName="high", priority=1000),
            [],
            {"delete": ["priorityclass/high"]},
            [
                (
                    "priority-class-in-use",
                    "PriorityClass high",
                    "is deleted, and the next pods of Deployment shop/db are rejected: no PriorityClass with name high"
                    " was found",
                )
            ],
            id="its class is deleted",
        ),
        pytest.param(
            running(priorityClassName="high", priority=1000)[:1],
            [],
            {"delete": ["priorityclass/high"]},
            [
                (
                    "priority-class-in-use",
                    "PriorityClass high",
                    "is deleted, and the next pods of Deployment shop/db are rejected: no PriorityClass with name high"
                    " was found",
                )
            ],
            id="the class of a template without pods",
        ),
        pytest.param(running(), [], {"delete": ["priorityclass/high"]}, [], id="a class that nothing names"),
        pytest.param(
            running(priorityClassName="low", priority=-10),
            [deployment(priorityClassName="high")],
            {"delete": ["priorityclass/low"]},
            [],
            id="a class that the change leaves",
        ),
        pytest.param(
            running(),
            [priority_class("all", 500, default=True)],
            {},
            [
                (
                    "default-priority-changed",
                    "PriorityClass all",
                    "changes the default for pods without a PriorityClass:"
                    " they had priority 0 and now get priority 500, including"
                    " the next pods of Deployment shop/db",
                )
            ],
            id="a default",
        ),
        pytest.param(running(), [priority_class("all", 0, default=True)], {}, [], id="a default that changes nothing"),
        pytest.param(running(), [priority_class("all", 500)], {}, [], id="one more class"),
        pytest.param(
            [priority_class("all", 500, default=True), *running(priorityClassName="all", priority=500)],
            [],
            {"delete": ["priorityclass/all"]},
            [
                (
                    "priority-class-in-use",
                    "PriorityClass all",
                    "is deleted, and the next pods of Deployment shop/db are rejected: no PriorityClass with name all"
                    " was found",
                ),
                (
                    "default-priority-changed",
                    "PriorityClass all",
                    "changes the default for pods without a PriorityClass:"
                    " they had priority 500 and now get priority 0, including"
                    " the next pods of Deployment shop/db",
                ),
            ],
            id="a default that is named, too",
        ),
        pytest.param(
            [priority_class("all", 500, default=True)],
            [priority_class("other", 100, default=True)],
            {},
            [
                (
                    "apply-rejected",
                    "PriorityClass other",
                    "globalDefault: PriorityClass all is already marked as default. Only one default can exist",
                ),
            ],
            id="a second default",
        ),
        pytest.param(
            [quota(pods="5")],
            [quota(pods="10")],
            {},
            [("quota-loosened", "ResourceQuota shop/all", "limited pods to 5, now 10")],
            id="a higher quota",
        ),
        pytest.param(
            [quota(pods="5", **{"requests.cpu": "2"})],
            [quota(pods="4")],
            {},
            [("quota-loosened", "ResourceQuota shop/all", "limited requests.cpu to 2, now unlimited")],
            id="a quota without a limit",
        ),
        pytest.param([quota(pods="5")], [quota(pods="5000m")], {}, [], id="the same quota in other units"),
        pytest.param([quota(pods="5")], [quota(pods="4")], {}, [], id="a lower quota"),
        pytest.param([quota(cpu="5")], [quota(**{"requests.cpu": "5"})], {}, [], id="the other name of requests"),
        pytest.param(
            [limit_range(cpu="2")],
            [limit_range(memory="1Gi")],
            {},
            [("quota-loosened", "LimitRange shop/all", "limited cpu of a Container to 2, now unlimited")],
            id="a range without a maximum",
        ),
        pytest.param(
            [namespace(**{"pod-security.kubernetes.io/enforce": "restricted"})],
            [namespace(**{"pod-security.kubernetes.io/enforce": "baseline"})],
            {},
            [
                (
                    "namespace-relabeled",
                    "Namespace shop",
                    "had pod-security.kubernetes.io/enforce=restricted, now"
                    " pod-security.kubernetes.io/enforce=baseline",
                )
            ],
            id="another level of Pod Security",
        ),
        pytest.param([namespace(team="a")], [namespace(team="b")], {}, [], id="a label that nothing selects"),
    ],
)
def test_other_protection_that_is_taken_away(
    there: list[Document], change: list[Document], options: Document, found: list[tuple[str, str, str]]
) -> None:
    spaces = [] if any(each["kind"] == "Namespace" for each in there) else [namespace()]
    answer = check([HIGH, LOW, *spaces, *there], change, **options)
    assert findings(answer) == found
    assert answer.passed is not bool(found)
    if found:
        assert "harmless" not in answer.summary
        assert any(each[2] in answer.summary or each[1] in answer.summary for each in found)


@pytest.mark.parametrize(
    ("there", "change", "found"),
    [
        pytest.param(
            [],
            [quota(pods="2")],
            [("ResourceQuota shop/all", "pods: 3 used, 2 allowed, so new pods are rejected")],
            id="a new quota",
        ),
        pytest.param(
            [quota(pods="5")],
            [quota(pods="2")],
            [("ResourceQuota shop/all", "pods: 3 used, 2 allowed, so new pods are rejected")],
            id="a lower quota",
        ),
        pytest.param([], [quota(pods="3")], [], id="a quota for what runs"),
        pytest.param([quota(pods="2")], [quota(pods="2", services="1")], [], id="what was exceeded before"),
        pytest.param(
            [],
            [limit_range(cpu="10m")],
            [("LimitRange shop/all", "rejects new pods like shop/db-1-0, shop/db-1-1, shop/db-1-2")],
            id="a LimitRange",
        ),
        pytest.param([], [limit_range(cpu="64")], [], id="a LimitRange that allows what runs"),
    ],
)
def test_a_quota_that_running_pods_exceed_rejects_the_next_ones(
    there: list[Document], change: list[Document], found: list[tuple[str, str]]
) -> None:
    answer = check([*running(), *there], change)
    assert [(subject, detail) for rule, subject, detail in findings(answer) if rule == "quota-rejections"] == found


def test_a_pod_whose_manifest_leaves_its_controller_out() -> None:
    there = pod(0)
    metadata = {key: value for key, value in there["metadata"].items() if key != "ownerReferences"}
    found = (
        "owner-removed",
        "Pod shop/db-1-0",
        "was controlled by ReplicaSet shop/db-1, but its manifest has no controller",
    )
    assert found in findings(check(running(), [{**there, "metadata": metadata}]))
    assert found not in findings(check(running(), [there]))


def test_labels_of_namespaces_by_which_pods_select_them() -> None:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    lone = pod(0, owned=False, affinity=affinity)
    answer = check([lone, namespace(team="a")], [namespace(team="b")])
    assert findings(answer) == [("namespace-relabeled", "Namespace shop", "had team=a, now team=b")]


@pytest.mark.parametrize(
    ("options", "standing"),
    [
        pytest.param(lambda _: {"gate": Gate(waive=["pdb-weakened"])}, FindingStatus.WAIVED, id="an option"),
        pytest.param(lambda each: {"base": [each]}, FindingStatus.FAILS, id="the base"),
        pytest.param(lambda _: {}, FindingStatus.FAILS, id="an annotation"),
    ],
)
def test_only_an_option_excuses_it(options: Callable[[Document], Document], standing: FindingStatus) -> None:
    change = pdb(minAvailable=1)
    annotations = {"kpreempt.io/waive": "pdb-weakened", "kpreempt.io/waive-reason": "it is fine"}
    change["metadata"]["annotations"] = annotations
    answer = check([*running(), pdb(minAvailable=2)], [change], **options(change))
    (found,) = answer.findings
    assert found.status is standing
    assert answer.summary.startswith(f"{PDB} allowed 1 disruption, now 2")


@pytest.mark.parametrize(
    ("there", "name", "rule"),
    [
        pytest.param([*running(), pdb(minAvailable=2)], "pdb/shop/db", "pdb-weakened", id="a PDB"),
        pytest.param([quota(pods="5")], "quota/shop/all", "quota-loosened", id="a quota"),
    ],
)
def test_a_deletion_that_names_it_is_meant_and_still_in_the_headline(
    there: list[Document], name: str, rule: str
) -> None:
    answer = check(there, [], delete=[name])
    (found,) = answer.findings
    assert (found.rule, found.status, found.by) == (rule, FindingStatus.WAIVED, "--delete")
    assert answer.passed
    assert found.detail in answer.summary
