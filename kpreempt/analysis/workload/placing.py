"""Puts the pods of a workload to the scheduler, one after the other.

Each is decided on in the cluster with those before it on their nodes and the victims of these gone: what the
controllers and the scheduler come to where nothing else happens. Other pending pods are not tried, nothing comes in a
victim's place, and budgets lose what evictions take from them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.pending.verdicts import likeness_to
from kpreempt.analysis.simulation.budgets import Budgets, Quotas
from kpreempt.analysis.simulation.chance import FINDS_A_NODE, Branch, Choose, branches_of, first_branch
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.controllers.resource_claims import allocated, released
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import ResourceClaim
from kpreempt.model.pod import Pod
from kpreempt.verdict import Verdict


class Placed(NamedTuple):
    """A pod with the verdict on it, and how it came out: the node, who had to leave, and what that violated.

    It ``is_open`` where it could have come out otherwise by chance, or by an order that is not known; ``ties`` are the
    nodes that it could have ended on then. ``refused`` is a quota's message, for a pod that is not made; it has no
    verdict.
    """

    pod: Pod
    verdict: Verdict | None
    branch: Branch | None = None
    victims: Sequence[str] = ()
    violating: Sequence[str] = ()
    ties: Sequence[str] = ()
    is_open: bool = False
    refused: str = ""


class Placing:
    """The cluster as it changes from one pod to the next. ``prepared`` is as the scheduler has it before the first."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        scheduler: Scheduler,
        prepared: Any,
        now: datetime,
        choose: Choose = first_branch,
        *,
        remembers: bool = True,
    ) -> None:
        """Without ``remembers`` each cluster is prepared as if it were the first, which gives the same and is slow."""
        self._cluster = cluster
        self._scheduler = scheduler
        self._prepared = prepared
        self._is_stale = False
        self._now = now
        self._choose = choose
        self._remembers = remembers
        self._pods = {pod.key: pod for pod in cluster.pods}
        self._ready = {pod.key for pod in cluster.pods if is_serving(pod)}
        self._budgets = Budgets(cluster, self._ready, workloads_change=False)
        self._quotas = Quotas(cluster)
        # What came of pods that found no node since the cluster changed, by what the scheduler sees of them.
        self._failed: dict[bytes, Verdict] = {}
        # How often each budget was violated.
        self.violations: dict[str, int] = {}

    def place(
        self, pods: Sequence[Pod], *, first: Verdict | None = None, stops_at_pending: bool = False
    ) -> Iterator[Placed]:
        """What comes of each; pods that are in the cluster, pending, are put as they are.

        ``first`` is the verdict on the first pod where it is known. Where it ``stops_at_pending``, those after the
        first that finds no node are not looked at.
        """
        for number, pod in enumerate(pods):
            placed = self._place(pod, first if number == 0 else None)
            yield placed
            if stops_at_pending and placed.branch is None:
                return

    @property
    def cluster(self) -> ClusterSnapshot:
        """The cluster as it is now."""
        return msgspec.structs.replace(
            self._cluster, pods=list(self._pods.values()), pod_disruption_budgets=self._budgets.now
        )

    def _place(self, pod: Pod, verdict: Verdict | None = None) -> Placed:
        is_new = pod.key not in self._pods
        if is_new:
            _, message = self._quotas.ask(pod)
            if message:
                return Placed(pod, None, refused=message)
            self._quotas.count(pod, 1)
        if verdict is None:
            verdict = self._decide(pod)
        if verdict.outcome not in FINDS_A_NODE:
            return Placed(pod, verdict)
        branches = branches_of(verdict, self._kind_of)
        branch = branches[0] if len(branches) == 1 else self._choose(branches)
        is_open = len(branches) > 1 or branch.has_others or verdict.volume_choices is not None
        victims, violating = self._evict(branch, verdict)
        self._bind(pod, branch.node, verdict)
        ties = list(dict.fromkeys(each.node for each in branches)) if is_open else []
        return Placed(pod, verdict, branch, victims, violating, ties, is_open)

    def _decide(self, pod: Pod) -> Verdict:
        key = likeness_to(self._scheduler, pod) if self._failed else b""
        if key in self._failed:
            return self._failed[key]
        if self._is_stale:
            before = self._prepared if self._remembers else None
            self._prepared = self._scheduler.prepare(self.cluster, now=self._now, before=before)
            self._is_stale = False
        verdict = self._scheduler.decide(self._prepared, pod, records_steps=False)
        if verdict.outcome not in FINDS_A_NODE:
            self._failed[key or likeness_to(self._scheduler, pod)] = verdict
        return verdict

    def _evict(self, branch: Branch, verdict: Verdict) -> tuple[list[str], list[str]]:
        """The victims go; returns those that are evicted for it, and those of them whose going violates a budget."""
        # Those that are on their way out already only have to be waited for.
        waited_for = [each.pod for each in verdict.victims.get(branch.node, ()) if each.terminating]
        gone = [self._pods[key] for key in dict.fromkeys([*branch.leaving, *waited_for])]
        victims = [pod for pod in gone if pod.metadata.deletion_timestamp is None]
        violated = self._budgets.broken_by(victims) if branch.violated is None else branch.violated
        for pod in gone:
            if pod.key in self._ready:
                self._ready.discard(pod.key)
                self._budgets.change(pod, -1)
            del self._pods[pod.key]
            self._quotas.count(pod, -1)
        self._change_claims(released(self._cluster.resource_claims, gone))
        for pod in victims:
            for budget in violated.get(pod.key, ()):
                self.violations[budget] = self.violations.get(budget, 0) + 1
        return [pod.key for pod in victims], [pod.key for pod in victims if violated.get(pod.key)]

    def _bind(self, pod: Pod, node: str, verdict: Verdict) -> None:
        status = msgspec.structs.replace(
            pod.status, phase="Running", start_time=self._now, nominated_node_name="", conditions=[]
        )
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        # One that changes goes behind the others of its node, as in the scheduler's own order.
        self._pods.pop(pod.key, None)
        self._pods[pod.key] = msgspec.structs.replace(pod, spec=spec, status=status)
        if pod.spec.resource_claims or node in verdict.devices:
            cluster, devices = self._cluster, verdict.devices.get(node, [])
            self._change_claims(allocated(cluster.resource_claims, pod, devices, node, cluster.resource_slices))
        self._failed.clear()
        self._is_stale = True

    def _change_claims(self, claims: list[ResourceClaim]) -> None:
        """Claims for devices are others; what was prepared may be built upon where pods and budgets alone changed."""
        if claims is not self._cluster.resource_claims:
            self._cluster = msgspec.structs.replace(self._cluster, resource_claims=claims)

    def _kind_of(self, key: str) -> Hashable:
        """Of equal pods that go no two are the same to those that come after."""
        pod = self._pods.get(key)
        return None if pod is not None and pod.metadata.deletion_timestamp is not None else key


def last_branch(branches: Sequence[Branch]) -> Branch:
    """The last of the ways in which a decision may come out."""
    return branches[-1]


# Ways to choose between the branches of a decision, of which the first is told.
CHOICES: Sequence[Callable[[Sequence[Branch]], Branch]] = (first_branch, last_branch)
