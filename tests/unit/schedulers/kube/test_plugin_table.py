"""What the plugins in the tree state of themselves, and that whoever needs to know of a plugin finds it there."""

from __future__ import annotations

import pytest

from kpreempt.model.pod import Container, ContainerPort, Pod
from kpreempt.report.evidence import rejection_of
from kpreempt.schedulers.kube.framework.interface import FilterPlugin
from kpreempt.schedulers.kube.plugin_table import REGISTRY, WITHOUT_CLASS, plugins_in_tree
from kpreempt.schedulers.kube.plugins.node_ports import frees_a_port
from kpreempt.schedulers.kube.queue.queue import awaited_by
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Code, Status
from tests.factories import make_pod

# Those of kube-scheduler 1.36, from the interfaces that each plugin is asserted to implement there.
POINTS = {
    "SchedulingGates": "preEnqueue",
    "PrioritySort": "queueSort",
    "NodeUnschedulable": "filter",
    "NodeName": "filter",
    "TaintToleration": "filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodePorts": "preFilter filter",
    "NodeResourcesFit": "preFilter filter preScore score placementScore",
    "VolumeRestrictions": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "VolumeBinding": "preFilter filter reserve preBind preScore score",
    "VolumeZone": "preFilter filter",
    "PodTopologySpread": "preFilter filter preScore score",
    "InterPodAffinity": "preFilter filter preScore score",
    "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
    "DefaultPreemption": "preEnqueue postFilter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": "preFilter filter",
    "GangScheduling": "preEnqueue permit",
    "TopologyPlacementGenerator": "placementGenerate",
    "PodGroupPodsCount": "placementScore",
}
FILTERS = [
    name for name, each in REGISTRY.items() if isinstance(each.factory, type) and issubclass(each.factory, FilterPlugin)
]


def test_the_plugins_implement_the_extension_points_of_the_real_ones() -> None:
    assert plugins_in_tree() == {name: frozenset(points.split()) for name, points in POINTS.items()}


def test_each_row_has_the_name_by_which_its_plugin_goes() -> None:
    assert {name: getattr(each.factory, "name", "") for name, each in REGISTRY.items()} == {
        name: name for name in REGISTRY
    }
    assert not WITHOUT_CLASS & REGISTRY.keys()


@pytest.mark.parametrize("name", REGISTRY)
def test_no_plugin_finds_fault_with_its_own_defaults(name: str) -> None:
    stated, facts = REGISTRY[name], behavior()
    args = stated.default_args({}, facts)
    assert args.keys() <= stated.args.keys()
    assert [*stated.arg_problems("", args, facts), *stated.making_problems("", args, facts)] == []


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_states_what_a_pod_that_it_refused_waits_for(name: str) -> None:
    assert REGISTRY[name].awaits()
    assert awaited_by(name) != awaited_by("an out-of-tree plugin")


# Of DynamicResources there is no refusal.
@pytest.mark.parametrize("name", [name for name in FILTERS if name != "DynamicResources"])
def test_what_a_filter_refuses_is_described_in_words(name: str) -> None:
    assert not rejection_of(Status(Code.UNSCHEDULABLE, ["its reason"], plugin=name)).startswith("says")


def with_port(address: str = "", protocol: str = "TCP", port: int = 8080, node: str = "node-1") -> Pod:
    taken = ContainerPort(container_port=80, host_port=port, host_ip=address, protocol=protocol)
    return make_pod("web", node=node, containers=[Container(name="main", ports=[taken])])


@pytest.mark.parametrize(
    ("gone", "helps"),
    [
        pytest.param(with_port(), True, id="it held the port on all addresses"),
        pytest.param(with_port("10.0.0.1"), True, id="it held it on the address"),
        pytest.param(with_port("10.0.0.2"), False, id="it held it on another address"),
        pytest.param(with_port(protocol="UDP"), False, id="it held it for another protocol"),
        pytest.param(with_port(port=9090), False, id="it held another port"),
        pytest.param(with_port(node=""), False, id="it had no node"),
    ],
)
def test_a_pod_waits_for_the_host_port_that_it_wants(gone: Pod, helps: bool) -> None:
    assert frees_a_port(with_port("10.0.0.1", node=""), gone, None) is helps
