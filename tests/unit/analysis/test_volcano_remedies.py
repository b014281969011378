"""Remedies for jobs that Volcano does not bind: an expert's for each cause, and that all keep their promise."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kpreempt.report.remedies import action, commands
from kpreempt.verdict.volcano import GangAnswer, GangOutcome
from tests.volcano_scenarios import (
    Document,
    applied,
    check_promise,
    configuration,
    explained,
    gang,
    job,
    node,
    priority_class,
    queue,
)


class Case(NamedTuple):
    """A submitted job or a pending pod, its outcome, and its remedies in words with the tasks they evict."""

    objects: list[Document]
    outcome: GangOutcome
    expected: list[tuple[str, str]]
    manifest: Document | None = None
    pod: str = ""
    conf: Document | None = None


PREEMPTING = configuration("enqueue, allocate, preempt", without=["overcommit", "proportion", "drf"])
HIGH, LOW = priority_class("high", 1000), priority_class("low", 10)
CASES = {
    "the queue is closed": Case(
        [node("n1", "8"), queue("default"), queue("train", state="Closed")],
        GangOutcome.REJECTED,
        [("set status.state: Open in Queue train", "")],
        job("w", "2", queue="train"),
    ),
    "the queue's name is misspelled": Case(
        [node("n1", "8"), queue("default"), queue("training")],
        GangOutcome.REJECTED,
        [("set queue: training in Job ml/w", ""), ("create Queue trainnig", "")],
        job("w", "2", queue="trainnig"),
    ),
    "a pod group's queue does not exist": Case(
        [node("n1", "8"), queue("default"), queue("training"), *gang("w", "2", [""], queue="trainnig")],
        GangOutcome.IGNORED,
        [("set queue: training in PodGroup ml/w", ""), ("create Queue trainnig", "")],
        pod="w-0",
    ),
    "a job needs more tasks than it has": Case(
        [node("n1", "8"), queue("default")],
        GangOutcome.REJECTED,
        [("set minAvailable: 2 in Job ml/w", "")],
        job("w", "2", tasks=2, needs=3),
    ),
    "the cluster is too full to enqueue the job": Case(
        [node("n1", "8"), queue("default")],
        GangOutcome.NOT_ENQUEUED,
        [("add 1 node like n1", ""), ("set minAvailable: 4 in Job ml/w", "")],
        job("w", "2", tasks=6),
    ),
    "a gang is larger than what fits": Case(
        [node("n1", "8"), queue("default"), *gang("w", "2", [""] * 5, needs=5)],
        GangOutcome.NOT_PLACED,
        [("add 1 node like n1", ""), ("set minMember: 4 in PodGroup ml/w", "")],
        pod="w-0",
    ),
    "a node is cordoned": Case(
        [node("n1", "4"), node("n2", "8", cordoned=True), queue("default")],
        GangOutcome.NOT_PLACED,
        [
            ("request 1 cpu instead of 3", ""),
            ("uncordon n2", ""),
            ("add 1 node like n1", ""),
            ("set minAvailable: 1 in Job ml/w", ""),
        ],
        job("w", "3", tasks=2),
    ),
    "a task requests more than a node has": Case(
        [node("n1", "4"), node("n2", "4"), queue("default")],
        GangOutcome.NOT_PLACED,
        [("request 4 cpu instead of 6", "")],
        job("w", "6"),
    ),
    "a node selector is misspelled": Case(
        [node("n1", "8", pool="batch"), queue("default")],
        GangOutcome.NOT_PLACED,
        [("require pool=batch", "")],
        job("w", "2", nodeSelector={"pool": "bacth"}),
    ),
    "the queue's capability is exceeded": Case(
        [node("n1", "16"), queue("default"), queue("train", capability={"cpu": "4"})],
        GangOutcome.NOT_ENQUEUED,
        [
            ("raise the capability of cpu of Queue train from 4 to 6", ""),
            ("set minAvailable: 2 in Job ml/w", ""),
        ],
        job("w", "2", tasks=3, queue="train"),
    ),
    "the configuration does not preempt": Case(
        [
            node("n1", "4"),
            queue("default"),
            HIGH,
            LOW,
            *gang("low", "2", ["n1", "n1"], priority="low", value=10),
            *gang("w", "2", [""], priority="high", value=1000),
        ],
        GangOutcome.NOT_PLACED,
        [
            ("add 1 node like n1", ""),
            ("set actions: enqueue, allocate, preempt in volcano-scheduler.conf", "ml/low-0"),
        ],
        pod="w-0",
        conf=configuration("enqueue, allocate", without=["overcommit", "proportion"]),
    ),
    "the job's priority is too low": Case(
        [
            node("n1", "4"),
            queue("default"),
            HIGH,
            LOW,
            *gang("low", "2", ["n1", "n1"], priority="low", value=10),
            *gang("w", "2", [""], priority="low", value=10),
        ],
        GangOutcome.NOT_PLACED,
        [
            ("add 1 node like n1", ""),
            ("raise the priority of PodGroup ml/w (to high) from 10 to 1,000", "ml/low-0"),
        ],
        pod="w-0",
        conf=PREEMPTING,
    ),
}


def answers(case: Case) -> GangAnswer:
    return explained(case.objects, case.manifest, case.pod, case.conf)


def priorities_of(objects: list[Document]) -> dict[str, int]:
    return {
        f"ml/{each['metadata']['name']}": each["spec"].get("priority", 0) for each in objects if each["kind"] == "Pod"
    }


@pytest.mark.parametrize("name", CASES)
def test_remedies_are_those_of_an_expert(name: str) -> None:
    found = answers(CASES[name])
    assert found.outcome is CASES[name].outcome
    assert [(action(each), ", ".join(each.evicted)) for each in found.remedies] == CASES[name].expected


@pytest.mark.parametrize("name", CASES)
def test_every_remedy_keeps_its_promise(name: str) -> None:
    case = CASES[name]
    before = answers(case)
    for remedy in before.remedies:
        objects, manifest, conf = applied(case.objects, case.manifest, case.conf, remedy)
        check_promise(before, explained(objects, manifest, case.pod, conf), remedy, priorities_of(objects))


def test_the_job_of_a_pod_group_is_named() -> None:
    objects = [node("n1", "8"), queue("default"), *gang("w", "2", [""] * 5, needs=5, owner="Job")]
    found = {action(each): each.manager for each in explained(objects, pod="w-0").remedies}
    assert found == {"add 1 node like n1": "", "set minMember: 4 in PodGroup ml/w": "Job ml/w"}


def test_a_status_is_changed_as_a_subresource() -> None:
    [remedy] = answers(CASES["the queue is closed"]).remedies
    patch = """'{"status":{"state":"Open"}}'"""
    assert commands(remedy) == [f"kubectl patch queue train --subresource status --type merge -p {patch}"]


def test_a_bound_job_has_no_remedies() -> None:
    found = explained([node("n1", "8"), queue("default")], job("w", "2"))
    assert (found.outcome, found.remedies, found.search) == (GangOutcome.BOUND, [], None)
