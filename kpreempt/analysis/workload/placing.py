"""Places pods one after another, each in a cluster with the previous pods on their nodes and without their victims."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import Scheduler, equivalence_key_for
from kpreempt.analysis.simulation.budgets import Budgets, Quotas
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.analysis.simulation.scheduling import Branch, Choose, branches_of, first_branch
from kpreempt.controllers.resource_claims import allocated, released
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import ResourceClaim
from kpreempt.model.pod import Pod
from kpreempt.verdict import Verdict


class Placed(NamedTuple):
    """A pod with its verdict and result: the node, the victims, and those that violated a budget.

    It ``is_open`` if chance or an unknown order could have led to another result; ``ties`` are the nodes possible then.
    ``rejected`` is the quota's message if the pod was rejected at creation; it has no verdict then. ``is_tried_again``:
    it found no node when it was first tried.
    """

    pod: Pod
    verdict: Verdict | None
    branch: Branch | None = None
    victims: Sequence[str] = ()
    violating: Sequence[str] = ()
    ties: Sequence[str] = ()
    is_open: bool = False
    rejected: str = ""
    is_tried_again: bool = False


class Placing:
    """Places pods one after another, and updates the cluster; ``prepared`` is the cluster before the first."""

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
        """Without ``remembers``, each cluster is prepared from scratch, which is slow and gives the same result."""
        self._cluster, self._scheduler, self._prepared = cluster, scheduler, prepared
        self._is_stale = False
        self._now, self._choose, self._remembers = now, choose, remembers
        self._pods = {pod.key: pod for pod in cluster.pods}
        self._ready = {pod.key for pod in cluster.pods if is_serving(pod)}
        self._budgets = Budgets(cluster, self._ready, workloads_change=False)
        self._quotas = Quotas(cluster)
        # The verdicts on pods that found no node since the cluster last changed, by scheduling key.
        self._failed_verdicts: dict[bytes, Verdict] = {}
        # The number of violations of each budget.
        self.violations: dict[str, int] = {}

    def place(
        self, pods: Sequence[Pod], *, first: Verdict | None = None, stops_at_pending: bool = False
    ) -> Iterator[Placed]:
        """The result for each pod; pending pods of the cluster are tried as they are.

        ``first`` is the verdict on the first pod, if known. With ``stops_at_pending``, placement ends at the first pod
        that finds no node.
        """
        for number, pod in enumerate(pods):
            placed = self._place(pod, first if number == 0 else None)
            yield placed
            if stops_at_pending and placed.branch is None:
                return

    @property
    def cluster(self) -> ClusterSnapshot:
        """The current cluster."""
        return msgspec.structs.replace(
            self._cluster, pods=list(self._pods.values()), pod_disruption_budgets=self._budgets.now
        )

    def _place(self, pod: Pod, verdict: Verdict | None = None) -> Placed:
        is_new = pod.key not in self._pods
        if is_new:
            _, message = self._quotas.admit(pod)
            if message:
                return Placed(pod, None, rejected=message)
            self._quotas.count(pod, 1)
        if verdict is None:
            verdict = self._decide(pod)
        if not verdict.outcome.finds_node:
            return Placed(pod, verdict)
        branches = branches_of(verdict, self._kind_of)
        branch = branches[0] if len(branches) == 1 else self._choose(branches)
        is_open = len(branches) > 1 or branch.is_truncated or verdict.volume_choices is not None
        victims, violating = self._evict(branch, verdict)
        self._bind(pod, branch.node, verdict)
        ties = list(dict.fromkeys(each.node for each in branches)) if is_open else []
        return Placed(pod, verdict, branch, victims, violating, ties, is_open)

    def _decide(self, pod: Pod) -> Verdict:
        key = equivalence_key_for(self._scheduler, pod) if self._failed_verdicts else b""
        if key in self._failed_verdicts:
            return self._failed_verdicts[key]
        if self._is_stale:
            before = self._prepared if self._remembers else None
            self._prepared = self._scheduler.prepare(self.cluster, now=self._now, before=before)
            self._is_stale = False
        verdict = self._scheduler.decide(self._prepared, pod, records_steps=False)
        if not verdict.outcome.finds_node:
            self._failed_verdicts[key or equivalence_key_for(self._scheduler, pod)] = verdict
        return verdict

    def _evict(self, branch: Branch, verdict: Verdict) -> tuple[list[str], list[str]]:
        """Remove the victims; returns those that are evicted, and those whose eviction violates a budget."""
        # Pods that are already terminating only delay the start.
        terminating = [each.pod for each in verdict.victims.get(branch.node, ()) if each.terminating]
        removed = [self._pods[key] for key in dict.fromkeys([*branch.leaving, *terminating])]
        victims = [pod for pod in removed if pod.metadata.deletion_timestamp is None]
        violated = self._budgets.broken_by(victims) if branch.violated is None else branch.violated
        for pod in removed:
            if pod.key in self._ready:
                self._ready.discard(pod.key)
                self._budgets.change(pod, -1)
            del self._pods[pod.key]
            self._quotas.count(pod, -1)
        self._change_claims(released(self._cluster.resource_claims, removed))
        for pod in victims:
            for budget in violated.get(pod.key, ()):
                self.violations[budget] = self.violations.get(budget, 0) + 1
        return [pod.key for pod in victims], [pod.key for pod in victims if violated.get(pod.key)]

    def _bind(self, pod: Pod, node: str, verdict: Verdict) -> None:
        status = msgspec.structs.replace(
            pod.status, phase="Running", start_time=self._now, nominated_node_name="", conditions=[]
        )
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        # A pod that changes moves behind the others on its node, as in the scheduler's cache.
        self._pods.pop(pod.key, None)
        self._pods[pod.key] = msgspec.structs.replace(pod, spec=spec, status=status)
        if pod.spec.resource_claims or node in verdict.devices:
            cluster, devices = self._cluster, verdict.devices.get(node, [])
            self._change_claims(allocated(cluster.resource_claims, pod, devices, node, cluster.resource_slices))
        self._failed_verdicts.clear()
        self._is_stale = True

    def _change_claims(self, claims: list[ResourceClaim]) -> None:
        """Replace the claims for devices; the prepared cluster can only be reused if they stay the same."""
        if claims is not self._cluster.resource_claims:
            self._cluster = msgspec.structs.replace(self._cluster, resource_claims=claims)

    def _kind_of(self, key: str) -> Hashable:
        """Equal victims are not interchangeable for the pods that follow."""
        pod = self._pods.get(key)
        return None if pod is not None and pod.metadata.deletion_timestamp is not None else key


def last_branch(branches: Sequence[Branch]) -> Branch:
    """The last possible result of a decision."""
    return branches[-1]


# Ways to choose between the results of a decision; the first one is reported.
CHOICES: Sequence[Callable[[Sequence[Branch]], Branch]] = (first_branch, last_branch)
