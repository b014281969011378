"""How much a pod asks for, in exact amounts (``PodRequests`` of ``k8s.io/component-helpers`` v0.36.3)."""

from __future__ import annotations

from collections import Counter

from kpreempt.model.pod import Container, Pod

# Exact amounts in 1e-9 units, by resource.
Requests = dict[str, int]

_OF_THE_WHOLE_POD = ("cpu", "memory")


def requests_of(pod: Pod) -> Requests:
    """What the pod asks for, by its spec: containers, sidecars, init containers while they run, and overhead."""
    running: Counter[str] = Counter()
    for container in pod.spec.containers:
        running.update(_of(container))
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            running.update(_of(container))
            sidecars.update(_of(container))
            peak |= sidecars
        else:
            peak |= sidecars + Counter(_of(container))
    total = Counter(running)
    for name, amount in peak.items():
        total[name] = max(total[name], amount)
    for name, whole in (pod.spec.resources.requests if pod.spec.resources else {}).items():
        if name in _OF_THE_WHOLE_POD or name.startswith("hugepages-"):
            total[name] = whole.nano
    total.update({name: amount.nano for name, amount in pod.spec.overhead.items()})
    return dict(total)


def _of(container: Container) -> Requests:
    return {name: amount.nano for name, amount in container.resources.requests.items()}
