"""Every remedy of a random drain brings what it promises, and where a single change helps, one is usually offered."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.verdict.drain import Drain
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedyStage
from tests.drains import altered, autoscaler, bare, budget, check_promise, drained, drained_without
from tests.rollouts import Document, nodes, running, workload

LAWS = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SCENARIOS = 25
_LIMITS = (
    {"maxUnavailable": 0},
    {"maxUnavailable": 1},
    {"minAvailable": 1},
    {"minAvailable": 2},
    {"minAvailable": "100%"},
)
_UNREADY = [{"type": "Ready", "status": "False"}]


def scenario(seed: int) -> tuple[list[Document], str]:
    """A small cluster with budgets that may block the drain of some of its nodes."""
    draw = random.Random(seed)
    number = draw.randint(2, 4)
    names = [f"n{index}" for index in range(1, number + 1)]
    documents = nodes(number, draw.choice(["2", "4"]))
    for name in ("web", "api", "db")[: draw.randint(1, 3)]:
        kind = draw.choice(["Deployment", "Deployment", "StatefulSet"])
        on = [draw.choice(names) for _ in range(draw.randint(1, 3))]
        more: dict[str, Any] = {"strategy": {"type": "Recreate"}} if draw.random() < 0.2 else {}
        if draw.random() < 0.2:
            more["pod"] = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
        documents += running(workload(kind, name, cpu=draw.choice(["100m", "1"]), replicas=len(on), **more), on)
        if draw.random() < 0.25:
            pods = [each["metadata"]["name"] for each in documents if each["kind"] == "Pod"]
            documents = altered(documents, draw.choice(pods), conditions=_UNREADY)
        if draw.random() < 0.8:
            documents.append(budget(name, **draw.choice(_LIMITS)))
        if draw.random() < 0.1:
            documents.append(budget(f"{name}-too", name, maxUnavailable=1))
        if kind == "Deployment" and draw.random() < 0.2:
            documents.append(autoscaler(name, len(on), draw.randint(len(on), 5)))
    if draw.random() < 0.2:
        documents += running(workload("DaemonSet", "logs", cpu="100m"), [draw.choice(names)])
    if draw.random() < 0.1:
        documents.append(bare("one", draw.choice(names)))
    if draw.random() < 0.15:
        documents[draw.randrange(number)]["spec"] = {"unschedulable": True}
    return documents, " ".join(draw.sample(names, min(draw.choice([1, 1, 1, 2, 2, 3]), number)))


@LAWS
@given(st.integers(0, 10**9))
def test_every_remedy_keeps_its_promise_and_makes_nothing_worse(seed: int) -> None:
    documents, line = scenario(seed)
    drain = drained(documents, line)
    for remedy in drain.remedies:
        assert remedy.solves
        check_promise(remedy, documents, line)
    for blocked in drain.blocked:
        for remedy in blocked.remedies:
            check_promise(remedy, documents, line, blocked)
    for finding in drain.findings if drain.finishes else ():
        for remedy in finding.remedies:
            after = check_promise(remedy, documents, line)
            assert (finding.rule, finding.subject) not in {(each.rule, each.subject) for each in after.findings}


def single_changes(documents: Sequence[Document], line: str) -> Iterator[Remedy]:
    """All single changes of the kinds that are tried, without regard to what blocks the drain."""
    for each in documents:
        kind, name = each["kind"], f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        if kind == "PodDisruptionBudget":
            for limit in range(1, 4):
                yield _remedy(
                    RemedyStage.LIMIT,
                    Change(ChangeKind.SET, f"{kind} {name}"),
                    ObjectEdit(f"{kind} {name}", {"spec": {"maxUnavailable": limit, "minAvailable": None}}),
                )
            policy = {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}
            change = Change(ChangeKind.SET, f"{kind} {name}", field="policy")
            yield _remedy(RemedyStage.LIMIT, change, ObjectEdit(f"{kind} {name}", policy))
            change = Change(ChangeKind.DELETE, f"{kind} {name}")
            yield _remedy(RemedyStage.DELETION, change, ObjectEdit(f"{kind} {name}", deletes=True))
        if kind in ("Deployment", "StatefulSet"):
            size = each["spec"]["replicas"] + 1
            change = Change(ChangeKind.SCALE, f"{kind} {name}", before=size - 1, after=size)
            edit = ObjectEdit(f"{kind} {name}", {"spec": {"replicas": size}})
            cordons = [Change(ChangeKind.CORDON, node) for node in line.split()]
            yield Remedy(stage=RemedyStage.REQUESTER, changes=[*cordons, change], edits=[edit])
        if kind == "Pod" and each["status"]["conditions"] == _UNREADY:
            yield _remedy(RemedyStage.REPAIR, Change(ChangeKind.REPAIR, f"Pod {name}"))
    for node in line.split():
        yield _remedy(RemedyStage.CAPACITY, Change(ChangeKind.ADD_NODE, node))


def _remedy(stage: RemedyStage, change: Change, edit: ObjectEdit | None = None) -> Remedy:
    return Remedy(stage=stage, changes=[change], edits=[edit] if edit is not None else [])


def helps(remedy: Remedy, documents: Sequence[Document], line: str, without: Drain) -> bool:
    """Whether the drain finishes with the remedy, and nothing is worse."""
    try:
        for more in ({"runs": 1}, {}):
            check_promise(remedy, documents, line, without=without, **more)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    "start", [pytest.param(7), *(pytest.param(1000 * each, marks=pytest.mark.slow) for each in range(1, 9))]
)
def test_where_a_single_change_helps_one_is_offered(start: int) -> None:
    helped, offered = 0, 0
    for seed in range(start, start + SCENARIOS):
        documents, nodes_drained = scenario(seed)
        line = f"{nodes_drained} --ignore-daemonsets --delete-emptydir-data"
        if drained(documents, line, runs=1, has_time=lambda: False).finishes:
            continue
        without = drained_without(documents, line)
        if any(helps(each, documents, line, without) for each in single_changes(documents, nodes_drained)):
            helped += 1
            offered += bool(drained(documents, line).remedies)
    assert helped >= 1
    assert offered >= 0.6 * helped
