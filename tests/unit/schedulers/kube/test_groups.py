"""Pods in groups of equals, each of which is looked at once."""

from __future__ import annotations

import msgspec
import pytest

from kpreempt.model.pod import Container, ContainerPort, Pod
from kpreempt.schedulers.kube.bulk import pod_table
from kpreempt.schedulers.kube.bulk.pod_table import NO_GROUP, PortGroups
from kpreempt.schedulers.kube.framework.node_info import host_ports_of
from kpreempt.schedulers.kube.versions import behavior
from tests.factories import make_pod

PORT = ContainerPort(container_port=80, host_port=8080)


def test_ports_are_read_once_of_pods_that_share_their_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(pod: Pod, *, counts_sidecars: bool) -> list[ContainerPort]:
        read.append(pod.metadata.name)
        return host_ports_of(pod, counts_sidecars=counts_sidecars)

    monkeypatch.setattr(pod_table, "host_ports_of", noted)
    first = make_pod("first", init_containers=[Container(name="mesh", restart_policy="Always", ports=[PORT])])
    replica = msgspec.structs.replace(first, metadata=make_pod("replica").metadata)
    without = make_pod("without", init_containers=[Container(name="init", ports=[PORT])])
    ports = PortGroups(behavior())
    numbers = [ports.number(pod) for pod in (first, replica, without)]
    assert (numbers, ports.values, read) == ([0, 0, NO_GROUP], [[PORT]], ["first", "without"])
