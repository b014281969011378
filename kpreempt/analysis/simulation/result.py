"""What there is to tell of a simulation that has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kpreempt.analysis.simulation.chain import Chain
from kpreempt.analysis.simulation.client import Controller
from kpreempt.analysis.simulation.cluster import SimulatedCluster
from kpreempt.analysis.simulation.stranded import stranded
from kpreempt.analysis.simulation.workloads import Workloads
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.verdict.simulation import SimulatedWorkload, Simulation, SimulationEnd, SimulationStep, StepKind, Waiting


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: the pods that came first, when they were bound, and what the scheduler last said of others.

    ``refused`` are pods that a quota does not let be made, each with the one whose place it would take, and why.
    ``held_by`` are the out-of-tree plugins that keep pods out of the queue, by the pod's name. ``done`` says of the
    workloads of the change whether all has come about, ``held`` for whom those wait that have not begun.
    """

    end: SimulationEnd
    first: Sequence[str]
    starts_at: Mapping[str, float]
    messages: Mapping[str, str]
    uncertain: frozenset[str]
    waited_before: frozenset[str]
    held_by: Mapping[str, str]
    draws: int
    done: Mapping[str, bool]
    held: Mapping[str, str] = {}
    refused: Sequence[tuple[Pod, str, str]] = ()


def result_of(
    cluster: SimulatedCluster,
    chain: Chain,
    steps: list[SimulationStep],
    controllers: Sequence[Controller],
    ended: Ended,
) -> Simulation:
    """The whole simulation."""
    workloads = Workloads(cluster.snapshot)
    displaced = [
        msgspec.structs.replace(each, workload=workloads.of(chain.pod(each.pod))) for each in chain.displaced()
    ]
    waiting = [*_waiting(cluster, chain, workloads, ended), *_refused(workloads, ended)]
    simulated = _workloads(cluster, workloads, controllers, Counter(each.workload for each in displaced), ended)
    return Simulation(
        end=ended.end,
        seconds=max((step.at for step in steps), default=0.0),
        depth=max((each.depth for each in displaced), default=0),
        starts_at={key: ended.starts_at[key] for key in ended.first if key in ended.starts_at},
        displaced=displaced,
        waiting=waiting,
        budgets=cluster.budgets.lows(),
        workloads=simulated,
        refused=cluster.quotas.told(_left(simulated, waiting)),
        stranded=stranded(cluster, waiting, {each.pod for each in displaced}),
        loop=_loop(steps, displaced_pods={each.pod for each in displaced}, workloads=workloads, chain=chain)
        if ended.end is SimulationEnd.LOOP
        else [],
        draws=ended.draws,
        steps=steps,
    )


def _waiting(cluster: SimulatedCluster, chain: Chain, workloads: Workloads, ended: Ended) -> list[Waiting]:
    """The pods that were tried, or came, and have no node."""
    came = {*ended.first, *ended.messages}
    found = []
    for key, pod in cluster.pods.items():
        is_told = key in came or chain.is_replacement(key)
        if pod.spec.node_name or pod.is_terminal or not is_told:
            continue
        found.append(
            Waiting(
                pod=key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                workload=workloads.of(pod),
                waited_before=key in ended.waited_before,
                message=_why_waiting(pod, ended),
                was_running=chain.is_replacement(key),
                uncertain=key in ended.uncertain,
            )
        )
    return found


def _refused(workloads: Workloads, ended: Ended) -> list[Waiting]:
    """The pods that a quota does not let be created, for as long as they are not."""
    return [
        Waiting(
            pod=pod.key,
            priority=pod.priority,
            owner=controller_name(pod.metadata),
            workload=workloads.of(pod),
            message=message,
            was_running=bool(cause),
        )
        for pod, cause, message in ended.refused
    ]


def _left(simulated: Sequence[SimulatedWorkload], waiting: Sequence[Waiting]) -> dict[str, int]:
    """How many pods each workload lacks in the end, as far as is known; one at least where it is not done."""
    left = Counter(each.workload for each in waiting)
    for each in simulated:
        if each.is_changed and not each.is_done:
            left[each.workload] = max((each.wanted_after or 0) - each.ready_after, 1)
    return dict(left)


def _why_waiting(pod: Pod, ended: Ended) -> str:
    if held_by := ended.held_by.get(pod.key):
        return f"held back by plugin {held_by}"
    return ended.messages.get(pod.key) or _why_untried(pod)


def _why_untried(pod: Pod) -> str:
    gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    return f"scheduling gates: {gates}" if gates else ""


def _workloads(
    cluster: SimulatedCluster,
    workloads: Workloads,
    controllers: Sequence[Controller],
    victims: Counter[str],
    ended: Ended,
) -> list[SimulatedWorkload]:
    changed = {controller.workload: controller for controller in controllers}
    told = dict.fromkeys([*changed, *victims])
    before: dict[str, list[Pod]] = {name: [] for name in told}
    after: dict[str, list[Pod]] = {name: [] for name in told}
    for pods, there in ((cluster.at_start, before), (cluster.pods.values(), after)):
        for pod in pods:
            name = workloads.of(pod)
            if name in told and not pod.is_terminal and pod.metadata.deletion_timestamp is None:
                there[name].append(pod)
    ready = {name: sum(pod.key in cluster.ready_at_start for pod in before[name]) for name in told}
    count, least = dict(ready), {name: (number, 0.0) for name, number in ready.items()}
    moments: dict[str, float] = {}
    for at, pod, by in cluster.readiness:
        name = workloads.of(pod)
        if name not in told:
            continue
        count[name] += by
        moments[name] = at
        if count[name] < least[name][0]:
            least[name] = (count[name], at)
    return [
        SimulatedWorkload(
            workload=name,
            is_changed=name in changed,
            is_done=ended.done.get(name, not any(not pod.spec.node_name for pod in after[name])),
            wanted_before=workloads.size_of(name),
            wanted_after=changed[name].wanted if name in changed else workloads.size_of(name),
            ready_before=ready[name],
            ready_least=least[name][0],
            least_at=least[name][1],
            ready_after=count[name],
            pending_after=sum(not pod.spec.node_name for pod in after[name]),
            victims=victims[name],
            held_by=ended.held.get(name, ""),
            nodes_before=_by_node(before[name]),
            nodes_after=_by_node(after[name]),
        )
        for name in told
    ]


def _by_node(pods: Iterable[Pod]) -> dict[str, int]:
    counts = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    return {name: counts[name] for name in sorted(counts)}


def _loop(steps: Sequence[SimulationStep], displaced_pods: set[str], workloads: Workloads, chain: Chain) -> list[str]:
    """The workloads of which pods had to go the second time or later."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for step in steps:
        if step.kind is not StepKind.LEAVES or not step.cause or step.pod not in displaced_pods:
            continue
        name = workloads.of(chain.pod(step.pod))
        if name in seen:
            found[name] = None
        seen.add(name)
    return list(found)
