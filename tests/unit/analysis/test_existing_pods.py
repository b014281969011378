"""What the explanation of an existing pod says about why it is still pending."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.pending.admission_today import differences_today
from kpreempt.analysis.pending.existing import with_blocked_start, with_reasons
from kpreempt.analysis.pod_inputs import pod_in_cluster
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import Event
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import PersistentVolumeClaimVolume, Pod, Volume
from kpreempt.model.policy import PriorityClass
from kpreempt.model.quantity import Quantity, quantity
from kpreempt.model.workloads import LimitRange, Overhead, RuntimeClass
from kpreempt.report.answers import render_answer
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.verdict import Verdict
from kpreempt.verdict.waiting import OnNodeCause, PendingState
from tests.factories import NOW, make_node, make_pod
from tests.unit.analysis.test_pending import IT, LEAVING, LOW, MINUTE, NOMINATED, failed, going, seen


def tried(minutes: int) -> Event:
    """The event of a single attempt."""
    return msgspec.structs.replace(failed(IT, NOW - (minutes - 1) * MINUTE), series=None)


OLD_MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."


def explain(*pods: Pod, events: list[Event] | None = None, algorithm: str = "kube-1.36") -> Verdict:
    """The verdict on the pod that is called ``it``."""
    cluster = ClusterSnapshot(nodes=[make_node("node-a")], pods=list(pods), events=events or [])
    found = pod_in_cluster(cluster, "it", "shop")
    context = AnalysisContext(found.cluster, scheduler_for(algorithm), NOW, at=NOW)
    (verdict,) = explain_pods(context, [ExplainInput(pod=found.pod, found=found.found)])
    assert found.found is not None
    return with_reasons(verdict, found.found, context)


def said(*pods: Pod, **options: Any) -> str:
    screen = RenderOptions(extent=Extent.SCREEN, width=400)
    return render_answer(explain(*pods, **options), "text", screen)


FITS = "shop/it lands on node-a; nothing is evicted. "
FITS_AS_NOMINATED = "shop/it lands on its nominated node, node-a; nothing is evicted. "
AT_MOST = "at most 5m30s after its last attempt"
MISSED = (
    "It is still pending because the scheduler can miss that the victims of an asynchronous preemption are gone; such a"
    " pod stays among the unschedulable pods until they are flushed. The scheduler tries it again when an event may"
)


@pytest.mark.parametrize(
    ("pods", "options", "text"),
    [
        pytest.param(
            [seen(NOMINATED, refused=NOW - 2 * MINUTE)], {"events": [tried(2)]},
            f"{FITS_AS_NOMINATED}{MISSED} help, or within 3m30s ({AT_MOST}).",
            id="its victims are gone, and the scheduler preempts asynchronously",
        ),
        pytest.param(
            [seen(NOMINATED, refused=NOW - 2 * MINUTE)], {},
            f"{FITS_AS_NOMINATED}{MISSED} help, or {AT_MOST}, whose time is not in the input.",
            id="the same, without events",
        ),
        pytest.param(
            [seen(NOMINATED, refused=NOW - 2 * MINUTE)], {"events": [failed(IT, NOW - 2 * MINUTE)]},
            f"{FITS_AS_NOMINATED}{MISSED} help, or {AT_MOST}, whose time is not in the input.",
            id="a series of events, of which not all are written",
        ),
        pytest.param(
            [seen(NOMINATED, refused=NOW - 2 * MINUTE)],
            {"events": [tried(2)], "algorithm": "kube-1.32"},
            f"{FITS_AS_NOMINATED}It is still pending because it did not fit when the scheduler last tried it 2m ago."
            f" The scheduler tries it again when an event may help, or within 3m30s ({AT_MOST}).",
            id="a version that waits until victims are deleted",
        ),
        pytest.param(
            [seen(IT, refused=NOW - 20 * MINUTE)], {"events": [tried(20)]},
            f"{FITS}It is still pending because it did not fit when the scheduler last tried it. The last reported"
            " attempt was 20m ago, although the scheduler retries such pods within 5m30s: later attempts are not in the"
            " input, or the scheduler is not running.",
            id="the last reported attempt is too old",
        ),
        pytest.param(
            [seen(IT, refused=NOW - MINUTE / 20)], {},
            f"{FITS}It is still pending because it is in backoff: the scheduler tried it 3s ago, and tries it again"
            " within 7s.",
            id="in backoff",
        ),
        pytest.param(
            [seen(IT, created=NOW - MINUTE / 20)], {},
            f"{FITS}The scheduler has not tried it yet; it was created 3s ago.", id="just created",
        ),
        pytest.param(
            [seen(IT, created=NOW - 5 * MINUTE)], {},
            f"{FITS}It was created 5m ago, and default-scheduler has reported no attempt to schedule it: check that"
            " this scheduler is running.",
            id="created long ago, and never tried",
        ),
        pytest.param(
            [seen(NOMINATED, refused=NOW - MINUTE), LOW], {},
            "It is still pending because no victim on its nominated node, node-a, is terminating yet",
            id="nominated, and no victim is terminating",
        ),
        pytest.param(
            [seen(NOMINATED, refused=NOW - MINUTE), LEAVING], {}, "shop/low is held by finalizer example.com/hold.",
            id="a victim that a finalizer keeps",
        ),
        pytest.param(
            [seen(make_pod("it", cpu="2", priority=10, nominated="node-z"), refused=NOW - MINUTE), LOW], {},
            "It is still pending because its nomination to node-z is outdated: preemption no longer helps there.",
            id="nominated to a node that is gone",
        ),
        pytest.param(
            [going(seen(IT), until=NOW)], {}, "Its deletion was requested 30s ago, so the scheduler skips it.",
            id="being deleted",
        ),
    ],
)  # fmt: skip
def test_why_a_pod_is_still_pending(pods: list[Pod], options: dict[str, Any], text: str) -> None:
    assert text in said(*pods, **options).splitlines()[0]


def test_a_condition_that_no_longer_holds_is_shown() -> None:
    text = said(seen(IT, refused=NOW - MINUTE, message=OLD_MESSAGE))
    assert f"its condition is from an earlier attempt: {OLD_MESSAGE}" in text
    full = make_pod("other", node="node-a", cpu="4", priority=99)
    assert "earlier attempt" not in said(seen(IT, refused=NOW - MINUTE, message=OLD_MESSAGE), full)


def test_waiting_victims_are_listed_with_their_grace() -> None:
    lines = said(seen(NOMINATED, refused=NOW - MINUTE), LEAVING).splitlines()
    assert any(
        "waits for shop/low terminating for 0s, at most 30s more; finalizer example.com/hold" in each for each in lines
    )


def test_explain_and_pending_share_the_state() -> None:
    pending = explain(seen(IT, refused=NOW - MINUTE)).still_pending
    assert pending is not None
    assert pending.state is PendingState.FITS_NOW


def test_a_pod_that_is_pending_on_its_node_says_so_first() -> None:
    pod = make_pod("it", node="node-a", phase="Pending", cpu="1")
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=NOW - timedelta(minutes=3))
    pod = msgspec.structs.replace(pod, metadata=metadata)
    on_node = explain(pod).on_node
    assert on_node is not None
    assert on_node.cause is OnNodeCause.NOT_ACCEPTED
    assert said(pod).startswith(
        "shop/it is pending on its node node-a: created 3m ago, and the kubelet of node-a has not reported on it. If it"
        " were recreated: shop/it lands on node-a; nothing is evicted."
    )


def test_running_pods_and_pods_that_do_not_fit_say_nothing_more() -> None:
    running = explain(make_pod("it", node="node-a", cpu="1"))
    assert (running.on_node, running.still_pending) == (None, None)
    full = make_pod("other", node="node-a", cpu="4", priority=99)
    assert "still pending" not in said(seen(IT, refused=NOW - MINUTE), full)


OLD_CLASS = PriorityClass(metadata=ObjectMeta(name="high"), value=1000, preemption_policy="PreemptLowerPriority")
SANDBOXED = RuntimeClass(metadata=ObjectMeta(name="kata"), overhead=Overhead(pod_fixed={"memory": quantity("120Mi")}))
DEFAULTS = msgspec.convert(
    {
        "metadata": {"name": "defaults", "namespace": "shop"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}}]},
    },
    LimitRange,
    dec_hook=lambda kind, value: quantity(value) if kind is Quantity else value,
)


@pytest.mark.parametrize(
    ("pod", "objects", "found"),
    [
        pytest.param(
            make_pod("it", cpu="1", priority=500, priority_class_name="high"), {"priority_classes": [OLD_CLASS]},
            [("spec.priority", "500", "1000", "PriorityClass high")], id="a class that was recreated",
        ),
        pytest.param(
            make_pod("it", cpu="1", priority=1000, priority_class_name="high", preemption_policy="Never"),
            {"priority_classes": [OLD_CLASS]},
            [("spec.preemptionPolicy", "Never", "PreemptLowerPriority", "PriorityClass high")], id="another policy",
        ),
        pytest.param(
            make_pod("it", cpu="1", runtime_class_name="kata"), {"runtime_classes": [SANDBOXED]},
            [("spec.overhead.memory", "", "120Mi", "RuntimeClass kata")], id="an overhead that the class got later",
        ),
        pytest.param(
            make_pod("it", cpu="1", runtime_class_name="kata", overhead={"memory": quantity("60Mi")}),
            {"runtime_classes": [SANDBOXED]},
            [("spec.overhead.memory", "60Mi", "120Mi", "RuntimeClass kata")], id="an overhead that has changed",
        ),
        pytest.param(
            make_pod("it"), {"limit_ranges": [DEFAULTS]},
            [("spec.containers[0].resources.requests.cpu", "", "100m", "LimitRange shop/defaults")],
            id="a default request",
        ),
        pytest.param(make_pod("it", cpu="1"), {"limit_ranges": [DEFAULTS]}, [], id="a request of its own"),
        pytest.param(
            make_pod("it", cpu="1", priority=500, priority_class_name="high", runtime_class_name="kata"), {}, [],
            id="classes that are not in the input",
        ),
    ],
)  # fmt: skip
def test_what_a_pod_that_is_created_today_would_have(
    pod: Pod, objects: dict[str, Any], found: list[tuple[str, ...]]
) -> None:
    differences = differences_today(pod, ClusterSnapshot(pods=[pod], **objects))
    assert [(each.path, each.current, each.today, each.source) for each in differences] == found


def test_the_difference_is_part_of_the_explanation() -> None:
    pod = seen(make_pod("it", cpu="1", priority=500, priority_class_name="high"), refused=NOW - MINUTE)
    cluster = ClusterSnapshot(nodes=[make_node("node-a")], pods=[pod], priority_classes=[OLD_CLASS])
    found = pod_in_cluster(cluster, "it", "shop")
    context = AnalysisContext(found.cluster, scheduler_for(), NOW, at=NOW)
    (verdict,) = explain_pods(context, [ExplainInput(pod=found.pod, found=found.found)])
    text = render_answer(with_reasons(verdict, pod, context), "text", RenderOptions(extent=Extent.SCREEN, width=200))
    assert (
        "a pod created today would have spec.priority = 1000 instead of 500 (PriorityClass high): recreate the pod to"
        " change it" in text
    )


def test_a_new_pod_whose_manifest_names_its_node_says_what_keeps_it_from_starting() -> None:
    claimed = Volume(name="d", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name="data"))
    pod = make_pod("it", node="node-a", phase="Pending", cpu="1", volumes=[claimed])
    cluster = ClusterSnapshot(nodes=[make_node("node-a")])
    context = AnalysisContext(cluster, scheduler_for(), NOW, at=NOW)
    (verdict,) = explain_pods(context, [ExplainInput(pod=pod)])
    text = render_answer(with_blocked_start(verdict, pod, context), "text", RenderOptions(width=200))
    assert text.startswith(
        "shop/it will stay pending on its node node-a: PersistentVolumeClaim shop/data does not exist."
    )
    free = make_pod("it", node="node-a", phase="Pending", cpu="1")
    assert with_blocked_start(verdict, free, context) == verdict
