"""Host ports in use on a node (``k8s.io/kube-scheduler`` v0.36.3 ``framework/types.go``, ``HostPortInfo``).

As upstream, ports are a set and not a count: when one of two pods with the same port goes, the port counts as free.
"""

from __future__ import annotations

from collections.abc import Collection

from kpreempt.model.pod import ContainerPort, Pod

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (the address that pods ask for, not one to bind to)
DEFAULT_PROTOCOL = "TCP"


def host_ports_of(pod: Pod, *, counts_sidecars: bool = True) -> list[ContainerPort]:
    """The ports that the pod takes on its node: those of its containers and sidecars."""
    inits = pod.spec.init_containers if counts_sidecars else []
    sidecars = [container for container in inits if container.restart_policy == "Always"]
    return [port for container in (*sidecars, *pod.spec.containers) for port in container.ports if port.host_port > 0]


class HostPorts:
    """Ports in use, by address."""

    __slots__ = ("_ports",)

    def __init__(self) -> None:
        self._ports: dict[str, set[tuple[str, int]]] = {}

    def add(self, address: str, protocol: str, port: int) -> None:
        """Take a port; 0 and negative ones are ignored."""
        if port > 0:
            self._ports.setdefault(address or ANY_ADDRESS, set()).add((protocol or DEFAULT_PROTOCOL, port))

    def remove(self, address: str, protocol: str, port: int) -> None:
        used = self._ports.get(address or ANY_ADDRESS)
        if used is not None:
            used.discard((protocol or DEFAULT_PROTOCOL, port))
            if not used:
                del self._ports[address or ANY_ADDRESS]

    def conflicts(self, address: str, protocol: str, port: int) -> bool:
        """Whether the port is taken: on any address for 0.0.0.0, otherwise on that address and on 0.0.0.0."""
        if port <= 0:
            return False
        wanted = (protocol or DEFAULT_PROTOCOL, port)
        address = address or ANY_ADDRESS
        if address == ANY_ADDRESS:
            return any(wanted in used for used in self._ports.values())
        return any(wanted in self._ports.get(candidate, ()) for candidate in (ANY_ADDRESS, address))

    def clone(self) -> HostPorts:
        copy = HostPorts()
        copy._ports = {address: set(used) for address, used in self._ports.items()}
        return copy


def takes_port(held: Collection[ContainerPort], wanted: ContainerPort) -> bool:
    """Whether a port is taken where these are held."""
    if not held:
        return False
    ports = HostPorts()
    for port in held:
        ports.add(port.host_ip, port.protocol, port.host_port)
    return ports.conflicts(wanted.host_ip, wanted.protocol, wanted.host_port)
