"""Rollouts, as controllers and scheduler simulation them."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.check import RuleId
from kpreempt.verdict.simulation import BrokenDependencyKind, SimulationEnd, StepKind
from tests.rollouts import Document, checked, end_of, nodes, priority_class, running, tale, workload

HIGH = priority_class("high", 1000)
GATE = "MaxUnavailableStatefulSet"
SURGE = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
HIGH_POD: dict[str, Any] = {"pod": {"priorityClassName": "high"}}


def test_a_new_deployment_that_fits_lands() -> None:
    found = checked(nodes(2), [workload("Deployment", "api", replicas=2)])
    assert tale(found)[:2] == ["0 Scaled api-new 2", "0 Created api-new-1"]
    end = end_of(found, "Deployment shop/api")
    assert (end.is_done, end.ready_after, end.pending_after, found.passed) == (True, 2, 0, True)


def test_a_rolling_update_surges_then_shrinks() -> None:
    old = workload("Deployment", "api", replicas=2, **SURGE)
    found = checked(
        [*nodes(3, "1"), *running(old, ["n1", "n2"])], [workload("Deployment", "api", replicas=2, image="two", **SURGE)]
    )
    assert tale(found) == [
        "0 Scaled api-new 1",
        "0 Created api-new-1",
        "0 Bound api-new-1 n3",
        "0 Scaled api-old 1",
        "0 Terminating api-old-a",
        "0 Scaled api-new 2",
        "0 Created api-new-2",
        "0 Pending api-new-2",
        "30 Terminated api-old-a",
        "30 Bound api-new-2 n1",
        "30 Scaled api-old 0",
        "30 Terminating api-old-b",
        "60 Terminated api-old-b",
    ]
    end = end_of(found, "Deployment shop/api")
    assert (end.ready_before, end.ready_min, end.ready_after, end.is_done) == (2, 2, 2, True)


def test_a_rollout_goes_on_only_once_its_pods_have_been_ready_for_long_enough() -> None:
    more = {**SURGE, "minReadySeconds": 20}
    old = workload("Deployment", "api", replicas=2, **more)
    found = checked(
        [*nodes(4, "1"), *running(old, ["n1", "n2"])],
        [workload("Deployment", "api", replicas=2, image="two", **more)],
    )
    assert [step.at for step in found.simulation.steps if step.kind is StepKind.TERMINATING] == [20, 40]
    assert end_of(found, "Deployment shop/api").is_done


def test_recreate_waits_until_everything_old_is_gone() -> None:
    strategy = {"strategy": {"type": "Recreate"}}
    old = workload("Deployment", "api", replicas=2, **strategy)
    new = workload("Deployment", "api", replicas=2, image="two", **strategy)
    found = checked([*nodes(4, "1"), *running(old, ["n1", "n2"])], [new])
    arrivals = [step.at for step in found.simulation.steps if step.kind is StepKind.CREATED]
    assert arrivals == [30, 30]
    assert end_of(found, "Deployment shop/api").ready_min == 0


def test_an_ordered_stateful_set_is_updated_from_the_last_pod_to_the_first_one_by_one() -> None:
    old = workload("StatefulSet", "db", replicas=3, serviceName="db")
    new = workload("StatefulSet", "db", replicas=3, serviceName="db", image="two")
    found = checked([*nodes(3, "1"), *running(old, ["n1", "n2", "n3"])], [new])
    leaving = [(step.at, step.pod) for step in found.simulation.steps if step.kind is StepKind.TERMINATING]
    assert leaving == [(0, "shop/db-2"), (30, "shop/db-1"), (60, "shop/db-0")]
    assert end_of(found, "StatefulSet shop/db").is_done


def test_a_stateful_set_does_nothing_where_a_pod_of_its_name_is_not_its_own() -> None:
    old = workload("StatefulSet", "db", replicas=2, serviceName="db")
    cluster = [*nodes(3, "1"), *running(old, ["n1", "n2"])]
    first = next(each for each in cluster if each["metadata"]["name"] == "db-0")
    del first["metadata"]["ownerReferences"]
    found = checked(cluster, [workload("StatefulSet", "db", replicas=2, serviceName="db", image="two")])
    assert not found.passed
    reported = [each.message for each in found.assumptions if each.subject == "StatefulSet shop/db"]
    assert any(message.endswith('its controller does nothing: pods "db-0" already exists') for message in reported)


def test_a_partition_keeps_the_first_pods_of_a_stateful_set() -> None:
    update = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    old = workload("StatefulSet", "db", replicas=3, serviceName="db", **update)
    new = workload("StatefulSet", "db", replicas=3, serviceName="db", image="two", **update)
    found = checked([*nodes(3, "1"), *running(old, ["n1", "n2", "n3"])], [new])
    assert [step.pod for step in found.simulation.steps if step.kind is StepKind.TERMINATING] == ["shop/db-2"]
    assert end_of(found, "StatefulSet shop/db").is_done


@pytest.mark.parametrize(
    ("gates", "rolling", "times"),
    [
        pytest.param(None, {"maxUnavailable": 2}, [0, 30, 60, 90], id="without the gate the field counts for nothing"),
        pytest.param({GATE: False}, {"maxUnavailable": 2}, [0, 30, 60, 90], id="nor where the gate is off"),
        pytest.param({GATE: True}, {"maxUnavailable": 2}, [0, 0, 30, 30], id="two at a time"),
        pytest.param({GATE: True}, {"maxUnavailable": "75%"}, [0, 0, 0, 30], id="a percentage, rounded down"),
        pytest.param({GATE: True}, {"maxUnavailable": 4, "partition": 2}, [0, 0], id="a partition stays"),
        pytest.param({GATE: True}, {}, [0, 30, 60, 90], id="one, where the field is not set"),
    ],
)
def test_a_stateful_set_may_be_updated_some_at_a_time(
    gates: dict[str, bool] | None, rolling: dict[str, Any], times: list[float]
) -> None:
    more = {"podManagementPolicy": "Parallel", "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    old = workload("StatefulSet", "db", replicas=4, serviceName="db", **more)
    new = workload("StatefulSet", "db", replicas=4, serviceName="db", image="two", **more)
    found = checked([*nodes(4, "1"), *running(old, ["n1", "n2", "n3", "n4"])], [new], gates=gates)
    assert [step.at for step in found.simulation.steps if step.kind is StepKind.TERMINATING] == times
    assert end_of(found, "StatefulSet shop/db").is_done
    assert found.passed


@pytest.mark.parametrize("replicas", [2, 1], ids=["a change that is scheduled", "one that only takes away"])
def test_a_gate_that_is_not_modeled_is_a_finding(replicas: int) -> None:
    old = workload("Deployment", "api", replicas=2)
    change = workload("Deployment", "api", replicas=replicas, image="one" if replicas == 1 else "two")
    cluster = [*nodes(3, "1"), *running(old, ["n1", "n2"])]
    found = checked(cluster, [change], gates={"PodDeletionCost": False})
    assert (found.passed, [each.rule for each in found.findings]) == (False, [RuleId.UNMODELED_INPUT])
    assert checked(cluster, [change], gates={"PodDeletionCost": True, "WatchList": False}).passed


def test_a_daemon_set_is_updated_node_by_node() -> None:
    old, new = workload("DaemonSet", "agent"), workload("DaemonSet", "agent", image="two")
    found = checked([*nodes(3), *running(old, ["n1", "n2", "n3"])], [new])
    times = [step.at for step in found.simulation.steps if step.kind is StepKind.TERMINATING]
    assert times == [0, 30, 60]
    end = end_of(found, "DaemonSet shop/agent")
    assert (end.nodes_after, end.is_done, end.ready_min) == ({"n1": 1, "n2": 1, "n3": 1}, True, 2)


def test_the_pod_of_a_daemon_set_displaces_on_its_own_node_only() -> None:
    web = workload("Deployment", "web", replicas=1, cpu="2")
    found = checked([*nodes(1), HIGH, *running(web, ["n1"])], [workload("DaemonSet", "agent", **HIGH_POD)])
    assert [(each.pod, each.workload) for each in found.simulation.displaced] == [
        ("shop/web-old-a", "Deployment shop/web")
    ]
    assert end_of(found, "Deployment shop/web").pending_after == 1


def test_a_job_keeps_as_many_pods_as_may_run_side_by_side_until_all_have_completed() -> None:
    found = checked(nodes(2), [workload("Job", "sums", parallelism=2, completions=5)])
    steps = [(step.at, str(step.kind)) for step in found.simulation.steps]
    arrive, land, gone = (
        [at for at, kind in steps if kind == each] for each in (StepKind.CREATED, StepKind.BOUND, StepKind.TERMINATED)
    )
    assert arrive == land == [0, 0, 600, 600, 1200]
    assert gone == [600, 600, 1200, 1200, 1800]
    assert (end_of(found, "Job shop/sums").is_done, found.passed) == (True, True)
    assert [each.message for each in found.assumptions if each.subject == "Job shop/sums"] == [
        "each of its pods is assumed to succeed after 10m (--job-duration)"
    ]


def test_more_pods_of_a_job_than_there_is_room_for_run_one_after_the_other() -> None:
    found = checked(nodes(1, "1"), [workload("Job", "sums", parallelism=3, completions=3)])
    assert [step.at for step in found.simulation.steps if step.kind is StepKind.BOUND] == [0, 600, 1200]
    assert found.passed


@pytest.mark.parametrize(
    ("job", "seconds", "ends"),
    [
        pytest.param({}, None, [600], id="ten minutes, where nothing is said"),
        pytest.param({}, 90, [90], id="as long as the option says"),
        pytest.param({"activeDeadlineSeconds": 300}, 90, [300], id="until its deadline"),
        pytest.param({"activeDeadlineSeconds": 300, "completions": 3}, None, [100, 200, 300], id="in as many rounds"),
        pytest.param({"activeDeadlineSeconds": 2**31 - 1}, None, [600], id="a deadline that says nothing"),
        pytest.param({"activeDeadlineSeconds": 300, "suspend": True}, None, [], id="one that is suspended"),
    ],
)
def test_pods_of_a_job_end(job: Document, seconds: int | None, ends: list[float]) -> None:
    found = checked(nodes(1, "1"), [workload("Job", "sums", parallelism=1, **job)], job_seconds=seconds)
    assert [step.at for step in found.simulation.steps if step.kind is StepKind.TERMINATED] == ends
    assert (end_of(found, "Job shop/sums").is_done, found.passed) == (True, True)


def test_a_job_of_which_a_pod_has_no_node_by_its_deadline_fails() -> None:
    found = checked(nodes(1, "1"), [workload("Job", "sums", cpu="2", activeDeadlineSeconds=300)])
    assert [(each.rule, each.subject) for each in found.findings] == [(RuleId.REQUIRE_SCHEDULABLE, "Job shop/sums")]
    assert [step.at for step in found.simulation.steps if step.kind is StepKind.TERMINATING] == [300]


@pytest.mark.parametrize(
    ("job", "seconds", "passes"),
    [
        pytest.param({}, None, False, id="nothing says how long the Job runs"),
        pytest.param({}, 90, True, id="the option does"),
        pytest.param({"activeDeadlineSeconds": 300}, None, True, id="its deadline does"),
    ],
)
def test_who_waits_for_the_room_of_a_job_waits_for_a_time_that_is_known_or_not(
    job: Document, seconds: int | None, *, passes: bool
) -> None:
    change = [workload("Job", "sums", **job), workload("Deployment", "api", replicas=1)]
    found = checked(nodes(1, "1"), change, job_seconds=seconds)
    assert end_of(found, "Deployment shop/api").is_done
    assert [(each.rule, each.subject) for each in found.findings] == (
        [] if passes else [(RuleId.OUTCOME_UNCERTAIN, "Job shop/sums")]
    )


def test_what_ran_and_comes_back_only_after_a_job_is_a_finding_however_long_that_runs() -> None:
    web = workload("Deployment", "web", replicas=1)
    job = workload("Job", "sums", activeDeadlineSeconds=60, **HIGH_POD)
    found = checked([*nodes(1, "1"), HIGH, *running(web, ["n1"])], [job])
    assert not found.simulation.pending
    assert [(each.rule, each.subject) for each in found.findings] == [(RuleId.OUTCOME_UNCERTAIN, "Job shop/sums")]


def test_pods_of_a_changed_job_that_have_to_go_come_again_after_the_backoff() -> None:
    low = workload("Job", "sums", parallelism=1, cpu="2")
    high = workload("Deployment", "api", cpu="2", **HIGH_POD)
    selective = high["spec"]["template"]["spec"]
    selective["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    found = checked([*nodes(2), HIGH], [low, high], worst_of=50)
    again = [each for each in found.simulation.steps if each.kind is StepKind.CREATED and each.cause]
    assert [(each.at, each.owner) for each in again] in ([], [(10, "Job sums")])


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_a_deleted_workload_takes_its_pods_with_it(kind: str) -> None:
    objects = running(workload(kind, "old"), ["n1"])
    if kind == "Job":
        objects[-1]["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    found = checked([*nodes(1), *objects], [], deleted=[f"{kind}/old"])
    assert [(step.kind, step.at) for step in found.simulation.steps] == [
        (StepKind.TERMINATING, 0),
        (StepKind.TERMINATED, 30),
    ]
    assert end_of(found, f"{kind} shop/old").is_done


def test_a_recreated_pod_gets_the_current_priority_so_that_one_surge_empties_a_service() -> None:
    """The outage of 2019: the pods of a service are older than the default class that new ones get."""
    old = workload("Deployment", "api", replicas=1, **HIGH_POD, **SURGE)
    new = workload("Deployment", "api", replicas=1, image="two", **HIGH_POD, **SURGE)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "ingest", "namespace": "shop"},
        "spec": {"selector": {"app": "ingest"}},
    }
    cluster = [
        *nodes(4, "1"),
        HIGH,
        priority_class("medium", 500, globalDefault=True),
        *running(old, ["n1"], priority=1000),
        *running(workload("Deployment", "ingest", replicas=3), ["n2", "n3", "n4"]),
        service,
    ]
    found = checked(cluster, [new])
    assert not found.passed
    (cascade,) = (each for each in found.findings if each.rule is RuleId.MAX_CASCADE_DEPTH)
    assert (cascade.amount, cascade.change, len(cascade.chain)) == (3, "Deployment shop/api", 4)
    assert end_of(found, "Deployment shop/ingest").ready_min == 0
    assert [(each.kind, each.subject) for each in found.simulation.broken_dependencies] == [
        (BrokenDependencyKind.SERVICE, "shop/ingest")
    ]


def test_a_rollout_without_room_for_its_surge_is_stuck_and_fails() -> None:
    old = workload("Deployment", "api", replicas=1, **SURGE)
    new = workload("Deployment", "api", replicas=1, image="two", **SURGE)
    found = checked([*nodes(1, "1"), *running(old, ["n1"])], [new])
    (finding,) = found.findings
    assert (finding.rule, finding.subject) == (RuleId.REQUIRE_SCHEDULABLE, "Deployment shop/api")
    assert "Insufficient cpu" in finding.detail
    assert (found.simulation.end, end_of(found, "Deployment shop/api").is_done) == (SimulationEnd.SETTLED, False)


def test_an_unchanged_workload_does_nothing() -> None:
    old = workload("Deployment", "api", replicas=1)
    found = checked([*nodes(1), *running(old, ["n1"])], [old])
    assert (found.simulation.steps, found.passed, [each.kind for each in found.changes]) == ([], True, ["Unchanged"])


def test_going_back_to_an_old_template_takes_its_replica_set_again() -> None:
    old = workload("Deployment", "api", replicas=1, **SURGE)
    objects = running(old, ["n1"])
    earlier = workload("Deployment", "api", replicas=0, image="zero", **SURGE)
    (replica_set,) = (each for each in running(earlier, []) if each["kind"] == "ReplicaSet")
    replica_set["metadata"] |= {"name": "api-earlier", "uid": "earlier"}
    found = checked(
        [*nodes(2), *objects, replica_set], [workload("Deployment", "api", replicas=1, image="zero", **SURGE)]
    )
    assert tale(found)[0] == "0 Scaled api-earlier 1"


def test_a_replica_set_of_the_past_may_name_a_priority_class_that_is_gone() -> None:
    old = workload("Deployment", "api", replicas=1, **SURGE)
    gone = workload("Deployment", "api", replicas=0, image="zero", pod={"priorityClassName": "gone"})
    (past,) = (each for each in running(gone, []) if each["kind"] == "ReplicaSet")
    past["metadata"] |= {"name": "api-past", "uid": "past"}
    change = [workload("Deployment", "api", replicas=1, image="two", **SURGE)]
    found = checked([*nodes(2), HIGH, *running(old, ["n1"]), past], change)
    assert end_of(found, "Deployment shop/api").is_done


def test_pods_that_are_made_of_a_template_of_old_are_like_those_that_there_are() -> None:
    """As where a webhook has put a container into them, of which the template knows nothing."""
    old = workload("Deployment", "api", replicas=1, cpu="1")
    objects = running(old, ["n1"])
    sidecar = {"name": "proxy", "image": "proxy", "resources": {"requests": {"cpu": "3"}}}
    objects[-1]["spec"] = {**objects[-1]["spec"], "containers": [*objects[-1]["spec"]["containers"], sidecar]}
    scaled = checked([*nodes(2, "4"), *objects], [workload("Deployment", "api", replicas=2, cpu="1")])
    assert end_of(scaled, "Deployment shop/api").nodes_after == {"n1": 1, "n2": 1}
    rolled = checked([*nodes(1, "4"), *objects], [workload("Deployment", "api", replicas=2, cpu="1", image="two")])
    assert end_of(rolled, "Deployment shop/api").pending_after == 2
    assert [each.field for each in rolled.assumptions if each.field] == ["spec.template.spec.containers"]
    assert RuleId.UNMODELED_INPUT not in {each.rule for each in rolled.findings}


def test_every_choice_of_chance_is_simulated_and_the_worst_counts() -> None:
    web = workload("Deployment", "web", replicas=1, cpu="2")
    batch = workload("Deployment", "batch", replicas=1, cpu="2", pod={"nodeSelector": {"kubernetes.io/hostname": "n2"}})
    cluster = [*nodes(2), HIGH, *running(web, ["n1"]), *running(batch, ["n2"])]
    found = checked(cluster, [workload("Deployment", "api", cpu="2", **HIGH_POD)], worst_of=20)
    assert (found.runs > 1, found.explored_all) == (True, True)
    assert sum(each.count for each in found.outcomes) == found.runs


def test_a_terminating_pod_is_behind_equal_pods_and_no_other_is_evicted_instead() -> None:
    # The victims of the first pod are also victims of the second one, which has one more.
    pod = {"priorityClassName": "low", "terminationGracePeriodSeconds": 1}
    low = workload("Deployment", "filler", replicas=3, pod=pod)
    cluster = [*nodes(1, "3"), priority_class("low", 100), priority_class("high", 500), *running(low, ["n1"] * 3, 100)]
    change = [workload("Job", "report", parallelism=2, completions=2, pod={"priorityClassName": "high"})]
    found = checked(cluster, change, worst_of=50)
    assert (found.evictions.min, found.evictions.max) == (2, 2)


def race() -> tuple[list[Document], list[Document]]:
    """Of two workloads that are displaced the first that is tried again takes what the other needs.

    The bigger one displaces two pods, the smaller one displaces one; nothing but time says which of them is first.
    """
    small = workload("Deployment", "small", replicas=1, pod={"priorityClassName": "low"})
    big = workload("Deployment", "big", replicas=1, cpu="2", pod={"priorityClassName": "low"})
    batch = workload("Deployment", "batch", replicas=2)
    classes = [priority_class("low", 100), priority_class("high", 500)]
    cluster = [
        *nodes(3),
        *classes,
        *running(workload("Deployment", "beside", replicas=1, pod={"priorityClassName": "high"}), ["n1"], 500),
        *running(small, ["n1"], 100),
        *running(big, ["n2"], 100),
        *running(batch, ["n3", "n3"]),
    ]
    change = [
        workload("Job", name, cpu=cpu, parallelism=1, pod={"priorityClassName": "high", "nodeSelector": selector})
        for name, cpu, selector in (
            ("first", "1", {"kubernetes.io/hostname": "n1"}),
            ("second", "2", {"kubernetes.io/hostname": "n2"}),
        )
    ]
    return cluster, change


def test_where_nothing_but_time_decides_the_evictions_are_a_range() -> None:
    found = checked(*race(), runs=20)
    assert (found.evictions.min, found.evictions.max, found.explored_all) == (3, 4, False)
    assert {each.seed for each in found.outcomes} >= {0}


def test_a_gate_is_not_content_with_one_play_where_time_decides() -> None:
    found = checked(*race())
    assert (found.runs, found.explored_all) == (20, False)
    assert found.evictions.max > found.evictions.min


def test_an_outcome_can_be_had_again_by_its_seed() -> None:
    of_all = checked(*race(), runs=20)
    for each in of_all.outcomes:
        again = checked(*race(), runs=1, seed=each.seed)
        assert sum(each.victims.values()) == again.evictions.min == again.evictions.max


def test_several_runs_say_how_often_each_outcome_comes_up() -> None:
    web = workload("Deployment", "web", replicas=1, cpu="2")
    other = workload("Deployment", "other", replicas=1, cpu="2")
    cluster = [*nodes(2), HIGH, *running(web, ["n1"]), *running(other, ["n2"])]
    change = [workload("Deployment", "api", cpu="2", **HIGH_POD)]
    found = checked(cluster, change, runs=20)
    assert {tuple(each.victims) for each in found.outcomes} == {("Deployment shop/other",), ("Deployment shop/web",)}
    assert sum(each.count for each in found.outcomes) == 20
    assert checked(cluster, change, runs=20) == found


@pytest.mark.parametrize("algorithm", ["kube-1.8", "kube-1.13", "kube-1.18"])
def test_older_schedulers_play_rollouts_too(algorithm: str) -> None:
    old = workload("Deployment", "api", replicas=2, **SURGE)
    new = workload("Deployment", "api", replicas=2, image="two", **SURGE)
    found = checked([*nodes(3, "1"), *running(old, ["n1", "n2"])], [new], algorithm=algorithm)
    assert end_of(found, "Deployment shop/api").is_done
    assert found.algorithm == algorithm


def test_a_pod_that_is_made_takes_no_name_that_another_has() -> None:
    twin = workload("StatefulSet", "api-new", replicas=2, serviceName="x")
    found = checked([*nodes(1, "8"), *running(twin, ["n1", "n1"])], [workload("Deployment", "api", replicas=2)])
    assert [step.pod for step in found.simulation.steps if step.kind is StepKind.BOUND] == [
        "shop/api-new-1-2",
        "shop/api-new-2",
    ]
    assert end_of(found, "Deployment shop/api").ready_after == 2


def test_a_job_with_another_template_is_another_job_whose_pods_wait_for_nothing() -> None:
    """A hook is deleted first, so that its template can change."""
    old, new = (workload("Job", "sums", image=image) for image in ("one", "two"))
    for each in (old, new):
        each["metadata"]["annotations"] = {"helm.sh/hook": "pre-upgrade"}
    objects = running(old, ["n1"])
    objects[-1]["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    found = checked([*nodes(1, "8"), *objects], [new], applied_by=Applier.HELM)
    assert tale(found)[:4] == ["0 Terminating sums-a", "0 Created sums-1", "0 Bound sums-1 n1", "30 Terminated sums-a"]
    assert end_of(found, "Job shop/sums").is_done


def test_another_template_of_a_job_is_rejected_and_its_pods_go_on() -> None:
    there = [*nodes(1, "8"), *running(workload("Job", "sums", image="one"), ["n1"])]
    found = checked(there, [workload("Job", "sums", image="two")])
    assert (found.passed, found.simulation.steps) == (False, [])
    assert [(each.rule, each.subject, each.line) for each in found.findings] == [
        (RuleId.APPLY_REJECTED, "Job shop/sums", 1)
    ]
    assert found.findings[0].detail.startswith("spec.template: Invalid value: ")


def test_a_pod_that_has_waited_all_along_is_no_news_until_it_lands() -> None:
    old = {**workload("Job", "old"), "metadata": {"name": "old", "namespace": "shop", "uid": "uid-old"}}
    waiting = running(old, [""])
    (pod,) = (each for each in waiting if each["kind"] == "Pod")
    pod["spec"].pop("nodeName")
    pod["status"] = {"phase": "Pending"}
    found = checked([*nodes(1, "1"), *waiting], [workload("Deployment", "api", replicas=1, **HIGH_POD), HIGH])
    assert [each.pod for each in found.simulation.pending] == ["shop/old-a"]
    assert tale(found) == ["0 Scaled api-new 1", "0 Created api-new-1", "0 Bound api-new-1 n1"]
    assert found.simulation.seconds == 0
    freed = checked(
        [*nodes(1, "1"), *waiting, *running(workload("Deployment", "web"), ["n1"])], [], deleted=["Deployment/web"]
    )
    assert tale(freed)[-1] == "30 Bound old-a n1"


def test_what_the_run_of_a_cron_job_displaces_leads_back_to_the_cron_job() -> None:
    job = workload("Job", "sums", cpu="2", **HIGH_POD)
    nightly = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job["spec"]}},
    }
    cluster = [*nodes(1), HIGH, *running(workload("Deployment", "web", replicas=1, cpu="2"), ["n1"])]
    found = checked(cluster, [nightly])
    assert {(each.rule, each.change) for each in found.findings} == {(RuleId.MAX_PENDING, "CronJob shop/nightly")}


@pytest.mark.parametrize(
    ("algorithm", "reported"),
    [
        pytest.param("kube-1.29", ["backoffLimitPerIndex"], id="fields that are dropped are none"),
        pytest.param("kube-1.31", ["successPolicy", "backoffLimitPerIndex"], id="since 1.31"),
        pytest.param("kube-1.32", ["managedBy", "successPolicy", "backoffLimitPerIndex"], id="since 1.32"),
    ],
)
def test_what_of_a_job_is_not_modeled_is_reported_where_the_version_has_it(algorithm: str, reported: list[str]) -> None:
    job = workload("Job", "sums", parallelism=2, completions=2, completionMode="Indexed")
    policy = {"rules": [{"succeededIndexes": "0"}]}
    job["spec"] |= {"managedBy": "example.com/jobs", "successPolicy": policy, "backoffLimitPerIndex": 1}
    found = checked(nodes(2), [job], algorithm=algorithm)
    not_modelled = [each.field for each in found.assumptions if each.kind is AssumptionKind.UNMODELED]
    assert not_modelled == [f"spec.{f}" for f in reported]
    own = workload("Job", "sums")
    own["spec"] |= {"managedBy": "kubernetes.io/job-controller"}
    kinds = {each.kind for each in checked(nodes(2), [own], algorithm=algorithm).assumptions}
    assert kinds == {AssumptionKind.INFORMATIONAL}


@pytest.mark.parametrize("classes", [[priority_class("high", 1000)], []], ids=["there are others", "there is none"])
def test_a_priority_class_that_is_nowhere_is_a_finding_of_each_workload(classes: list[Any]) -> None:
    change = [workload("Deployment", name, replicas=2, pod={"priorityClassName": "nope"}) for name in ("a", "b")]
    found = checked([*nodes(4), *classes], change)
    assert [(each.rule, each.subject) for each in found.findings] == [
        (RuleId.APPLY_REJECTED, f"Deployment shop/{name}") for name in ("a", "b")
    ]
    assert not found.passed
    assert {each.detail for each in found.findings} == {
        "its pods are rejected: no PriorityClass with name nope was found"
    }


def test_a_priority_class_of_the_change_is_no_finding() -> None:
    change = [workload("Deployment", "a", pod={"priorityClassName": "mine"}), priority_class("mine", 5)]
    assert checked(nodes(2), change).passed


LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "small", "namespace": "shop"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}]},
}


def test_pods_that_a_limit_range_refuses_are_a_finding_with_its_words() -> None:
    found = checked([*nodes(1), LIMITS], [workload("Deployment", "api", replicas=1)])
    assert [(each.rule, each.subject) for each in found.findings] == [(RuleId.APPLY_REJECTED, "Deployment shop/api")]
    assert found.findings[0].detail == (
        'its pods are rejected: spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal '
        "to cpu limit of 500m"
    )


def test_a_limit_range_of_the_change_gives_its_pods_what_they_request() -> None:
    api = workload("Deployment", "api", replicas=1)
    del api["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert checked(nodes(1, "100m"), [LIMITS, api]).passed
    assert not checked(nodes(1, "50m"), [LIMITS, api]).passed


@pytest.mark.parametrize(
    ("spec", "pod", "rules"),
    [
        pytest.param({"paused": True}, {}, [RuleId.ROLLOUT_STUCK], id="a pause"),
        pytest.param({}, {"hostPort": 80}, [RuleId.ROLLOUT_STUCK], id="a port that the old pod has"),
        pytest.param({"paused": True}, {"hostPort": 80}, [RuleId.ROLLOUT_STUCK], id="both"),
    ],
)
def test_a_rollout_that_does_not_complete_is_reported_once(
    spec: dict[str, Any], pod: dict[str, Any], rules: list[RuleId]
) -> None:
    def api(image: str) -> Document:
        document = workload("Deployment", "api", replicas=1, image=image, **SURGE, **spec)
        if pod:
            ports = [{"containerPort": 80, **pod, "protocol": "TCP"}]
            document["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
        return document

    found = checked([*nodes(1), *running(api("one"), ["n1"])], [api("two")])
    assert [each.rule for each in found.findings] == rules
    assert found.passed is bool(spec)


def test_pods_that_a_quota_refuses_are_reported_once_with_the_numbers() -> None:
    hard, used = {"requests.cpu": "2"}, {"requests.cpu": "1500m"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }
    (finding,) = checked([*nodes(2), quota], [workload("Deployment", "api", replicas=1)]).findings
    assert (finding.rule, finding.subject) == (RuleId.QUOTA_REJECTIONS, "Deployment shop/api")
    assert finding.detail == (
        "exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=1500m, limited: requests.cpu=2"
    )
