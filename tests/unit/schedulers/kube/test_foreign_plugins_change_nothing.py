"""Out-of-tree plugins that change what they are given: nodes, pods, states and answers of others stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.plugins import (
    SUCCESS,
    Code,
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    Status,
    unschedulable,
)
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from tests.factories import make_node, make_pod
from tests.unit.schedulers.kube.hostile_plugins import (
    RAISING,
    assert_an_error,
    decide,
    empty_cluster,
    filtering,
    full_cluster,
    important,
    scheduler_with,
    without_default_preemption,
)


def _on_node(change: Callable[[Any], Any]) -> type[Plugin]:
    return filtering(lambda self, state, pod, node_info: (change(node_info), SUCCESS)[1])


def _on_pod(change: Callable[[Any], Any]) -> type[Plugin]:
    return filtering(lambda self, state, pod, node_info: (change(pod), SUCCESS)[1])


def _on_snapshot(change: Callable[[Any], Any]) -> type[Plugin]:
    return filtering(lambda self, state, pod, node_info: (change(self.handle.snapshot), SUCCESS)[1])


def _on_state(change: Callable[[Any], Any]) -> type[Plugin]:
    return filtering(lambda self, state, pod, node_info: (change(state), SUCCESS)[1])


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(_on_node(lambda node: setattr(node, "pods", [])), id="sets the pods of a node"),
        pytest.param(_on_node(lambda node: delattr(node, "pods")), id="deletes the pods of a node"),
        pytest.param(_on_node(lambda node: node.pods.append(None)), id="adds to the pods of a node"),
        pytest.param(_on_node(lambda node: node.add_pod(node.pods[0])), id="puts a pod on a node"),
        pytest.param(_on_node(lambda node: node.remove_pod(node.pods[0])), id="takes a pod off a node"),
        pytest.param(_on_node(lambda node: node.node.labels.update(rack="r")), id="labels a node"),
        pytest.param(_on_node(lambda node: node.node.metadata.annotations.clear()), id="clears what is empty"),
        pytest.param(_on_node(lambda node: node.node.spec.taints.append(1)), id="taints a node"),
        pytest.param(_on_node(lambda node: setattr(node.pods[0], "priority", 9)), id="sets a pod's priority"),
        pytest.param(
            _on_node(lambda node: node.pods[0].pod.metadata.labels.update(a="b")), id="labels a pod on a node"
        ),
        pytest.param(_on_node(lambda node: node.pods[0].pod.spec.containers.clear()), id="empties a pod"),
        pytest.param(
            _on_node(lambda node: node.snapshot().pods[0].pod.spec.containers.clear()), id="empties a pod of a copy"
        ),
        pytest.param(_on_pod(lambda pod: pod.metadata.labels.update(a="b")), id="labels the pod in question"),
        pytest.param(_on_pod(lambda pod: pod.spec.containers.pop()), id="empties the pod in question"),
        pytest.param(_on_pod(lambda pod: pod.spec.tolerations.append(1)), id="adds to an empty list"),
        pytest.param(_on_snapshot(lambda seen: seen.objects.pods.clear()), id="clears the cluster"),
        pytest.param(_on_snapshot(lambda seen: seen.objects.nodes[0].labels.update(a="b")), id="labels a record"),
        pytest.param(_on_snapshot(lambda seen: seen.nodes.append(1)), id="adds to the nodes"),
        pytest.param(_on_state(lambda state: setattr(state, "skip_filter_plugins", None)), id="skips filters"),
        pytest.param(_on_state(lambda state: setattr(state, "skip_score_plugins", None)), id="skips scores"),
    ],
)
def test_what_is_shared_cannot_be_changed(plugin: type[Plugin]) -> None:
    pods = [make_pod("one", node="a", cpu="1"), make_pod("two", node="b", cpu="1")]
    cluster = ClusterSnapshot(nodes=[make_node("a"), make_node("b")], pods=pods)
    pod = important(labels={"app": "web"})
    before = decide(KubeScheduler(), cluster, pod)
    assert_an_error(decide(scheduler_with(plugin), cluster, pod))
    assert decide(KubeScheduler(), cluster, pod) == before


def test_what_a_plugin_is_given_to_change_is_its_own() -> None:
    class Greedy(FilterPlugin):
        def filter(self, state: Any, pod: Any, node_info: Any) -> Status:
            copy = node_info.snapshot()
            for pod_info in list(node_info.pods):
                copy.remove_pod(pod_info)
            copy.node.metadata.labels.copy().clear()
            node_info.requested.milli_cpu = 0
            node_info.allocatable.milli_cpu = 0
            node_info.used_ports.add("", "TCP", 80)
            return SUCCESS if not copy.pods and copy.requested.milli_cpu == 0 else unschedulable("pods are left")

    cluster = full_cluster()
    small = make_pod("small", priority=-1)
    assert (
        decide(scheduler_with(Greedy), cluster, small).chosen_nodes
        == decide(KubeScheduler(), cluster, small).chosen_nodes
    )


def test_a_plugin_that_preempts_gets_a_copy_of_what_the_filters_said() -> None:
    class Clearing(PostFilterPlugin):
        def post_filter(self, state: Any, pod: Any, filtered: Any) -> tuple[PostFilterResult | None, Status]:
            filtered.statuses.clear()
            filtered.absent = None
            return None, Status(Code.UNSCHEDULABLE, ["it may not"])

    scheduler = scheduler_with(Clearing, configuration=without_default_preemption("Clearing"))
    verdict = decide(scheduler, full_cluster())
    assert verdict.message == "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, it may not"


def test_what_plugins_in_the_tree_keep_is_out_of_reach() -> None:
    names = ["NodeResourcesFit", "NodePorts", "PreFilterPodTopologySpread", "DynamicResources", "TaintToleration"]

    class Writing(PreFilterPlugin, FilterPlugin):
        def pre_filter(self, state: Any, pod: Any, nodes: Any) -> tuple[PreFilterResult | None, Status]:
            for name in names:
                state.write(name, "junk")
            return None, SUCCESS

        def filter(self, state: Any, pod: Any, node_info: Any) -> Status:
            return SUCCESS if all(state.read(name) == "junk" for name in names) else unschedulable("gone")

    cluster = empty_cluster()
    found, plain = decide(scheduler_with(Writing), cluster), decide(KubeScheduler(), cluster)
    assert (found.scores, found.chosen_nodes) == (plain.scores, plain.chosen_nodes)


@pytest.mark.parametrize("raising", RAISING)
def test_a_state_that_cannot_be_cloned_is_an_error(raising: str) -> None:
    state_type = type("Own", (), {"clone": RAISING[raising]})

    class Keeping(PreFilterPlugin):
        def pre_filter(self, state: Any, pod: Any, nodes: Any) -> tuple[PreFilterResult | None, Status]:
            state.write("Keeping", state_type())
            return None, SUCCESS

    assert_an_error(decide(scheduler_with(Keeping), full_cluster()), names="Keeping")


def test_a_state_that_another_plugin_has_spoilt_is_the_error_of_who_reads_it() -> None:
    class Keeping(PreFilterPlugin, FilterPlugin):
        def pre_filter(self, state: Any, pod: Any, nodes: Any) -> tuple[PreFilterResult | None, Status]:
            state.write("Keeping", {"a": 1})
            return None, SUCCESS

        def filter(self, state: Any, pod: Any, node_info: Any) -> Status:
            return SUCCESS if state.read("Keeping")["a"] == 1 else unschedulable("not one")

    class Spoiling(PreFilterPlugin):
        def pre_filter(self, state: Any, pod: Any, nodes: Any) -> tuple[PreFilterResult | None, Status]:
            state.read("Keeping").clear()
            return None, SUCCESS

    assert_an_error(decide(scheduler_with(Keeping, Spoiling), empty_cluster()), names="Keeping raised KeyError")
