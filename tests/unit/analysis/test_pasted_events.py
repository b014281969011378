from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.analysis.messages.events import explain_events
from kpreempt.analysis.messages.pasted import parse_text
from kpreempt.report.blocks import text_of
from kpreempt.report.explained_events import lead_of_object, report
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.messages import EventTopic, ExplainedEvents

NO_CPU = "0/3 nodes are available: 3 Insufficient cpu."
SCHEDULER = "default-scheduler"
COLUMNS = "LAST SEEN   TYPE      REASON             OBJECT    "
HELPLESS = " preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."


def _explained(text: str) -> ExplainedEvents:
    return explain_events(parse_text(text))


@pytest.mark.parametrize(
    ("text", "name", "age", "times", "message"),
    [
        pytest.param(NO_CPU, "", None, 1, NO_CPU, id="a bare message"),
        pytest.param(f"why?\n\n> {NO_CPU[:24]}\n> {NO_CPU[25:]}\n", "", None, 1, NO_CPU, id="a wrapped quotation"),
        pytest.param(f"Pending since noon: `{NO_CPU}`", "", None, 1, NO_CPU, id="in a sentence"),
        pytest.param(
            f'E0825 1 schedule_one.go:10] "Unable to schedule pod; no fit; waiting" pod="shop/web" err="{NO_CPU}"',
            "shop/web",
            None,
            1,
            NO_CPU,
            id="a line of the scheduler's log",
        ),
        pytest.param(
            "Name:  web\nNamespace:  shop\nNode:  <none>\nEvents:\n"
            "  Type     Reason            Age                From               Message\n"
            "  ----     ------            ----               ----               -------\n"
            f"  Warning  FailedScheduling  3m1s (x4 over 9m)  default-scheduler  {NO_CPU}\n",
            "shop/web",
            181,
            4,
            NO_CPU,
            id="kubectl describe",
        ),
        pytest.param(
            f"  Warning  FailedScheduling  <unknown>  default-scheduler  {NO_CPU}",
            "",
            None,
            1,
            NO_CPU,
            id="one row without an age",
        ),
        pytest.param(
            f" Warning FailedScheduling 5s default-scheduler {NO_CPU}", "", 5, 1, NO_CPU, id="a row with single spaces"
        ),
        pytest.param(
            f"{COLUMNS}MESSAGE\n4m  Warning  FailedScheduling  pod/web  {NO_CPU}",
            "web",
            240,
            1,
            NO_CPU,
            id="kubectl get events",
        ),
        pytest.param(
            f"shop  4m (x9 over 1h)  Warning  FailedScheduling  Pod/web  {NO_CPU[:24]}\n   {NO_CPU[25:]}{HELPLESS}",
            "shop/web",
            240,
            9,
            NO_CPU + HELPLESS,
            id="kubectl events -A, wrapped and without its columns",
        ),
        pytest.param(
            f"{COLUMNS}SUBOBJECT   SOURCE   MESSAGE   FIRST SEEN   COUNT   NAME\n"
            f"4m   Warning   FailedScheduling   pod/web             {SCHEDULER}  {NO_CPU}    9m   5   web.17a\n",
            "web",
            240,
            5,
            NO_CPU,
            id="kubectl get events -o wide",
        ),
    ],
)  # fmt: skip
def test_events_are_found_in_pasted_text(text: str, name: str, age: int | None, times: int, message: str) -> None:
    (item,) = _explained(text).items
    (event,) = item.events
    assert "/".join(filter(None, (item.namespace, item.name))) == name
    assert (event.age_seconds, event.times, event.message) == (age, times, message)
    assert event.topic is EventTopic.SCHEDULING


def test_a_description_has_the_priority_node_and_status() -> None:
    found = _explained(
        "Name:  gone\nNamespace:  shop\nPriority:  1000\nNode:  node-a/10.0.0.1\nStatus:  Failed\nReason:  OutOfcpu\n"
        "Message:  Pod was rejected: Node didn't have enough resource: cpu, requested: 2, used: 3, capacity: 4\n"
        "\nName:  web\nNominatedNodeName:  node-b\nEvents:\n"
        f"  Warning  FailedScheduling  3m  {SCHEDULER}  {NO_CPU}\n"
    )
    web, gone = found.items
    assert (gone.key, gone.node, gone.priority) == ("shop/gone", "node-a", 1000)
    assert gone.events[0].topic is EventTopic.TERMINATION
    assert (web.key, web.nominated_node) == ("web", "node-b")


def test_the_latest_event_comes_first_and_equal_ones_are_merged() -> None:
    found = _explained(
        f"shop  9m  Warning  FailedScheduling  pod/a  {NO_CPU}\n"
        f"shop  2m  Normal  Preempted  pod/b  Preempted by a pod on node node-b\n"
        f"shop  30s (x2 over 1m)  Warning  FailedScheduling  pod/a  {NO_CPU}\n"
        "shop  10s  Warning  BackOff  pod/a  Back-off restarting failed container\n"
        "shop  10s  Warning  BackOff  pod/c  Back-off restarting failed container\n"
    )
    assert [each.key for each in found.items] == ["shop/a", "shop/b"]
    assert [(each.age_seconds, each.times) for each in found.items[0].events] == [(30, 3)]
    assert (found.items[0].other_events, found.other_objects) == (1, 1)


def test_the_controller_that_reports_shows_the_kind() -> None:
    (item,) = _explained(
        "Name:  web\nNamespace:  shop\nEvents:\n"
        '  Warning  FailedCreate  1m  replicaset-controller  Error creating: pods "web-" is forbidden: no\n'
    ).items
    assert (item.kind, item.key) == ("ReplicaSet", "shop/web")


@pytest.mark.parametrize(
    ("reporter", "scheduler"),
    [("volcano", "Volcano"), ("my-scheduler", "my-scheduler"), ("default-scheduler", "")],
)
def test_other_messages_name_their_scheduler(reporter: str, scheduler: str) -> None:
    (item,) = _explained(f"  Warning  FailedScheduling  1m  {reporter}  no luck today").items
    message = item.events[0].scheduling
    assert message is not None
    assert message.scheduler == scheduler
    words = text_of(lead_of_object(item, RenderOptions()))
    assert (
        words
        == f"The pod was not scheduled{scheduler and f' by {scheduler}'}: this is not a message of kube-scheduler."
    )


@pytest.mark.parametrize(
    ("line", "topic"),
    [
        ("Normal  Scheduled  1m  default-scheduler  Successfully assigned shop/web to node-1", EventTopic.SCHEDULED),
        ("Normal  Preempted  1m  default-scheduler  Preempted by shop/api on node node-1", EventTopic.PREEMPTED),
        ("Normal  TriggeredScaleUp  1m  cluster-autoscaler  pod triggered scale-up: [{a 1->2 (max: 3)}]",
         EventTopic.AUTOSCALER),
        ("Warning  FailedScheduling  1m  karpenter  Failed to schedule pod, no instance type", EventTopic.AUTOSCALER),
        ("Warning  FailedScheduling  1m  volcano  0/3 nodes are available: 3 odd.", EventTopic.OTHER_SCHEDULER),
        ("Warning  FailedScheduling  1m  my-scheduler  no luck today", EventTopic.OTHER_SCHEDULER),
        ('Warning  FailedCreate  1m  job-controller  Error creating: pods "a" is forbidden: exceeded quota: q, x',
         EventTopic.CREATION),
        ("Warning  OutOfmemory  1m  kubelet, node-1  Node didn't have enough resource: memory, requested: 2, used: 3,"
         " capacity: 4", EventTopic.TERMINATION),
        ("Warning  Evicted  1m  kubelet  The node was low on resource: memory. ", EventTopic.TERMINATION),
        ('Warning  FailedMount  1m  kubelet  MountVolume.SetUp failed for volume "x"', EventTopic.KUBELET),
    ],
    ids=lambda value: value.split()[1] if "  " in value else None,
)  # fmt: skip
def test_each_event_has_its_topic(line: str, topic: EventTopic) -> None:
    (item,) = _explained(line).items
    assert item.events[0].topic is topic


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("-" * 100_000 + "x", id="dashes"),
        pytest.param("1m Warning" + " " * 100_000 + "x", id="spaces"),
        pytest.param("1s" * 100_000, id="ages"),
        pytest.param('pod="a/b" err="' * 20_000, id="quotations"),
        pytest.param("Name: x\n" * 100_000, id="descriptions without events"),
        pytest.param("\n" * 1_000_000, id="empty lines"),
    ],
)
def test_other_text_ends_without_events(text: str) -> None:
    assert not _explained(text).items


LINES = (
    *("Name:  a", "Node:  n/1", "Events:", "", "Reason: Evicted", "Message: x", NO_CPU, HELPLESS, "\x1b[31m"),
    *(f"  Warning  FailedScheduling  3m  {SCHEDULER}  ", "1m  Normal  Preempted  pod/x  "),
)


@given(st.lists(st.sampled_from(LINES)))
def test_any_lines_are_read(lines: list[str]) -> None:
    found = _explained("\n".join(lines))
    assert all(each.events for each in found.items)


def test_pods_with_the_same_message_share_a_line() -> None:
    rows = [f"{age}s  Warning  FailedScheduling  pod/{name}  {NO_CPU}" for age, name in enumerate("abc", 1)]
    rows.append("9s  Warning  FailedScheduling  pod/d  no nodes available to schedule pods")
    words = report(_explained("\n".join(rows)), RenderOptions())
    lead = (
        "Reported 1s ago, not verified: a fits on none of 3 nodes: 3 lack free cpu. 2 more pods have the same message."
    )
    assert text_of(words.lead) == lead
    (others,) = [each for each in words.sections if each.label == "OTHERS"]
    listed = [text_of(line) for block in others.blocks for item in getattr(block, "items", ()) for line in item]
    assert listed == ["d has no nodes to choose from."]


def test_a_resize_that_is_pending_has_its_cause() -> None:
    (item,) = _explained(
        "Warning  ResizeDeferred  1m  kubelet  Pod resize Deferred: "
        '{"containers":[],"generation":2,"error":"no cpu left"}'
    ).items
    words = text_of(lead_of_object(item, RenderOptions()))
    assert words == "The pod: its in-place resize was deferred by the kubelet 60s ago: no cpu left."
