"""What a change itself takes away: workloads, namespaces, volumes, the pods of Services, all pods of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.report.check.summary import summary
from kpreempt.verdict.check import Check
from tests.rollouts import Document, checked, nodes, priority_class, running, workload

PAIR: dict[str, Any] = {"replicas": 2, "cpu": "100m"}
WEB = workload("Deployment", "web", **PAIR)
DB = workload("StatefulSet", "db", **PAIR)
AGENT = workload("DaemonSet", "agent", cpu="100m")
IMPORT = workload("Job", "import", cpu="100m", parallelism=2)
NAMESPACE: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def make(kind: str, name: str, api_version: str = "v1", **parts: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **parts}


def service(selector: Document | None = None, name: str = "web", **more: Any) -> Document:
    return make("Service", name, spec={"selector": selector or {"app": "web"}, **more})


def claim(name: str, phase: str = "Bound", **metadata: Any) -> Document:
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": f"pv-{name}" if phase == "Bound" else ""}
    found = make("PersistentVolumeClaim", name, spec=spec, status={"phase": phase})
    found["metadata"] |= metadata
    return found


def volume(name: str, claim_name: str | None = "data") -> Document:
    reference = {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": claim_name}}
    spec = {"capacity": {"storage": "1Gi"}, **(reference if claim_name else {})}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def cron_job(name: str = "backup", **spec: Any) -> Document:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]}
    template = {"spec": {"template": {"spec": pod}}}
    return make("CronJob", name, "batch/v1", spec={"schedule": "0 1 * * *", "jobTemplate": template, **spec})


def patched(document: Document, **spec: Any) -> Document:
    """The document with other fields of its spec."""
    return {**document, "spec": {**document["spec"], **spec}}


def labeled(document: Document, **labels: str) -> Document:
    """The workload with these labels on its pods, too."""
    template = document["spec"]["template"]
    return patched(
        document, template={**template, "metadata": {"labels": {**template["metadata"]["labels"], **labels}}}
    )


CLUSTER = [*nodes(3), NAMESPACE, *running(WEB, ["n1", "n2"])]
WITH_SERVICE = [*CLUSTER, service()]


def broken(check: Check) -> dict[str, list[str]]:
    """The rules that fail, each with what it is about."""
    rules: dict[str, list[str]] = {}
    for each in check.findings:
        rules.setdefault(each.rule, []).append(each.subject)
    return rules


def case(
    sentence: str, cluster: Sequence[Document], change: Sequence[Document], expected: dict[str, list[str]], **more: Any
) -> object:
    return pytest.param(cluster, change, more, expected, id=sentence)


DELETED = {"max-deletions": ["Deployment shop/web"]}
OUTAGE = {"service-outage": ["Service shop/web"]}
EMPTIED = {"scaled-to-zero": ["Deployment shop/web"]}
SET_CLAIMS = [claim("data-db-0"), claim("data-db-1"), claim("other-db-1"), claim("data-db-x")]
RETIRING = patched(
    DB,
    volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
    persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
)


@pytest.mark.parametrize(
    ("cluster", "change", "more", "expected"),
    [
        # Workloads.
        case("a pruned Deployment", CLUSTER, [], DELETED, pruned_from=[WEB]),
        case("a listed Deployment", CLUSTER, [], {}, deleted=["deploy/web"]),
        case("one that is pruned and listed", CLUSTER, [], {}, pruned_from=[WEB], deleted=["deploy/web"]),
        case(
            "a pruned DaemonSet",
            [*nodes(2), *running(AGENT, ["n1", "n2"])],
            [],
            {"max-deletions": ["DaemonSet shop/agent"]},
            pruned_from=[AGENT],
        ),
        case(
            "a pruned Job that runs",
            [*nodes(2), *running(IMPORT, ["n1"])],
            [],
            {"max-deletions": ["Job shop/import"]},
            pruned_from=[IMPORT],
        ),
        case("a pruned Job without pods", [*nodes(2), *running(IMPORT, [])], [], {}, pruned_from=[IMPORT]),
        case("a pruned CronJob", [*nodes(2), cron_job()], [], {"max-deletions": ["CronJob shop/backup"]},
             pruned_from=[cron_job()]),
        case("a pruned CronJob that is suspended", [*nodes(2), cron_job(suspend=True)], [], {},
             pruned_from=[cron_job(suspend=True)]),
        case(
            "a pruned Deployment without pods",
            [*nodes(2), *running(patched(WEB, replicas=0), [])],
            [],
            {},
            pruned_from=[patched(WEB, replicas=0)],
        ),
        case("what is pruned and was never there", CLUSTER, [], {}, pruned_from=[workload("Deployment", "other")]),
        # Namespaces.
        case(
            "a pruned namespace, and a workload that was never in the manifests",
            WITH_SERVICE,
            [],
            {"namespace-deletion": ["Namespace shop"], **DELETED, **OUTAGE},
            pruned_from=[NAMESPACE],
        ),
        case("a listed namespace", WITH_SERVICE, [], {**DELETED, **OUTAGE}, deleted=["ns/shop"]),
        case(
            "a namespace with all in it listed",
            WITH_SERVICE,
            [],
            {},
            deleted=["ns/shop", "deploy/web", "svc/web"],
        ),
        case(
            "a namespace of which a dump has only the content",
            [each for each in WITH_SERVICE if each is not NAMESPACE],
            [],
            {
                "namespace-deletion": ["Namespace shop"],
                "absent-kinds": ["Namespace"],
                **DELETED,
                **OUTAGE,
            },
            pruned_from=[NAMESPACE],
            absent=["Namespace"],
        ),
        case(
            "a CronJob in a namespace",
            [*nodes(1), NAMESPACE, cron_job()],
            [],
            {"max-deletions": ["CronJob shop/backup"]},
            deleted=["ns/shop"],
        ),
        case("a claim in a namespace", [*nodes(1), NAMESPACE, claim("data")], [],
             {"volume-deletion": ["PersistentVolumeClaim shop/data"]}, deleted=["ns/shop"]),
        # Volumes.
        case("a pruned claim", [*nodes(1), claim("data")], [], {"volume-deletion": ["PersistentVolumeClaim shop/data"]},
             pruned_from=[claim("data")]),
        case("a listed claim", [*nodes(1), claim("data")], [], {}, deleted=["pvc/data"]),
        case("a claim that nothing is bound to", [*nodes(1), claim("data", "Pending")], [], {},
             pruned_from=[claim("data", "Pending")]),
        case("a pruned volume", [*nodes(1), volume("pv-data")], [], {"volume-deletion": ["PersistentVolume pv-data"]},
             pruned_from=[volume("pv-data")]),
        case("a pruned volume without a claim", [*nodes(1), volume("pv-data", None)], [], {},
             pruned_from=[volume("pv-data", None)]),
        case(
            "claims that a StatefulSet takes along",
            [*nodes(2), *running(RETIRING, ["n1", "n2"]), *SET_CLAIMS],
            [],
            {"volume-deletion": ["PersistentVolumeClaim shop/data-db-0", "PersistentVolumeClaim shop/data-db-1"]},
            deleted=["sts/db"],
        ),
        case(
            "the claim of a pod that a StatefulSet has no more",
            [*nodes(2), *running(RETIRING, ["n1", "n2"]), *SET_CLAIMS, volume("pv-data")],
            [patched(RETIRING, replicas=1)],
            {"volume-deletion": ["PersistentVolumeClaim shop/data-db-1"]},
        ),
        case(
            "a StatefulSet that retains its claims",
            [*nodes(2), *running(DB, ["n1", "n2"]), *SET_CLAIMS],
            [patched(DB, replicas=1)],
            {},
        ),
        case(
            "a claim that its owner takes along",
            [*CLUSTER, claim("data", ownerReferences=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}])],
            [],
            {"volume-deletion": ["PersistentVolumeClaim shop/data"]},
            deleted=["deploy/web"],
        ),
        # Services.
        case("a Service whose last pods go", WITH_SERVICE, [], OUTAGE, deleted=["deploy/web"]),
        case("a pruned Service", WITH_SERVICE, [WEB], OUTAGE, pruned_from=[WEB, service()]),
        case("a listed Service", WITH_SERVICE, [WEB], {}, deleted=["svc/web"]),
        case("a mistyped selector", WITH_SERVICE, [service({"app": "wbe"})], OUTAGE),
        case("a selector that asks for more", WITH_SERVICE, [service({"app": "web", "tier": "front"})], OUTAGE),
        case("a selector that still matches", WITH_SERVICE, [service({"pod-template-hash": "old"})], {}),
        case("a Service without a selector", WITH_SERVICE, [make("Service", "web", spec={"ports": [{"port": 80}]})],
             OUTAGE),
        case("a Service of a name elsewhere", WITH_SERVICE,
             [service(type="ExternalName", externalName="web.example.com")], OUTAGE),
        case("a headless Service", [*CLUSTER, service(clusterIP="None")], [], OUTAGE, deleted=["deploy/web"]),
        case("a Service that had no pods", [*CLUSTER, service({"app": "x"})], [service({"app": "y"})], {}),
        case(
            "pods with other labels",
            [*nodes(3), *running(labeled(WEB, tier="front"), ["n1", "n2"]), service({"tier": "front"})],
            [WEB],
            OUTAGE,
        ),
        case(
            "from blue to green",
            [*nodes(3), *running(labeled(WEB, color="blue"), ["n1"]), service({"color": "blue"})],
            [labeled(workload("Deployment", "green", cpu="100m"), color="green"), service({"color": "green"})],
            {},
        ),
        # No pods any more.
        case("no replicas", CLUSTER, [patched(WEB, replicas=0)], EMPTIED),
        case("no replicas, and a Service", WITH_SERVICE, [patched(WEB, replicas=0)], {**EMPTIED, **OUTAGE}),
        case(
            "no replicas of one pod",
            [*nodes(1), *running(patched(WEB, replicas=1), ["n1"])],
            [patched(WEB, replicas=0)],
            EMPTIED,
        ),
        case("fewer replicas", CLUSTER, [patched(WEB, replicas=1)], {}),
        case("no replicas, as before", [*nodes(1), *running(patched(WEB, replicas=0), [])],
             [labeled(patched(WEB, replicas=0), tier="front")], {}),
        case("a new workload without replicas", nodes(1), [patched(WEB, replicas=0)], {}),
        case(
            "a StatefulSet without replicas",
            [*nodes(2), *running(DB, ["n1", "n2"])],
            [patched(DB, replicas=0)],
            {"scaled-to-zero": ["StatefulSet shop/db"]},
        ),
        case(
            "a DaemonSet that matches no node",
            [*nodes(2), *running(AGENT, ["n1", "n2"])],
            [workload("DaemonSet", "agent", cpu="100m", pod={"nodeSelector": {"disk": "nvme"}})],
            {"scaled-to-zero": ["DaemonSet shop/agent"]},
        ),
        case(
            "a DaemonSet that matches one node",
            [*nodes(2), *running(AGENT, ["n1", "n2"])],
            [workload("DaemonSet", "agent", cpu="100m", pod={"nodeSelector": {"kubernetes.io/hostname": "n1"}})],
            {},
        ),
        case("a suspended Job", [*nodes(2), *running(IMPORT, ["n1", "n2"])], [patched(IMPORT, suspend=True)],
             {"scaled-to-zero": ["Job shop/import"]}),
        case("a Job of no pods at a time", [*nodes(2), *running(IMPORT, ["n1", "n2"])],
             [patched(IMPORT, parallelism=0)], {"scaled-to-zero": ["Job shop/import"]}),
        case("a suspended CronJob", [*nodes(1), cron_job()], [cron_job(suspend=True)],
             {"scaled-to-zero": ["CronJob shop/backup"]}),
        case("a CronJob that stays suspended", [*nodes(1), cron_job(suspend=True)],
             [cron_job(suspend=True, schedule="0 2 * * *")], {}),
    ],
)  # fmt: skip
def test_what_a_change_takes_away_fails_by_one_rule_for_each_object(
    cluster: Sequence[Document], change: Sequence[Document], more: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    found = checked(cluster, change, **more)
    assert broken(found) == expected
    assert found.passed is not bool(expected)


def test_a_namespace_lists_what_was_never_in_the_manifests() -> None:
    manual = workload("Deployment", "manual", cpu="100m")
    found = checked([*WITH_SERVICE, *running(manual, ["n1"])], [], pruned_from=[NAMESPACE, WEB, service()])
    (namespace,) = (each for each in found.findings if each.rule == "namespace-deletion")
    assert namespace.detail == "with everything in it: 3 pods, 1 Service; not in the manifests: Deployment shop/manual"
    assert len(namespace.pods) == 3


def test_the_whole_render_lost_is_said_first() -> None:
    found = checked(WITH_SERVICE, [], pruned_from=[NAMESPACE, WEB, service()])
    assert summary(found) == (
        "Deployment shop/web is deleted with 2 pods; Namespace shop is deleted; Service shop/web goes from 2 pods to 0"
    )


def test_an_evicted_pod_behind_a_service_is_another_rule() -> None:
    high = workload("Deployment", "api", cpu="2", replicas=1, pod={"priorityClassName": "high"})
    one = workload("Deployment", "web", cpu="2", replicas=1)
    cluster = [*nodes(1, "2"), priority_class("high", 1000), *running(one, ["n1"]), service()]
    assert set(broken(checked(cluster, [high]))) == {"max-broken-dependencies", "max-pending"}


def test_an_object_of_a_kind_that_the_dump_lacks_is_not_known_to_be_gone() -> None:
    absent = ["PersistentVolumeClaim", "Service"]
    base = [WEB, service(), claim("data")]
    found = checked([*nodes(1), *running(WEB, ["n1"])], [WEB], pruned_from=base, absent=absent)
    assert broken(found) == {"absent-kinds": absent}
    assert "kubectl get pvc -A" in found.findings[0].detail


def test_with_a_definition_go_custom_resources() -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
    }
    assert set(broken(checked(CLUSTER, [], pruned_from=[definition]))) == {"unmodeled-input"}
    assert not checked(CLUSTER, [], deleted=["crd/widgets.example.com"]).passed


SENTENCES = {
    "scaled down": ([patched(WEB, replicas=1)], {}, "1 workload is scaled down from 2 to 1; no pod is evicted"),
    "scaled up": ([patched(WEB, replicas=3)], {}, "harmless: 1 workload is scaled; no pod is evicted"),
    "rolled to fewer": (
        [labeled(patched(WEB, replicas=1), tier="front")],
        {},
        "1 pod is replaced, 1 workload is scaled down from 2 to 1; no pod is evicted",
    ),
    "deleted by name": ([], {"deleted": ["deploy/web"]}, "1 object is deleted with 2 pods; no pod is evicted"),
    "a pruned ConfigMap": (
        [],
        {"pruned_from": [make("ConfigMap", "settings")]},
        "1 object is deleted; no pod is evicted",
    ),
    "no replicas": ([patched(WEB, replicas=0)], {}, "Deployment shop/web goes from 2 pods to 0"),
}


@pytest.mark.parametrize(("change", "more", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_what_takes_something_away_is_never_called_harmless(
    change: Sequence[Document], more: dict[str, Any], sentence: str
) -> None:
    assert summary(checked(CLUSTER, change, **more)) == sentence


MANIFESTS = [NAMESPACE, WEB, service(), AGENT, DB, claim("data")]
INSTALLED = [
    *nodes(3),
    NAMESPACE,
    *running(WEB, ["n1", "n2"]),
    service(),
    *running(AGENT, ["n1", "n2", "n3"]),
    *running(DB, ["n1", "n2"]),
    claim("data"),
]


@given(st.sets(st.sampled_from(range(len(MANIFESTS)))))
def test_a_render_that_lacks_any_object_fails_and_only_then(kept: set[int]) -> None:
    head = [document for number, document in enumerate(MANIFESTS) if number in kept]
    found = checked(INSTALLED, head, pruned_from=MANIFESTS)
    assert found.passed is (len(kept) == len(MANIFESTS))
    assert summary(found).startswith("harmless") is found.passed
    lost = {f"{each['kind']} {each['metadata']['name']}" for each in MANIFESTS if each not in head}
    blamed = {
        f"{each.subject.partition(' ')[0]} {each.subject.rpartition('/')[2].rpartition(' ')[2]}"
        for each in found.findings
    }
    assert lost <= blamed
