"""The remedies of checks: what each situation gets, and that applying it keeps the promise."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest

from kpreempt.report.check.causes import advice_of, remedy_sentence
from kpreempt.verdict.check import Check
from tests.check_remedies import applied, assert_kept, checked
from tests.rollouts import Document, nodes, priority_class, running, workload

ONE_BY_ONE = "strategy.rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"
AT_WORST = "(at worst, 2 of its pods are ready)"
HIGH = priority_class("high", 1000)


class Case(NamedTuple):
    """A cluster, a change, and what helps: the first remedy in words."""

    cluster: list[Document]
    change: list[Document]
    remedy: str


def updated(manifest: Document, **more: Any) -> Document:
    """The manifest with another image."""
    new = copy.deepcopy(manifest)
    new["spec"] |= more
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    return new


def container(**more: Any) -> Document:
    return {"containers": [{"name": "main", "image": "one", "resources": {"requests": {"cpu": "100m"}}} | more]}


def port(number: int) -> Document:
    return container(ports=[{"containerPort": number, "hostPort": number}])


def budget(name: str, app: str, **spec: Any) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def quota(**hard: str) -> Document:
    metadata = {"name": "q", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def autoscaler(least: int, most: int) -> Document:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most},
    }


def tainted(node: Document, key: str, **spec: Any) -> Document:
    return {**node, "spec": {"taints": [{"key": key, "effect": "NoSchedule"}], **spec}}


def with_gpu(node: Document) -> Document:
    node["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    return node


def unready(pod: Document) -> Document:
    pod["status"]["conditions"][0]["status"] = "False"
    return pod


APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
}
GPU = {"requests": {"cpu": "100m", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
ON_PORT = workload("Deployment", "web", replicas=1, pod=port(80))
SPREAD = workload("Deployment", "web", replicas=3, pod=APART)
ON_GPU = workload("Deployment", "web", replicas=1, pod=container(resources=GPU))
DAEMON = workload(
    "DaemonSet", "agent", pod=port(80), updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
)
TIGHT = workload("Deployment", "web", replicas=2)
ORDERED = workload("StatefulSet", "db", replicas=3, serviceName="db")
PLAIN = workload("Deployment", "web", replicas=2)
SINGLE = workload("Deployment", "web", replicas=1)
SELECTING = workload("Deployment", "web", replicas=2, pod={"nodeSelector": {"disk": "ssd"}})
FULL = workload("Deployment", "full", replicas=1, cpu="1800m")
ANYWHERE = workload("Deployment", "full", replicas=1, cpu="1800m", pod={"tolerations": [{"operator": "Exists"}]})
LARGE = workload("Deployment", "web", replicas=1, cpu="1500m")
AGENT, LARGER_AGENT = (
    workload("DaemonSet", "agent", cpu=cpu, pod={"priorityClassName": "high"}) for cpu in ("200m", "600m")
)
VICTIM = workload("Deployment", "big", replicas=2, cpu="900m")
AT_ONCE = workload("Deployment", "web", replicas=3, strategy={"rollingUpdate": {"maxUnavailable": 3, "maxSurge": 0}})
FOUR = workload("Deployment", "web", replicas=4)
BEYOND_ZERO = {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
CASES = {
    "a host port": Case(
        [*nodes(1), *running(ON_PORT, ["n1"])],
        [updated(ON_PORT)],
        "Set strategy.type: Recreate in Deployment shop/web (it has no ready pod for a while).",
    ),
    "anti-affinity": Case(
        [*nodes(3), *running(SPREAD, ["n1", "n2", "n3"])],
        [updated(SPREAD)],
        f"Set {ONE_BY_ONE} in Deployment shop/web {AT_WORST}.",
    ),
    "the only GPU": Case(
        [*map(with_gpu, nodes(1)), *running(ON_GPU, ["n1"])],
        [updated(ON_GPU)],
        "Set strategy.type: Recreate in Deployment shop/web (it has no ready pod for a while).",
    ),
    "no room for a surge": Case(
        [*nodes(1), *running(TIGHT, ["n1", "n1"])],
        [updated(TIGHT)],
        f"Set {ONE_BY_ONE} in Deployment shop/web (at worst, 1 of its pods is ready).",
    ),
    "a DaemonSet with a surge": Case(
        [*nodes(3), *running(DAEMON, ["n1", "n2", "n3"])],
        [updated(DAEMON)],
        f"Set {ONE_BY_ONE.replace('strategy', 'updateStrategy')} in DaemonSet shop/agent {AT_WORST}.",
    ),
    "a StatefulSet that waits for a broken pod": Case(
        [*nodes(3), *(running(ORDERED, ["n1", "n2", "n3"])[:-1]), unready(running(ORDERED, ["n1", "n2", "n3"])[-1])],
        [updated(ORDERED)],
        "Delete Pod shop/db-2 (its controller creates it again): kubectl delete pod db-2 -n shop",
    ),
    "a quota that requires limits": Case(
        [*nodes(2), quota(**{"limits.memory": "1Gi"})],
        [PLAIN],
        "Set template.spec.containers[0].resources.limits.memory: 128Mi in Deployment shop/web.",
    ),
    "a quota that is too small": Case(
        [*nodes(3), quota(**{"requests.cpu": "1"}), *running(SINGLE, ["n1"])],
        [updated(SINGLE)],
        "Set strategy.type: Recreate in Deployment shop/web (it has no ready pod for a while).",
    ),
    "a node selector that no node matches": Case(
        [*nodes(2), *running(SELECTING, ["n1", "n2"])],
        [updated(SELECTING)],
        "Drop the node selector disk=ssd from Deployment shop/web.",
    ),
    "a DaemonSet on a full node": Case(
        [*nodes(1), tainted(nodes(2)[1], "other"), HIGH, *running(ANYWHERE, ["n1"])],
        [workload("DaemonSet", "agent", cpu="500m")],
        "Set template.spec.priorityClassName: high in DaemonSet shop/agent (1 pod is evicted and runs again;"
        " Deployment shop/full has no ready pod for a while).",
    ),
    "evicted bystanders": Case(
        [
            *nodes(2, "1200m"),
            HIGH,
            *running(AGENT, ["n1", "n2"], 1000),
            *running(VICTIM, ["n1", "n2"]),
            budget("big", "big", maxUnavailable=1),
        ],
        [LARGER_AGENT],
        "Request 300m cpu instead of 600m in DaemonSet shop/agent.",
    ),
    "all pods at once": Case(
        [*nodes(3), *running(AT_ONCE, ["n1", "n2", "n3"])],
        [updated(AT_ONCE)],
        "Set strategy.rollingUpdate: {maxSurge: 1, maxUnavailable: 0} in Deployment shop/web.",
    ),
    "a budget that allows nothing": Case(
        [*nodes(3), *running(PLAIN, ["n1", "n2"])],
        [budget("web", "web", minAvailable=2)],
        "Set maxUnavailable: 1 in PodDisruptionBudget shop/web.",
    ),
    "a budget for a single pod": Case(
        [*nodes(3), *running(SINGLE, ["n1"])],
        [budget("web", "web", minAvailable=1)],
        "Scale Deployment shop/web to 2 replicas: kubectl scale deployment web -n shop --replicas=2",
    ),
    "a budget for a single pod under an autoscaler": Case(
        [*nodes(3), *running(SINGLE, ["n1"]), autoscaler(1, 4)],
        [budget("web", "web", minAvailable=1)],
        "Remove PodDisruptionBudget shop/web from the manifests.",
    ),
    "two budgets": Case(
        [*nodes(3), *running(PLAIN, ["n1", "n2"]), budget("web", "web", maxUnavailable=1)],
        [budget("other", "web", maxUnavailable=1)],
        "Remove PodDisruptionBudget shop/other from the manifests.",
    ),
    "the replicas of an autoscaler": Case(
        [*nodes(3), *running(FOUR, ["n1", "n2", "n3", "n1"]), autoscaler(2, 9)],
        [{**FOUR, "spec": {**FOUR["spec"], "replicas": 2}}],
        "Remove replicas from Deployment shop/web.",
    ),
    "a node that does not exist": Case(
        nodes(2),
        [workload("Deployment", "web", replicas=1, pod={"nodeName": "n9"})],
        "Remove template.spec.nodeName from Deployment shop/web.",
    ),
    "a paused rollout": Case(
        [*nodes(3), *running(PLAIN, ["n1", "n2"])],
        [updated(PLAIN, paused=True)],
        "Remove paused from Deployment shop/web.",
    ),
    "a partition": Case(
        [*nodes(3), *running(ORDERED, ["n1", "n2", "n3"])],
        [updated(ORDERED, **BEYOND_ZERO)],
        "Set updateStrategy.rollingUpdate.partition: 0 in StatefulSet shop/db."
    ),
    "a cordoned node": Case(
        [
            nodes(1)[0],
            tainted(nodes(2)[1], "node.kubernetes.io/unschedulable", unschedulable=True),
            *running(FULL, ["n1"]),
        ],
        [LARGE],
        "Uncordon n2 (to try it: --uncordon=n2): kubectl uncordon n2",
    ),
    "a node that is not ready": Case(
        [nodes(1)[0], tainted(nodes(2)[1], "node.kubernetes.io/not-ready"), *running(FULL, ["n1"])],
        [LARGE],
        "Make n2 ready (to try it: --taint-node=n2=node.kubernetes.io/not-ready-).",
    ),
    "too many replicas": Case(nodes(2), [workload("Deployment", "web", replicas=5)], "Scale Deployment shop/web to 4"
        " replicas."),
    "a request above every node": Case(
        nodes(2),
        [workload("Deployment", "web", replicas=1, cpu="3")],
        "Request 2 cpu instead of 3 in Deployment shop/web.",
    ),
}  # fmt: skip
DEADLOCKS = {
    "a host port": "host port 80, which the old pod shop/web-old-a holds",
    "the only GPU": "nvidia.com/gpu, which the old pod shop/web-old-a holds",
    "no room for a surge": "cpu, which the old pod shop/web-old-a holds",
    "anti-affinity": "cannot be on a node with the old pod shop/web-old-a",
    "a DaemonSet with a surge": "host port 80, which the old pod shop/agent-a holds",
}


def answer(case: Case) -> Check:
    return checked(case.cluster, case.change)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_the_first_remedy(case: Case) -> None:
    found = answer(case).findings
    assert [remedy_sentence(each.remedies[0]) for each in found if each.remedies][:1] == [case.remedy]


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_every_remedy_keeps_its_promise(case: Case) -> None:
    before = answer(case)
    tried = [(finding, remedy) for finding in before.findings for remedy in finding.remedies]
    assert tried
    for finding, remedy in tried:
        if remedy.clears_after is None:
            assert_kept(before, finding, remedy, applied(case.cluster, case.change, remedy))


@pytest.mark.parametrize(("name", "words"), DEADLOCKS.items(), ids=DEADLOCKS)
def test_the_first_sentence_names_the_deadlock(name: str, words: str) -> None:
    summary = answer(CASES[name]).summary
    assert " is in a rollout deadlock: the new pod " in summary
    assert words in summary


def test_a_rejection_that_clears_by_itself_says_so() -> None:
    manifest = workload(
        "Deployment", "web", replicas=2, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    )
    cluster = [*nodes(3), quota(pods="2"), *running(manifest, ["n1", "n2"])]
    (finding,) = checked(cluster, [updated(manifest)]).findings
    assert finding.remedies[0].clears_after == 30
    assert advice_of(finding).startswith("Nothing to do: the rejected pods are created after about 30s")


def test_a_pod_on_a_node_that_is_gone_is_named() -> None:
    manifest = workload("Deployment", "web", replicas=2, pod=port(80))
    gone = tainted(nodes(1)[0], "node.kubernetes.io/unreachable")
    deployment, owner, first, second = running(manifest, ["n1", "n2"])
    found = checked([gone, nodes(2)[1], deployment, owner, unready(first), second], [updated(manifest)])
    assert "its pod shop/web-old-a is on n1, which is not ready" in found.findings[0].detail


def test_a_rollout_ignores_budgets() -> None:
    cluster = [*nodes(3), *running(AT_ONCE, ["n1", "n2", "n3"]), budget("web", "web", maxUnavailable=1)]
    (finding,) = checked(cluster, [updated(AT_ONCE)]).findings
    assert finding.detail == "0 of 3 ready pods despite PodDisruptionBudget shop/web, which rollouts ignore"


def test_nothing_is_tried_for_a_change_that_passes() -> None:
    found = checked([*nodes(2), *running(SINGLE, ["n1"])], [updated(SINGLE)])
    assert found.passed
    assert not found.findings


def test_what_was_tried_without_success_is_not_advised() -> None:
    (finding,) = checked(nodes(1), [workload("Deployment", "web", replicas=1, cpu="50")]).findings
    assert not finding.remedies
    assert "Request less" not in advice_of(finding) or not finding.search.tried


def test_an_autoscaled_workload_is_never_scaled() -> None:
    manifest = workload("Deployment", "web", replicas=5)
    found = checked([*nodes(2), autoscaler(5, 9)], [manifest])
    changes = [change for each in found.findings for remedy in each.remedies for change in remedy.changes]
    assert not [each for each in changes if each.kind.value == "scale"]


def test_a_gpu_pod_keeps_its_gpu() -> None:
    resources = {"requests": {"cpu": "100m", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    found = checked(nodes(2), [workload("Deployment", "web", replicas=1, pod=container(resources=resources))])
    assert not [remedy for each in found.findings for remedy in each.remedies]


def test_what_a_controller_taints_is_never_tolerated() -> None:
    manifest = workload("Deployment", "web", replicas=1)
    found = checked([tainted(each, "node.kubernetes.io/unreachable") for each in nodes(1)], [manifest])
    changes = [change for each in found.findings for remedy in each.remedies for change in remedy.changes]
    assert changes
    assert not [each for each in changes if each.kind.value == "toleration"]
