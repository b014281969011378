"""Remedies and causes, and the report on one node, as a reader finds them."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.report import RenderOptions, render
from kpreempt.report.quoting import plain
from kpreempt.report.remedies import action, cause_in_words, commands, result
from kpreempt.verdict import Change, ChangeKind, NodeEvaluation, NodeReport, Outcome, PodSummary, Verdict
from kpreempt.verdict.remedies import Cause, CauseKind, ObjectEdit, Remedy, RemedySearch, RemedyStage

GIB = 2**30
NEW_NODE = {"cpu": 3500, "memory": 8 * GIB, "pods": 110, "ephemeral-storage": 10, "nvidia.com/gpu": 8}


def remedy(*changes: Change, **more: Any) -> Remedy:
    defaults = {"stage": RemedyStage.REQUESTER, "options": ["--set=x=1"], "nodes": ["a"], "scheduled": 1, "pods": 1}
    return Remedy(changes=list(changes), **{**defaults, **more})


def unschedulable(*remedies: Remedy, causes: list[Cause] | None = None, **search: Any) -> Verdict:
    return Verdict(
        algorithm="kube-1.36",
        outcome=Outcome.UNSCHEDULABLE,
        pod=PodSummary("shop", "api"),
        causes=causes or [],
        remedies=list(remedies),
        remedy_search=RemedySearch(**search),
    )


def section(verdict: Verdict, **options: Any) -> str:
    """The section FIX, on one line."""
    text = render([verdict], "text", options=RenderOptions(width=120, **options))
    return " ".join(text.partition("FIX ")[2].split())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            Change(ChangeKind.REQUEST, "cpu", 2000, 1800), "request 1.8 cpu instead of 2", id="a smaller request"
        ),
        pytest.param(
            Change(ChangeKind.REQUEST, "memory", 2 * GIB, GIB), "request 1Gi memory instead of 2Gi", id="of memory"
        ),
        pytest.param(
            Change(ChangeKind.MAX_SKEW, "app=api over zone", 1, 3),
            "allow a skew of 3 instead of 1 for app=api over zone",
            id="a larger skew",
        ),
        pytest.param(
            Change(ChangeKind.NODE_TAINTS_POLICY, "app=api over zone"),
            "set nodeTaintsPolicy: Honor for app=api over zone",
            id="nodes that are left out",
        ),
        pytest.param(
            Change(ChangeKind.PRIORITY, before=1000, after=2001),
            "raise the priority of the pod from 1,000 to 2,001",
            id="a higher priority",
        ),
        pytest.param(
            Change(ChangeKind.BUDGET, "shop/web", 0, 2),
            "let PodDisruptionBudget shop/web allow 2 disruptions instead of 0",
            id="a PodDisruptionBudget",
        ),
        pytest.param(
            Change(ChangeKind.REPAIR, "Node node-a", field="node.kubernetes.io/disk-pressure"),
            "free disk space on node-a",
            id="the condition of a node",
        ),
        pytest.param(
            Change(ChangeKind.REPAIR, "Node node-a", field="nvidia.com/gpu"),
            "make nvidia.com/gpu on node-a allocatable",
            id="a device",
        ),
        pytest.param(
            Change(ChangeKind.REPAIR, "Node {x}", field="{y}"), "make {y} on {x} allocatable", id="names with braces"
        ),
        pytest.param(Change(ChangeKind.UNCORDON, "node-a"), "uncordon node-a", id="a cordoned node"),
        pytest.param(
            Change(ChangeKind.ADD_NODE, "a", value=NEW_NODE, field="a-new-1"),
            "add 1 node like a (3.5 cpu, 8Gi memory, 8 nvidia.com/gpu)",
            id="a new node",
        ),
        pytest.param(
            Change(ChangeKind.SET, "Deployment shop/api", field="spec.strategy.type", value="Recreate"),
            "set strategy.type: Recreate in Deployment shop/api",
            id="a field",
        ),
        pytest.param(
            Change(ChangeKind.SET, "Deployment shop/api", field="spec.strategy.rollingUpdate", value={"maxSurge": 0}),
            "set strategy.rollingUpdate: {maxSurge: 0} in Deployment shop/api",
            id="a structure",
        ),
        pytest.param(
            Change(ChangeKind.SET, "PersistentVolumeClaim shop/data", field="the annotation x"),
            "remove the annotation x from PersistentVolumeClaim shop/data",
            id="an annotation",
        ),
    ],
)
def test_a_change_in_words(change: Change, words: str) -> None:
    found = remedy(change)
    assert action(found) == words
    verdict = unschedulable(found)
    assert f": {words}." in render([verdict], "text", options=RenderOptions(width=1000))
    assert f"{words}: lands on a; no pod is evicted" in section(verdict)


def test_each_kind_of_change_has_its_own_words() -> None:
    words = {action(remedy(Change(kind, "it", 1, 2, "field", {"cpu": 3000}))) for kind in ChangeKind}
    assert len(words) == len(ChangeKind)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        pytest.param({}, "lands on a; no pod is evicted", id="it lands"),
        pytest.param({"nodes": ["a", "b"]}, "lands on a or b; no pod is evicted", id="it lands on a tie"),
        pytest.param({"nodes": [*"abcde"]}, "lands on one of a, b, c and 2 more; no pod is evicted", id="on many"),
        pytest.param(
            {"scheduled": 3, "pods": 4}, "lands on a; no pod is evicted; 3 of 4 replicas land", id="with replicas"
        ),
        pytest.param({"evicted": ["shop/x"]}, "preempts shop/x on a; no PDB is violated", id="it preempts"),
        pytest.param(
            {"evicted": ["shop/x"], "nodes": ["a", "b"]},
            "preempts pods such as shop/x on a or b; no PDB is violated",
            id="it preempts on a tie",
        ),
        pytest.param({"stops": ["shop/x"]}, "lands on a once shop/x has stopped", id="an old pod stops first"),
    ],
)
def test_the_result_of_a_remedy(outcome: dict[str, Any], words: str) -> None:
    found = remedy(Change(ChangeKind.UNCORDON, "a"), **outcome)
    assert plain(result(found)) == words
    assert words in section(unschedulable(found))


def test_a_pod_lands_on_the_new_node() -> None:
    change = Change(ChangeKind.ADD_NODE, "a", value=NEW_NODE, field="a-new-1")
    assert plain(result(remedy(change, nodes=["a-new-1"]))) == "lands there; no pod is evicted"
    # A new node changes the counts of topology domains.
    assert plain(result(remedy(change, nodes=["b", "a-new-1"]))) == "lands on b or a-new-1; no pod is evicted"


def test_no_claim_about_budgets_that_were_not_read() -> None:
    assert plain(result(remedy(evicted=["shop/x"]), lacks_budgets=True)).endswith("PDBs were not read")


@pytest.mark.parametrize(
    ("search", "words"),
    [
        pytest.param({}, "no tested change helps", id="nothing helps"),
        pytest.param(
            {"kinds": 3}, "no tested change helps, nor does 1 more node like those in the cluster", id="no new node"
        ),
        pytest.param(
            {"kinds": 3, "untried_kinds": 2},
            "no tested change helps; 2 kinds of new nodes not tried",
            id="some new nodes were not tried",
        ),
        pytest.param(
            {"tried": 40, "reason": "limit"},
            "no tested change helps; the search stopped after 40 verdicts",
            id="it stopped at its limit",
        ),
        pytest.param({"reason": "size"}, "--node NAME searches them for one", id="a large cluster"),
        pytest.param(
            {"reason": "extender", "extender": "http://x"},
            "not searched: extender http://x fails, which no change can fix",
            id="an extender fails",
        ),
        pytest.param(
            {"tried": 3, "extender_calls": 12},
            "no tested change helps; extenders were called 12 more times for this",
            id="calls of extenders",
        ),
    ],
)
def test_without_a_remedy_the_report_says_what_was_tried(search: dict[str, Any], words: str) -> None:
    assert words in section(unschedulable(**search))


def test_a_search_that_stopped_at_its_limit_says_so_below_what_it_found() -> None:
    found = remedy(Change(ChangeKind.UNCORDON, "a"))
    assert "the search stopped after 8 verdicts" in section(unschedulable(found, tried=8, reason="limit"))


def test_options_never_break_at_a_space_so_that_they_can_be_copied() -> None:
    path = "--set=spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]=null"
    found = remedy(Change(ChangeKind.POD_ANTI_AFFINITY, "app=api"), options=[path, "--uncordon=a b"])
    text = render([unschedulable(found)], "text", options=RenderOptions(width=40))
    assert "--set='spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]=null'\n" in text
    markdown = render([unschedulable(found)], "markdown", options=RenderOptions())
    assert "--uncordon='a b'" in markdown


def test_an_edit_is_a_command_of_kubectl() -> None:
    patch = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
    found = remedy(options=[], edits=[ObjectEdit("PersistentVolumeClaim shop/data", patch)])
    assert commands(found) == [
        "kubectl patch persistentvolumeclaim data -n shop --type merge -p "
        """'{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":null}}}'"""
    ]
    assert commands(remedy(options=[], edits=[ObjectEdit("Node a", deletes=True)])) == ["kubectl delete node a"]


def test_a_repair_has_no_kubectl_command() -> None:
    change = Change(ChangeKind.REPAIR, "Node a", field="node.kubernetes.io/disk-pressure")
    edit = ObjectEdit("Node a", {"spec": {"taints": []}})
    tried = ["--taint-node=a=node.kubernetes.io/disk-pressure-"]
    assert commands(remedy(change, options=[], edits=[edit])) == tried
    # The option doesn't make pods ready.
    assert commands(remedy(change, options=[], edits=[edit, ObjectEdit("Pod shop/web", {"status": {}})])) == []


@pytest.mark.parametrize(
    ("change", "patch", "typed"),
    [
        pytest.param(
            Change(ChangeKind.UNCORDON, "a"), {"spec": {"unschedulable": None, "taints": []}},
            ["--uncordon=a", "kubectl uncordon a"], id="uncordoned",
        ),
        pytest.param(
            Change(ChangeKind.SET, "Node a", field="metadata.labels", value="disk=ssd"),
            {"metadata": {"labels": {"disk": "ssd", "zone": "b"}}},
            ["--label-node=a=disk=ssd --label-node=a=zone=b", "kubectl label node a disk=ssd zone=b"], id="labeled",
        ),
    ],
)  # fmt: skip
def test_a_change_of_a_node_is_an_option_and_a_command(change: Change, patch: dict[str, Any], typed: list[str]) -> None:
    assert commands(remedy(change, options=[], edits=[ObjectEdit("Node a", patch)])) == typed
    others = [Change(ChangeKind.SCALE, "Deployment shop/web", after=2)]
    assert "--" not in " ".join(commands(remedy(change, *others, options=[])))


def test_only_a_few_remedies_are_shown_unless_all_are_requested() -> None:
    verdict = unschedulable(*(remedy(Change(ChangeKind.UNCORDON, f"n{index}")) for index in range(6)))
    assert "… and 2 more changes (-v -v)" in section(verdict)
    assert "6. uncordon n5" in section(verdict, verbose=True)


def test_changes_that_only_help_together_are_one_remedy() -> None:
    both = remedy(Change(ChangeKind.UNCORDON, "a"), Change(ChangeKind.HOST_PORT, "80/TCP"))
    assert "uncordon a, and drop the host port 80/TCP: lands on a" in section(unschedulable(both))


def test_the_manager_of_a_changed_object_is_named() -> None:
    found = remedy(Change(ChangeKind.UNCORDON, "a"), manager="Cluster db/pg")
    assert "(through Cluster db/pg: its operator may revert other changes)" in section(unschedulable(found))


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        pytest.param(
            Cause(CauseKind.ROLLOUT_DEADLOCK, "Deployment shop/api", "host port 80/TCP", ["shop/api-1"], ["a"]),
            "rollout deadlock of Deployment shop/api: the old shop/api-1 holds host port 80/TCP on a and stays until "
            "the new pod is ready",
            id="a deadlock",
        ),
        pytest.param(
            Cause(CauseKind.ROLLOUT_DEADLOCK, "Deployment a/b", pods=["a/1", "a/2"], nodes=["a"], is_assumed=True),
            "rollout deadlock of Deployment a/b: the old a/1 and a/2 hold what the new pod needs on a and stay until "
            "the new pod is ready (if its strategy is the default one, which the input does not show)",
            id="an assumed deadlock",
        ),
        pytest.param(
            Cause(CauseKind.NO_SUCH_LABEL, "disk=sdd", "disk", values={"ssd": ["a"], "hdd": ["b", "c"]}),
            "no node has disk=sdd; nodes have ssd (a) and hdd (b and c)",
            id="a value that no node has",
        ),
        pytest.param(
            Cause(CauseKind.NO_SUCH_LABEL, "dsik=ssd", "dsik", values={"disk": []}),
            "no node has the label dsik, which dsik=ssd requires; a similar label is disk",
            id="a label that no node has",
        ),
        pytest.param(
            Cause(CauseKind.NO_SUCH_RESOURCE, "nvidia.com/gpu"),
            "no node offers nvidia.com/gpu: its driver or device plugin is missing or has not registered",
            id="a device that no node offers",
        ),
        pytest.param(
            Cause(CauseKind.NO_SUCH_RESOURCE, "nvidia.com/gpu", amounts={"a": 8}),
            "nvidia.com/gpu is in the capacity of nodes but not allocatable: 8 on a; its driver or device plugin "
            "reports it as unhealthy",
            id="devices that are not allocatable",
        ),
        pytest.param(
            Cause(CauseKind.NODE_GONE, "PersistentVolume pv", nodes=["old"]),
            "PersistentVolume pv can only be used on old, which does not exist; its data is there alone",
            id="a volume of a deleted node",
        ),
        pytest.param(
            Cause(CauseKind.PARTS, "cpu", amounts={"init container setup": 2000, "overhead": 250, "total": 2250}),
            "the pod requests 2.25 cpu: 2 (init container setup) + 250m (overhead)",
            id="parts of a request",
        ),
        pytest.param(
            Cause(CauseKind.RESERVED, "cpu", nodes=["a"], amounts={"allocatable": 3000, "capacity": 4000}),
            "a has 4 cpu, of which 3 is allocatable to pods",
            id="reserved capacity",
        ),
        pytest.param(
            Cause(CauseKind.EMPTY_DOMAIN, "zone", nodes=["a"]),
            "a counts as a domain of zone with the fewest pods, although the pod cannot run there",
            id="an unusable domain",
        ),
        pytest.param(
            Cause(CauseKind.NO_DEVICES, "shop/c", "gpu"),
            "no ResourceSlice has a device for claim shop/c (class gpu): its DRA driver is missing or has published"
            " none",
            id="no devices",
        ),
        pytest.param(
            Cause(CauseKind.SELECTOR, "shop/c", selector="device.x", values={"product=L40S": ["a", "b", "c"]}),
            "the selector device.x of claim shop/c rejects devices with product=L40S (a, b and 1 more)",
            id="a selector of a claim",
        ),
        pytest.param(
            Cause(CauseKind.SELECTOR, "shop/c", "gpu", selector="device.x"),
            "the selector device.x of class gpu rejects devices",
            id="a selector of a class",
        ),
        pytest.param(
            Cause(CauseKind.OTHER_NODE, "zone=x", pods=["a/1", "a/2"], nodes=["n1", "n2"], amounts={"pods": 5}),
            "a/1 on n1, a/2 on n2 and 3 more keep it out of zone=x; preemption on other nodes there can't evict them",
            id="pods on other nodes",
        ),
    ],
)
def test_a_cause_in_words(cause: Cause, words: str) -> None:
    assert cause_in_words(cause) == words
    assert words in " ".join(render([unschedulable(causes=[cause])], "text", options=RenderOptions()).split())


def test_the_report_on_a_node_that_lost_by_score_gives_its_rank() -> None:
    verdict = Verdict(
        algorithm="kube-1.36",
        outcome=Outcome.LANDS,
        pod=PodSummary("shop", "api"),
        scores={"a": 300, "b": 500, "c": 400},
        feasible_nodes=["a", "b", "c"],
        chosen_nodes=["b"],
        lands_on=["b"],
        node_report=NodeReport("a", NodeEvaluation(), rank=3),
    )
    text = render([verdict], "text", options=RenderOptions())
    assert "NODE          a fits and ranks 3 of 3: score 300 (best: 500)" in text
