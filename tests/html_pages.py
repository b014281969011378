"""Checks to be shown as pages, and a parser that fails on markup that does not close."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from html.parser import HTMLParser

from kpreempt.verdict.check import (
    Change,
    ChangeKind,
    Check,
    GateFinding,
    GateStanding,
    NodeRoom,
    OutcomeShare,
    RuleId,
    RuleResult,
)
from kpreempt.verdict.play import (
    BudgetLow,
    Displaced,
    Play,
    PlayEnd,
    PlayStep,
    StepKind,
    Stranded,
    StrandedKind,
    Waiting,
    WorkloadPlay,
)
from kpreempt.verdict.records import Assumption, ClusterSummary
from tests.factories import NOW

# A name that leaves every place in which a page may put it, if it can; and one that turns round what is read.
HOSTILE = "</title></style></script><script>document.title='pwned'</script><img src=x onerror=alert(1)>\"'&amp;--><!--"
TURNED = "shop/\u202eevil\u2066\x1b[31m\x00"
_GI = 2**30
_VOID = {"meta", "br", "hr", "img", "input", "link"}


def whole_check(**named: str) -> Check:
    """A check that fails, with something in every part; ``name``, ``node`` and ``message`` replace what is shown."""
    name, node = named.get("name", "shop/web-5d8f-1"), named.get("node", "node-b")
    message = named.get("message", "0/3 nodes are available: 3 Insufficient cpu.")
    web, api, batch = "Deployment shop/web", "Deployment shop/api", "Deployment batch/crunch"
    steps = [
        PlayStep(at=0.0, kind=StepKind.SCALES, pod="shop/api-7c9", owner="", replicas=3),
        *(_arrives(0.0, f"shop/api-7c9-{number}", "ReplicaSet api-7c9") for number in (1, 2, 3)),
        _lands(0.0, "shop/api-7c9-1", "ReplicaSet api-7c9", "node-c", tied=["node-c", "node-a"]),
        PlayStep(at=0.0, kind=StepKind.NOMINATED, pod="shop/api-7c9-2", node="node-a", owner="ReplicaSet api-7c9"),
        _evicted(0.0, name, "ReplicaSet web-5d8f", "node-a", "shop/api-7c9-2", violated=["shop/web"]),
        _evicted(0.0, "shop/web-5d8f-2", "ReplicaSet web-5d8f", "node-a", "shop/api-7c9-2"),
        _arrives(0.0, "shop/web-5d8f-new-1", "ReplicaSet web-5d8f", cause=name),
        _arrives(0.0, "shop/web-5d8f-new-2", "ReplicaSet web-5d8f", cause="shop/web-5d8f-2"),
        _evicted(1.0, "batch/crunch-66b-9", "ReplicaSet crunch-66b", node, "shop/web-5d8f-new-1"),
        _arrives(1.0, "batch/crunch-66b-new-3", "ReplicaSet crunch-66b", cause="batch/crunch-66b-9"),
        PlayStep(at=1.0, kind=StepKind.WAITS, pod="batch/crunch-66b-new-3", owner="ReplicaSet crunch-66b",
                 message=message),
        PlayStep(at=30.0, kind=StepKind.GONE, pod=name, owner="ReplicaSet web-5d8f", node="node-a"),
        PlayStep(at=30.0, kind=StepKind.GONE, pod="shop/web-5d8f-2", owner="ReplicaSet web-5d8f", node="node-a"),
        _lands(30.0, "shop/api-7c9-2", "ReplicaSet api-7c9", "node-a"),
        _lands(30.0, "shop/api-7c9-3", "ReplicaSet api-7c9", "node-a"),
        PlayStep(at=31.0, kind=StepKind.GONE, pod="batch/crunch-66b-9", owner="ReplicaSet crunch-66b", node=node),
        _lands(31.0, "shop/web-5d8f-new-1", "ReplicaSet web-5d8f", node),
        PlayStep(at=42.5, kind=StepKind.LEAVES, pod="shop/api-5f4-1", owner="ReplicaSet api-5f4", node="node-c",
                 reason="update"),
        PlayStep(at=72.5, kind=StepKind.GONE, pod="shop/api-5f4-1", owner="ReplicaSet api-5f4", node="node-c"),
        _lands(95.0, "shop/web-5d8f-new-2", "ReplicaSet web-5d8f", "node-c"),
    ]  # fmt: skip
    displaced = [
        Displaced(pod=name, priority=100, node="node-a", cause="shop/api-7c9-2", owner="ReplicaSet web-5d8f",
                  workload=web, violated=["shop/web"], replacement="shop/web-5d8f-new-1", lands_on=node),
        Displaced(pod="batch/crunch-66b-9", priority=0, node=node, cause="shop/web-5d8f-new-1", depth=2,
                  owner="ReplicaSet crunch-66b", workload=batch, replacement="batch/crunch-66b-new-3"),
        Displaced(pod="shop/web-5d8f-2", priority=100, node="node-a", cause="shop/api-7c9-2",
                  owner="ReplicaSet web-5d8f", workload=web, replacement="shop/web-5d8f-new-2", lands_on="node-c"),
    ]  # fmt: skip
    play = Play(
        end=PlayEnd.SETTLED,
        seconds=95.0,
        depth=2,
        starts_at={"shop/api-7c9-1": 0.0, "shop/api-7c9-2": 30.0, "shop/api-7c9-3": 30.0},
        displaced=displaced,
        waiting=[
            Waiting(pod="batch/crunch-66b-new-3", priority=0, owner="ReplicaSet crunch-66b", workload=batch,
                    message=message, was_running=True),
            Waiting(pod="batch/other-1", priority=0, waited_before=True, message=message),
        ],
        budgets=[
            BudgetLow(budget="shop/web", before=0, least=-1, after=0, violations=1),
            BudgetLow(budget="shop/api", before=1, least=0, after=1),
        ],
        workloads=[
            WorkloadPlay(workload=api, is_changed=True, wanted_before=2, wanted_after=4, ready_before=2, ready_least=2,
                         ready_after=4, nodes_before={"node-c": 2}, nodes_after={"node-c": 2, "node-a": 2}),
            WorkloadPlay(workload=web, wanted_before=2, wanted_after=2, ready_before=2, ready_least=0, ready_after=2,
                         victims=2, nodes_before={"node-a": 2}, nodes_after={node: 1, "node-c": 1}),
            WorkloadPlay(workload=batch, is_done=False, wanted_before=9, wanted_after=9, ready_before=9, ready_least=8,
                         least_at=1.0, ready_after=8, pending_after=1, victims=1, nodes_before={node: 9},
                         nodes_after={node: 8}),
        ],
        stranded=[
            Stranded(kind=StrandedKind.SERVICE, subject="shop/web", missing=[name, "shop/web-5d8f-2"], until=31.0),
            Stranded(kind=StrandedKind.AFFINITY, subject="shop/cache-0", node="node-a", missing=[name]),
        ],
        draws=1,
        steps=steps,
    )  # fmt: skip
    return Check(
        passed=False,
        algorithm="kube-1.36",
        cluster=ClusterSummary(nodes=3, pods=42, version="v1.36.2", taken_at=NOW - timedelta(hours=1)),
        at=NOW,
        changes=[
            Change(object=api, kind=ChangeKind.ROLLED, strategy="RollingUpdate", replicas=4, replicas_before=2,
                   fields=["spec.replicas", "spec.template.spec.containers[0].resources.requests.cpu"],
                   source="deploy/api.yaml", line=12, origin="charts/api/templates/deployment.yaml"),
            Change(object="ConfigMap shop/api", kind=ChangeKind.UPDATED, source="deploy/api.yaml", line=60),
        ],
        rules=[
            RuleResult(rule=RuleId.MAX_PDB_VIOLATIONS, limit=0, amount=1, failures=1),
            RuleResult(rule=RuleId.MAX_VICTIMS, limit=2, amount=3, failures=1),
            RuleResult(rule=RuleId.MAX_CASCADE_DEPTH, limit=1, amount=2, waived=1),
            RuleResult(rule=RuleId.MAX_PENDING, limit=0, amount=1, not_new=1),
            RuleResult(rule=RuleId.REQUIRE_SCHEDULABLE),
            RuleResult(rule=RuleId.MAX_SNAPSHOT_AGE, is_on=False),
        ],
        findings=[
            GateFinding(rule=RuleId.MAX_CASCADE_DEPTH, subject="Pod batch/crunch-66b-9", amount=2, limit=1,
                        standing=GateStanding.WAIVED,
                        chain=["shop/api-7c9-2", f"{name} → shop/web-5d8f-new-1", "batch/crunch-66b-9"],
                        reason="crunch may wait", by=".kpreempt.yaml:7", expires="2027-01-01", fingerprint="c3"),
            GateFinding(rule=RuleId.MAX_PDB_VIOLATIONS, subject="PodDisruptionBudget shop/web", amount=1, pods=[name],
                        chain=["shop/api-7c9-2", name], change=api, source="deploy/api.yaml", line=12,
                        origin="charts/api/templates/deployment.yaml", since=30.0, detail=message, fingerprint="a1"),
            GateFinding(rule=RuleId.MAX_VICTIMS, subject="Deployment shop/api", amount=3, limit=2,
                        pods=[each.pod for each in displaced], change=api, source="deploy/api.yaml", line=12),
            GateFinding(rule=RuleId.MAX_PENDING, subject=batch, amount=1, standing=GateStanding.NOT_NEW,
                        pods=["batch/crunch-66b-new-3"], detail=message),
        ],
        play=play,
        seed=4,
        runs=20,
        outcomes=[
            OutcomeShare(count=13, seed=0, end="Settled", victims={web: 1}, depth=1),
            OutcomeShare(count=7, seed=4, end="Settled", victims={web: 2, batch: 1}, violations={"shop/web": 1},
                         pending={batch: 1}, depth=2, fails=True),
        ],
        nodes=[
            _room("node-a", {"cpu": 3500, "memory": 6 * _GI, "pods": 5}, {"cpu": 4000, "memory": 7 * _GI, "pods": 5},
                  {web: 2, "StatefulSet shop/cache": 1, "DaemonSet kube-system/agent": 2},
                  {api: 2, "StatefulSet shop/cache": 1, "DaemonSet kube-system/agent": 2}),
            _room(node, {"cpu": 3900, "memory": 4 * _GI, "pods": 30}, {"cpu": 3800, "memory": 4 * _GI + 1, "pods": 30},
                  {"Deployment batch/crunch": 29, "DaemonSet kube-system/agent": 2},
                  {"Deployment batch/crunch": 28, "DaemonSet kube-system/agent": 2, web: 1}),
            _room("node-c", {"cpu": 1000, "memory": 1 * _GI, "pods": 2}, {"cpu": 5000, "memory": 3 * _GI, "pods": 3},
                  {api: 2}, {api: 2, web: 1}),
        ],
        spare={"cpu": 2200, "memory": 10 * _GI, "pods": 298},
        assumptions=[Assumption(f"Pod {name}", "spec.resourceClaims", "devices are not allocated")],
    )  # fmt: skip


def quiet_check() -> Check:
    """A check of which nothing comes."""
    play = Play(end=PlayEnd.SETTLED, seconds=0.0, depth=0, starts_at={}, displaced=[], waiting=[], budgets=[], steps=[])
    rules = [RuleResult(rule=RuleId.MAX_VICTIMS, limit=0)]
    return Check(passed=True, algorithm="kube-1.36", changes=[], rules=rules, findings=[], play=play)


def hostile_check() -> Check:
    """The whole check with names and messages that would break out of a page."""
    return whole_check(name=f"shop/{HOSTILE}", node=TURNED, message=f"{HOSTILE}\n{TURNED}")


def big_check(pods: int = 5000, name_length: int = 200) -> Check:
    """Long names, each pod of a workload of its own evicting another one, at another moment on another node."""
    long = "n" * name_length
    steps, displaced, workloads, findings, nodes, budgets = [], [], [], [], [], []
    for number in range(pods):
        new, old, node, at = f"shop/{long}-new-{number}", f"shop/{long}-{number}", f"{long}-{number}", float(number)
        owner, budget = f"StatefulSet {long}-{number}", f"shop/{long}-{number}"
        steps += [
            _arrives(at, new, owner),
            _evicted(at, old, owner, node, new, violated=[budget]),
            _lands(at, new, owner, node),
        ]
        workload = f"StatefulSet shop/{long}-{number}"
        displaced.append(
            Displaced(pod=old, priority=1, node=node, cause=new, depth=number + 1, workload=workload, violated=[budget],
                      replacement=f"{new}-r", lands_on=node)
        )  # fmt: skip
        workloads.append(WorkloadPlay(workload=workload, ready_before=1, ready_least=0, ready_after=1))
        chain = [f"shop/{long}-{each}" for each in range(min(number, 100))]
        findings.append(GateFinding(rule=RuleId.MAX_PDB_VIOLATIONS, subject=budget, amount=1, pods=chain, chain=chain))
        nodes.append(_room(node, {"cpu": 1}, {"cpu": 2}, {workload: 1}, {workload: 1}))
        budgets.append(BudgetLow(budget=budget, before=0, least=-1, after=0, violations=1))
    check = whole_check()
    play = Play(
        end=PlayEnd.BROKEN_OFF, seconds=float(pods), depth=pods, starts_at={}, displaced=displaced, budgets=budgets,
        waiting=[Waiting(pod=each.pod, priority=1, message="m" * 900) for each in displaced], workloads=workloads,
        stranded=[Stranded(kind=StrandedKind.SERVICE, subject=each.pod, missing=[each.node] * 9) for each in displaced],
        steps=steps,
    )  # fmt: skip
    return Check(
        passed=False,
        algorithm="kube-1.36",
        changes=[Change(object=each.workload, kind=ChangeKind.CREATED, fields=[long] * 20) for each in workloads],
        rules=check.rules,
        findings=findings,
        play=play,
        runs=pods,
        outcomes=[
            OutcomeShare(count=1, seed=number, end="Loop", victims={each.workload: 1 for each in workloads[:50]})
            for number in range(pods)
        ],
        nodes=nodes,
        assumptions=[Assumption(each.pod, "spec.x", "not evaluated") for each in displaced],
    )


def _arrives(at: float, pod: str, owner: str, cause: str = "") -> PlayStep:
    return PlayStep(at=at, kind=StepKind.ARRIVES, pod=pod, owner=owner, cause=cause)


def _lands(at: float, pod: str, owner: str, node: str, tied: Iterable[str] = ()) -> PlayStep:
    return PlayStep(at=at, kind=StepKind.LANDS, pod=pod, owner=owner, node=node, tied=list(tied))


def _evicted(at: float, pod: str, owner: str, node: str, cause: str, violated: Iterable[str] = ()) -> PlayStep:
    return PlayStep(
        at=at, kind=StepKind.LEAVES, pod=pod, owner=owner, node=node, cause=cause, violated=list(violated)
    )  # fmt: skip


def _room(
    node: str, before: dict[str, int], after: dict[str, int], pods_before: dict[str, int], pods_after: dict[str, int]
) -> NodeRoom:
    allocatable = {"cpu": 4000, "memory": 8 * _GI, "pods": 110}
    return NodeRoom(
        node=node,
        allocatable=allocatable,
        before=before,
        after=after,
        pods_before=pods_before,
        pods_after=pods_after,
    )


class Element:
    """An element of a page: its name, attributes, elements and text."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element] = []
        self.words: list[str] = []

    def all(self, name: str = "", class_: str = "") -> list[Element]:
        """The elements within it, in order, of this name and with this class."""
        found = []
        for child in self.children:
            classes = child.attributes.get("class", "").split()
            if (not name or child.name == name) and (not class_ or class_ in classes):
                found.append(child)
            found += child.all(name, class_)
        return found

    @property
    def text(self) -> str:
        """All text within it, in order."""
        return "".join(self.words)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {tag} {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].children.append(element)
        if tag not in _VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        assert self.stack[-1].name == tag, f"</{tag}> closes <{self.stack[-1].name}> in line {self.getpos()[0]}"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        for element in self.stack:
            element.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def parse(page: str) -> Element:
    """The page as a tree; fails where something does not close, closes twice, or has an attribute twice."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    left = [element.name for element in parser.stack[1:]]
    assert not left, f"not closed: {left}"
    return parser.stack[0]
