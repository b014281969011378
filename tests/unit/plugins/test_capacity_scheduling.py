"""CapacityScheduling: the cases of upstream's tests (v0.34.7) as clusters, and additional ones.

Upstream's tests state what a quota uses; here pods use it, on a node that is not in the cluster where they should take
no room.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Container, Pod, ResourceRequirements
from kpreempt.model.quantity import quantity
from kpreempt.plugins import NodeToStatus, Resource, unresolvable
from kpreempt.plugins.examples.capacity_scheduling import CapacityScheduling
from kpreempt.plugins.examples.elastic_quota import exceeded, request_of
from kpreempt.verdict import Code, Outcome, Verdict
from tests.factories import make_budget, make_node, make_pod
from tests.unit.plugins.running import PluginRun, cluster_of, decide_with, victims_of

QUOTAS = "ElasticQuota.scheduling.x-k8s.io"
MID, HIGH = 100, 1000
FAR = "a node that is not there"
NODE = make_node("node-a", memory="150")


def quota(namespace: str, name: str = "quota", **spec: Any) -> dict[str, Any]:
    """A quota as a document; ``min`` and ``max`` are bytes of memory, or a map."""
    amounts = {field: {"memory": given} if isinstance(given, int) else given for field, given in spec.items()}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": amounts,
    }


def pod(name: str, namespace: str, memory: int, priority: int = MID, node: str = "", **more: Any) -> Pod:
    return make_pod(name, namespace=namespace, memory=str(memory), priority=priority, node=node, **more)


def cluster(quotas: list[dict[str, Any]], *pods: Pod, node: Any = NODE, **kinds: Any) -> ClusterSnapshot:
    return cluster_of([node], pods, documents={QUOTAS: quotas}, **kinds)


def decide(on: ClusterSnapshot, requested: Pod) -> Verdict:
    return decide_with(CapacityScheduling, on, requested)


BOTH = [quota("ns1", min=1000, max=2000), quota("ns2", min=1000, max=2000)]


@pytest.mark.parametrize(
    ("on", "requested", "rejected"),
    [
        pytest.param(
            cluster([BOTH[0]], pod("u", "ns1", 300, node=FAR)), pod("p1", "ns1", 500), "", id="within min and max"
        ),
        pytest.param(
            cluster([BOTH[0]], pod("u", "ns1", 300, node=FAR)),
            pod("p2", "ns1", 1800),
            "Pod ns1/p2 is rejected in PreFilter because ElasticQuota ns1 is more than Max",
            id="more than max",
        ),
        pytest.param(
            cluster(BOTH, pod("u1", "ns1", 1800, node=FAR), pod("u2", "ns2", 200, node=FAR)),
            pod("p1", "ns2", 500),
            "Pod ns2/p1 is rejected in PreFilter because total ElasticQuota used is more than min",
            id="the sum of used is bigger than the sum of min",
        ),
        pytest.param(cluster([]), pod("p1", "ns2", 500), "", id="no quota in the namespace"),
        pytest.param(
            cluster([quota("ns1", "first", min=1000), quota("ns1", "second", min=0)]),
            pod("p1", "ns1", 500),
            "",
            id="of several quotas the first counts",
        ),
        pytest.param(
            cluster([quota("ns1", min={"memory": 1000, "cpu": 1}, max={"cpu": 2})]),
            pod("p1", "ns1", 1),
            "Pod ns1/p1 is rejected in PreFilter because ElasticQuota ns1 is more than Max",
            id="a max that does not name memory allows none",
        ),
        pytest.param(cluster([quota("ns1", min=1000)]), pod("p1", "ns1", 1000), "", id="no max at all is no limit"),
        pytest.param(
            cluster([quota("ns1", min=1000, max={})]),
            pod("p1", "ns1", 1),
            "Pod ns1/p1 is rejected in PreFilter because ElasticQuota ns1 is more than Max",
            id="an empty max allows nothing",
        ),
        pytest.param(
            cluster([quota("ns1", max=1000)]),
            pod("p1", "ns1", 1),
            "Pod ns1/p1 is rejected in PreFilter because total ElasticQuota used is more than min",
            id="without min nothing is guaranteed",
        ),
        pytest.param(
            cluster([BOTH[0]], pod("u", "ns1", 900, node=FAR, phase="Succeeded")),
            pod("p1", "ns1", 1000),
            "",
            id="a finished pod uses nothing",
        ),
        pytest.param(
            cluster([BOTH[0]], pod("u", "ns1", 900)), pod("p1", "ns1", 1000), "", id="a pending pod uses nothing"
        ),
        pytest.param(
            cluster([BOTH[0]], pod("n", "ns1", 900, nominated="node-a")),
            pod("p1", "ns1", 500),
            "Pod ns1/p1 is rejected in PreFilter because total ElasticQuota used is more than min",
            id="a nominated pod of the namespace counts",
        ),
        pytest.param(
            cluster([BOTH[0]], pod("n", "ns1", 900, priority=MID - 1, nominated="node-a")),
            pod("p1", "ns1", 500),
            "",
            id="but not one of lower priority",
        ),
        pytest.param(
            cluster(BOTH, pod("n", "ns2", 900, priority=0, nominated="node-a"), pod("u", "ns1", 900, node=FAR)),
            pod("p1", "ns1", 500),
            "Pod ns1/p1 is rejected in PreFilter because total ElasticQuota used is more than min",
            id="one of another namespace counts whatever its priority, if that is within its min",
        ),
        pytest.param(
            cluster(
                [quota("ns1", min=3000), quota("ns2", min=100)],
                pod("n", "ns2", 900, nominated="node-a"),
                pod("u", "ns2", 101, node=FAR),
            ),
            pod("p1", "ns1", 2500),
            "",
            id="and not if that uses more",
        ),
    ],
)
def test_what_prefilter_says(on: ClusterSnapshot, requested: Pod, rejected: str) -> None:
    status = PluginRun(CapacityScheduling, on, requested).pre_filter
    assert status.message == rejected
    assert status.code == (Code.UNSCHEDULABLE if rejected else Code.SUCCESS)


def test_a_pod_does_not_count_itself_where_it_is_nominated() -> None:
    requested = pod("p1", "ns1", 600, nominated="node-a")
    assert PluginRun(CapacityScheduling, cluster([BOTH[0]], requested), requested).pre_filter.is_success


IN_NAMESPACE = [quota("ns1", min=50, max=200), quota("ns2", min=200, max=200)]
ACROSS = [quota("ns1", min=150, max=200), quota("ns2", min=50, max=200)]
DAYS = {name: datetime(2026, 11, day, tzinfo=UTC) for name, day in (("p2", 17), ("p3", 18), ("p4", 19))}


def running(name: str, namespace: str, priority: int = MID) -> Pod:
    return pod(name, namespace, 50, priority, node="node-a", started=DAYS[name])


FULL = [running("p2", "ns1"), running("p3", "ns2"), running("p4", "ns2")]


@pytest.mark.parametrize(
    ("on", "victims"),
    [
        pytest.param(cluster(IN_NAMESPACE, *FULL), ["p2"], id="in its own namespace, above its min"),
        pytest.param(
            cluster(ACROSS, FULL[0], running("p3", "ns2"), running("p4", "ns2", HIGH)),
            ["p3"],
            id="in a namespace that uses more than its min, the least important",
        ),
        pytest.param(
            cluster(ACROSS, FULL[0], *[running(name, "ns2", HIGH + 1) for name in ("p3", "p4")]),
            ["p4"],
            id="also a more important one, that which started last",
        ),
        pytest.param(cluster([], *FULL), ["p4"], id="by priority without quotas"),
        pytest.param(
            cluster([quota("ns2", min=200)], *FULL), ["p2"], id="none under a quota, if the pod itself is under none"
        ),
    ],
)
def test_victims_of_a_pod_of_ns1(on: ClusterSnapshot, victims: list[str]) -> None:
    verdict = decide(on, pod("p1", "ns1", 50, HIGH))
    assert verdict.outcome == Outcome.PREEMPTS
    assert victims_of(verdict) == {"node-a": victims}


def test_no_more_are_taken_back_than_were_lent() -> None:
    """Ns2 uses 120 of 50: without one of the three it still does, without two no more; the third may not go."""
    lent = [pod(f"v{index}", "ns2", 40, node="node-a") for index in range(3)]
    on = cluster([quota("ns1", min=150), quota("ns2", min=50)], *lent, node=make_node("node-a", memory="120"))
    assert len(victims_of(decide(on, pod("p1", "ns1", 80, HIGH)))["node-a"]) == 2
    refused = decide(on, pod("p1", "ns1", 120, HIGH))
    assert refused.outcome == Outcome.UNSCHEDULABLE
    assert [status.message for status in refused.dry_run.values()] == ["Insufficient memory"]


def test_a_pod_above_its_min_finds_no_other_pod_in_its_namespace_to_evict() -> None:
    on = cluster([quota("ns1", min=50), quota("ns2", min=100)], *FULL[1:], pod("p5", "ns1", 50, HIGH, node="node-a"))
    verdict = decide(on, pod("p1", "ns1", 50, HIGH))
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert verdict.dry_run["node-a"].message == "No victims found on node node-a for preemptor pod p1"
    # The reasons of this plugin do not begin with "preemption: ".
    assert verdict.message.endswith("0/1 nodes are available: 1 No victims found on node node-a for preemptor pod p1.")
    assert "preemption: " not in verdict.message


# Above its min a namespace takes from itself only; what ns2 does not use leaves all within what is guaranteed.
TIGHT = [quota("ns1", min=50, max=150), quota("ns2", min=1000)]


def test_a_node_whose_victims_do_not_bring_the_quotas_in_order_is_no_candidate() -> None:
    """Evictions on node-a leave ns1 above its max, by what it uses elsewhere."""
    on = cluster(TIGHT, pod("p2", "ns1", 150, node="node-a"), pod("u", "ns1", 130, node=FAR))
    verdict = decide(on, pod("p1", "ns1", 50, HIGH))
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert verdict.dry_run["node-a"].message == "global quota max exceeded"


def test_a_pod_that_fits_next_to_the_incoming_one_goes_where_the_quota_is_exceeded_with_it() -> None:
    room = make_node("node-a", memory="1000")
    on = cluster(TIGHT, pod("p2", "ns1", 100, node="node-a"), node=room)
    verdict = decide(on, pod("p1", "ns1", 100, HIGH))
    assert victims_of(verdict) == {"node-a": ["p2"]}
    (step,) = verdict.candidates[0].steps
    assert step.blocked_by is not None
    assert (step.blocked_by.plugin, step.blocked_by.message) == ("CapacityScheduling", "global quota max exceeded")


def test_nominated_pods_count_when_a_pod_is_put_back_and_not_before() -> None:
    """Without p2 but with the nominated pod, max would be exceeded, too: upstream checks it only for pods put back."""
    room = make_node("node-a", memory="1000")
    nominated = pod("n", "ns1", 100, HIGH, nominated="node-b")
    nodes = [room, make_node("node-b", memory="1000")]
    on = cluster_of(nodes, [pod("p2", "ns1", 10, node="node-a"), nominated], documents={QUOTAS: TIGHT})
    verdict = decide(on, pod("p1", "ns1", 100, HIGH))
    assert victims_of(verdict) == {"node-a": ["p2"]}


def test_a_victim_of_the_quota_alone_violates_its_budget() -> None:
    room = make_node("node-a", memory="1000")
    guarded = pod("p2", "ns1", 100, node="node-a", labels={"app": "db"})
    budget = make_budget("db", {"app": "db"}, 0, namespace="ns1")
    on = cluster(TIGHT, guarded, node=room, pod_disruption_budgets=[budget])
    assert decide(on, pod("p1", "ns1", 100, HIGH)).outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS


def test_the_verdict_warns_that_the_nomination_protects_nothing() -> None:
    verdict = decide(cluster(ACROSS, *FULL), pod("p1", "ns1", 50, HIGH))
    warnings = [each.message for each in verdict.assumptions if "the nomination protects nothing" in each.message]
    assert len(warnings) == 1


def going(name: str, namespace: str, priority: int = MID) -> Pod:
    leaving = pod(name, namespace, 50, priority, node="node-a")
    metadata = msgspec.structs.replace(leaving.metadata, deletion_timestamp=datetime(2026, 11, 20, tzinfo=UTC))
    return msgspec.structs.replace(leaving, metadata=metadata)


NOT_YET = "not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    ("on", "requested", "reason"),
    [
        pytest.param(
            cluster([BOTH[0]]),
            pod("p1", "ns1", 50, HIGH, preemption_policy="Never"),
            "not eligible due to preemptionPolicy=Never.",
            id="a pod that never preempts",
        ),
        pytest.param(cluster([BOTH[0]]), pod("p1", "ns1", 50, HIGH), "", id="a pod that is not nominated"),
        pytest.param(
            cluster([BOTH[0]], going("p0", "ns1")),
            pod("p1", "ns1", 50, HIGH, nominated="node-a"),
            NOT_YET,
            id="a less important one leaves its namespace",
        ),
        pytest.param(
            cluster([BOTH[0]], going("p0", "ns1", HIGH)),
            pod("p1", "ns1", 50, HIGH, nominated="node-a"),
            "",
            id="one as important leaves it, for other reasons",
        ),
        pytest.param(
            cluster([quota("ns1", min=50), quota("ns2", min=10)], going("p0", "ns2")),
            pod("p1", "ns1", 0, HIGH, nominated="node-a"),
            NOT_YET,
            id="a pod gives back what its namespace has borrowed",
        ),
        pytest.param(
            cluster([quota("ns1", min=50), quota("ns2", min=50)], going("p0", "ns2")),
            pod("p1", "ns1", 0, HIGH, nominated="node-a"),
            "",
            id="a pod of a namespace within its min leaves",
        ),
        pytest.param(
            cluster([quota("ns1", min=50), quota("ns2", min=10)], going("p0", "ns2")),
            pod("p1", "ns1", 51, HIGH, nominated="node-a"),
            "",
            id="the pod's own namespace is above its min, so nobody gives it anything back",
        ),
        pytest.param(
            cluster([], going("p0", "ns2")),
            pod("p1", "ns1", 50, HIGH, nominated="node-a"),
            NOT_YET,
            id="no quotas, and a less important one leaves",
        ),
        pytest.param(
            cluster([quota("ns2", min=50)], going("p0", "ns2")),
            pod("p1", "ns1", 50, HIGH, nominated="node-a"),
            "",
            id="one under a quota leaves, and the pod is under none",
        ),
        pytest.param(
            cluster([BOTH[0]]), pod("p1", "ns1", 50, HIGH, nominated="gone"), "", id="the nominated node is not there"
        ),
    ],
)
def test_whether_a_pod_may_preempt(on: ClusterSnapshot, requested: Pod, reason: str) -> None:
    setting = PluginRun(CapacityScheduling, on, requested)
    filtered = NodeToStatus()
    filtered.statuses = dict.fromkeys(("node-a", "gone"), setting.pre_filter)
    eligibility = setting.plugin.eligibility(setting.state, requested, filtered)
    assert (eligibility.eligible, eligibility.reason) == (not reason, reason)


def test_a_pod_whose_nominated_node_is_hopeless_may_preempt_again() -> None:
    requested = pod("p1", "ns1", 50, HIGH, nominated="node-a")
    setting = PluginRun(CapacityScheduling, cluster([BOTH[0]], going("p0", "ns1")), requested)
    filtered = NodeToStatus()
    filtered.statuses["node-a"] = unresolvable("node(s) had a taint")
    assert setting.plugin.eligibility(setting.state, requested, filtered).eligible


def resource(cpu: int = 0, memory: int = 0, ephemeral: int = 0, **scalar: int) -> Resource:
    amounts = Resource()
    amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage = cpu, memory, ephemeral
    amounts.scalar = {f"nvidia.com/{name}": amount for name, amount in scalar.items()}
    return amounts


@pytest.mark.parametrize(
    ("limit", "requested", "used", "unnamed", "expected"),
    [
        pytest.param(
            resource(3000, 100, gpu=5), resource(1500, 100), resource(4000, 200, gpu=5), 0, "cpu", id="more CPU"
        ),
        pytest.param(
            resource(4000, 200, gpu=5), resource(100, 50), resource(300, 100, gpu=5), 0, "", id="less of everything"
        ),
        pytest.param(resource(), resource(100), resource(3900), 0, "cpu", id="nothing guaranteed"),
        pytest.param(
            resource(3000, 100), resource(10, 10, gpu=5), resource(10, 10), 0, "nvidia.com/gpu", id="GPUs not in min"
        ),
        pytest.param(resource(3000, 100), resource(10, 10, gpu=5), resource(10, 10), None, "", id="GPUs not in max"),
        pytest.param(
            resource(3000, 100, 100), resource(10, 10, 100), resource(10, 10, 10), None, "ephemeral-storage", id="disk"
        ),
        pytest.param(
            resource(3000, 100, gpu=1),
            resource(10),
            resource(10, gpu=5),
            0,
            "",
            id="GPUs that the pod does not ask for",
        ),
        pytest.param(
            resource(4000, 200), resource(300, 100, gpu=5), resource(), 0, "nvidia.com/gpu", id="used GPUs not in min"
        ),
        pytest.param(resource(100, 100, 100), resource(100, 100, 100), resource(), 0, "", id="exactly all"),
    ],
)
def test_which_resource_is_exceeded(
    limit: Resource, requested: Resource, used: Resource, unnamed: int | None, expected: str
) -> None:
    assert exceeded(limit, requested, used, unnamed=unnamed) == expected


def test_what_counts_for_a_pod() -> None:
    def container(cpu: str, memory: str, **more: Any) -> Container:
        requests = {"cpu": quantity(cpu), "memory": quantity(memory), "nvidia.com/gpu": quantity("1")}
        return Container(name="c", resources=ResourceRequirements(requests=requests), **more)

    requested = make_pod(
        "p",
        containers=[container("2", "1"), container("1", "1")],
        init_containers=[container("2", "3"), container("500m", "1", restart_policy="Always")],
        overhead={"memory": quantity("10")},
    )
    request = request_of(requested)
    assert (request.milli_cpu, request.memory, request.scalar) == (3000, 13, {"nvidia.com/gpu": 2})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"max": {"cpu": "six"}}, 'spec.max.cpu: "six" is not a quantity', id="words"),
        pytest.param({"min": {"cpu": True}}, "spec.min.cpu is not a quantity", id="a truth value"),
        pytest.param({"min": {"cpu": ["1"]}}, "spec.min.cpu is not a quantity", id="a list"),
        pytest.param({"min": {"cpu": "1" * 999}}, "spec.min.cpu: is too long for a quantity", id="a long number"),
        pytest.param({"max": ["cpu"]}, "spec.max is not an object", id="a list of names"),
        pytest.param([], "spec is not an object", id="a spec that is a list"),
    ],
)
def test_a_quota_that_is_none_ends_the_cycle_with_its_name(spec: Any, message: str) -> None:
    bad = {**quota("ns2", "bad"), "spec": spec}
    verdict = decide(cluster([quota("ns1", min=100), bad]), pod("p1", "ns1", 50))
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert verdict.message == f'running PreFilter plugin "CapacityScheduling": ElasticQuota ns2/bad: {message}'


@pytest.mark.parametrize("spec", [pytest.param(None, id="null"), pytest.param({"min": None, "max": None}, id="nulls")])
def test_a_quota_without_amounts_guarantees_nothing_and_forbids_nothing(spec: Any) -> None:
    empty = {**quota("ns1"), "spec": spec}
    assert PluginRun(CapacityScheduling, cluster([empty]), pod("p1", "ns1", 0)).pre_filter.is_success


def test_where_it_runs_at_post_filter_only_no_pod_may_preempt() -> None:
    from kpreempt.schedulers.kube.configuration import FoundPlugin, scheduler_from_configuration
    from tests.factories import NOW

    points = {"postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]}}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": points}],
    }
    scheduler = scheduler_from_configuration(configuration, plugins=[FoundPlugin(CapacityScheduling, "a test")])
    verdict = scheduler.decide(scheduler.prepare(cluster([], *FULL), now=NOW), pod("p1", "ns1", 50, HIGH))
    assert verdict.eligibility is not None
    assert verdict.eligibility.reason == "not eligible due to failed to read from cycleState"
