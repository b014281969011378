"""Assign flavors to a Workload: the preferred flavor for each pod set and resource group.

Follows ``pkg/scheduler/flavorassigner/flavorassigner.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kpreempt.model.kueue import FlavorFungibility, ResourceFlavor
from kpreempt.schedulers.kueue.assignment import (
    EXCEEDS_MAX_QUOTA,
    NO_MATCHING_FLAVOR,
    WAITING_FOR_QUOTA,
    Assignment,
    Attempt,
    ChosenFlavor,
    Mode,
    PodSetAssignment,
    Possibility,
    merge_attempts,
    most_severe,
    severity,
)
from kpreempt.schedulers.kueue.cluster_queues import NEVER, Group, Info, Queue
from kpreempt.schedulers.kueue.objects import Gate, KueueConfiguration
from kpreempt.schedulers.kueue.quota import Amounts, FlavorResource, Requests, amount_text, in_order, lowest_that_fits
from kpreempt.schedulers.kueue.topology import PODS
from kpreempt.schedulers.kueue.topology_requests import place_assignment, why_not

# Reports what preemption can do for an amount of one resource of a flavor, and how far the Workload would borrow then.
Simulate = Callable[[Queue, Info, FlavorResource, int], tuple[Possibility, int]]
_TRY_NEXT = "TryNextFlavor"
_FARTHEST = 2**63 - 1


class _Rank(NamedTuple):
    """The quality of a flavor: what it takes to use it, and how far up the tree it borrows."""

    possibility: Possibility
    borrow: int


class Assigner:
    """Assigns flavors to one Workload, given the current usage of the ClusterQueues."""

    def __init__(
        self,
        info: Info,
        queue: Queue,
        flavors: Mapping[str, ResourceFlavor],
        config: KueueConfiguration,
        simulate: Simulate,
        nominated: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """If ``nominated`` is given, only these flavors are tried. They are given by pod set and resource."""
        self._info, self._queue, self._flavors, self._config = info, queue, flavors, config
        self._simulate = simulate
        self._nominated = nominated or {}
        self._observes = config.has(Gate.OBSERVABILITY)
        self._has_fungibility = config.has(Gate.FLAVOR_FUNGIBILITY)

    def assign(self, counts: Sequence[int] | None = None) -> Assignment:
        """Assign flavors for all pods, or for ``counts`` pods of each pod set."""
        all_requests = self._info.requests
        pod_sets = [
            PodSetAssignment(each.name, each.requests, each.count)
            for each in (
                one.scaled_to(count)
                for one, count in zip(all_requests, counts or [each.count for each in all_requests], strict=True)
            )
        ]
        assignment = Assignment()
        # Pod sets of one group get the same flavors.
        groups: dict[str, list[int]] = {}
        for index, one in enumerate(self._info.pod_sets):
            group = one.topology_request.pod_set_group_name if one.topology_request else None
            groups.setdefault(str(index) if group is None else group, []).append(index)
        if all(self._assign_group(assignment, pod_sets, ids) for ids in groups.values()) and (
            assignment.mode is not Mode.NO_FIT and self._config.has(Gate.TOPOLOGY)
        ):
            place_assignment(assignment, self._info, self._queue, observes=self._observes)
        if self._observes:
            self._explain(assignment)
        return assignment

    def _assign_group(self, assignment: Assignment, pod_sets: list[PodSetAssignment], ids: list[int]) -> bool:
        """Assign flavors to pod sets, and return whether all that request something got one."""
        together: Requests = {}
        for index in ids:
            each = pod_sets[index]
            if self._queue.group_of(PODS) is not None:
                each.requests = {**each.requests, PODS: each.count}
            for name, amount in each.requests.items():
                together[name] = together.get(name, 0) + amount
        attempts: dict[str, Attempt] = {}
        chosen: dict[str, ChosenFlavor] = {}
        reasons: list[str] = []
        for resource in in_order(together):
            group = self._queue.group_of(resource)
            if group is None and (together[resource] == 0 or self._config.ignores_undeclared):
                continue
            if resource in chosen:
                continue
            found, why, weighed = self._choose(ids, together, resource, group, assignment.usage)
            merge_attempts(attempts, weighed, group.flavors if group else [], resource, observes=self._observes)
            if not found:
                chosen, reasons = {}, why
                break
            chosen.update(found)
            reasons += why
        tried = [attempts[flavor] for flavor in sorted(attempts)]
        # List all attempts, even if a resource gets no flavor.
        for index in ids:
            pod_set, topology = pod_sets[index], self._info.pod_sets[index].topology_request
            pod_set.flavors = {name: given for name, given in chosen.items() if name in pod_set.requests}
            if not pod_set.requests and topology is not None and topology.pod_set_group_name is not None:
                # A leader that requests nothing gets the flavor of its group.
                pod_set.flavors = {name: got for name, got in chosen.items() if got.name in self._queue.topologies}
            pod_set.reasons, pod_set.attempts = list(reasons), tried
            assignment.pod_sets.append(pod_set)
            for resource, given in pod_set.flavors.items():
                assignment.borrowing = max(assignment.borrowing, given.borrow)
                fr = (given.name, resource)
                assignment.usage[fr] = assignment.usage.get(fr, 0) + pod_set.requests.get(resource, 0)
        return all(not pod_sets[index].requests or pod_sets[index].flavors for index in ids)

    def _choose(
        self, ids: list[int], together: Requests, resource: str, group: Group | None, used: Amounts
    ) -> tuple[dict[str, ChosenFlavor], list[str], list[Attempt]]:
        """Return the flavor for all resources in the group of ``resource``, why there is none, and what was tried."""
        if group is None:
            return {}, [f"resource {resource} unavailable in ClusterQueue"], []
        requests = [(name, together[name]) for name in in_order(together) if name in group.covered]
        reasons: list[str] = []
        attempts: list[Attempt] = []
        best: dict[str, ChosenFlavor] = {}
        best_rank = _Rank(Possibility.NO_FIT, _FARTHEST)
        last = -1
        # Continue with the flavor after the one that an earlier attempt tried last.
        memory = self._info.memory
        begin = 0
        if self._has_fungibility and memory is not None and ids[0] < len(memory.next_flavor):
            begin = memory.next_flavor[ids[0]].get(resource, -1) + 1
        for index in range(begin, len(group.flavors)):
            last = index
            name = group.flavors[index]
            nominated = (self._nominated.get(self._info.pod_sets[each].name, {}) for each in ids)
            if self._nominated and all(name != each.get(resource, "") for each in nominated):
                skipped = f"skipping flavor {name} as it is not found in the nomination mapping for resource {resource}"
                reasons.append(skipped)
                continue
            if reason := self._unsuitable(name, ids, group):
                reasons.append(reason)
                reported_reason = NO_MATCHING_FLAVOR if self._observes else ""
                attempts.append(Attempt(name, Mode.NO_FIT, reasons=[reason], no_fit_reason=reported_reason))
                continue
            found, rank, attempt = self._weigh(name, requests, used)
            reasons += attempt.reasons
            attempt.reasons = sorted(attempt.reasons)
            attempts.append(attempt)
            if self._has_fungibility and not _continues(rank, self._queue.fungibility):
                best, best_rank = found, rank
                break
            if self._has_fungibility:
                is_better = _is_preferred(rank, best_rank, self._queue.fungibility)
            else:
                is_better = rank.possibility > best_rank.possibility
            if is_better:
                best, best_rank = found, rank
                if not self._has_fungibility and rank.possibility is Possibility.FIT:
                    break
        if self._has_fungibility:
            for each in best.values():
                each.next_flavor = -1 if last == len(group.flavors) - 1 else last
        return best, [] if best_rank.possibility is Possibility.FIT else reasons, attempts

    def _unsuitable(self, name: str, ids: list[int], group: Group) -> str:
        flavor = self._flavors.get(name)
        if flavor is None:
            return f"flavor {name} not found"
        has_topologies = self._config.has(Gate.TOPOLOGY)
        for index in ids:
            pod_set = self._info.pod_sets[index]
            if reason := why_not(flavor, pod_set, self._queue, group, has_topologies=has_topologies):
                return reason
        return ""

    def _weigh(
        self, flavor: str, requests: list[tuple[str, int]], used: Amounts
    ) -> tuple[dict[str, ChosenFlavor], _Rank, Attempt]:
        """Evaluate a flavor for all resources; the worst one counts."""
        worst = _Rank(Possibility.FIT, 0)
        chosen: dict[str, ChosenFlavor] = {}
        reasons: list[str] = []
        borrow, no_fit_reason = 0, ""
        for resource, amount in requests:
            fr = (flavor, resource)
            rank, reason, severe = self._quota(fr, used.get(fr, 0), amount)
            if reason:
                reasons.append(reason)
                no_fit_reason = most_severe(no_fit_reason, severe)
            borrow = max(borrow, rank.borrow)
            if _is_preferred(worst, rank, self._queue.fungibility):
                worst = rank
            if worst.possibility is not Possibility.NO_FIT:
                chosen[resource] = ChosenFlavor(flavor, rank.possibility.mode, rank.borrow)
        possibility = worst.possibility if worst.possibility.word else None
        reported_reason = no_fit_reason if self._observes else ""
        return chosen, worst, Attempt(flavor, worst.possibility.mode, borrow, possibility, reasons, reported_reason)

    def _quota(self, fr: FlavorResource, before: int, amount: int) -> tuple[_Rank, str, str]:
        """Check one resource of a flavor against quota: its rank, why it does not fit, and what prevents it."""
        queue, node = self._queue, self._queue.node
        flavor, resource = fr
        requested = before + amount
        most = node.potential(fr)
        if requested > most:
            reason = (
                f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests "
                f"({amount_text(resource, before)}) + current podset request ({amount_text(resource, amount)}) > "
                f"maximum capacity ({amount_text(resource, most)})"
            )
            return _Rank(Possibility.NO_FIT, 0), reason, EXCEEDS_MAX_QUOTA
        borrow, may_reclaim = lowest_that_fits(node, fr, requested)
        available = max(0, node.available(fr))
        if requested <= available:
            return _Rank(Possibility.FIT, borrow), "", ""
        short = amount_text(resource, requested - available)
        reason = f"insufficient unused quota for {resource} in flavor {flavor}, {short} more needed"
        is_fair = self._config.fair_sharing is not None
        may_borrow = queue.preemption.may_borrow or (is_fair and queue.preemption.reclaim_within_cohort != NEVER)
        if node.quota(fr).nominal >= requested or may_reclaim or may_borrow:
            return _Rank(*self._simulate(queue, self._info, fr, requested)), reason, ""
        return _Rank(Possibility.NO_FIT, borrow), reason, WAITING_FOR_QUOTA

    def _explain(self, assignment: Assignment) -> None:
        """Find the most severe reason why a Workload does not fit (``resolveNoFitReason``)."""
        if assignment.mode is not Mode.NO_FIT:
            return
        overall = ""
        for pod_set in assignment.pod_sets:
            if pod_set.mode is not Mode.NO_FIT:
                continue
            if not pod_set.attempts:
                overall = most_severe(overall, NO_MATCHING_FLAVOR)
                continue
            least: dict[int, str] = {}
            for index, each in enumerate(pod_set.attempts):
                if each.mode is not Mode.NO_FIT:
                    continue
                groups = [at for at, group in enumerate(self._queue.groups) if each.flavor in group.flavors]
                for at in groups or [-1 - index]:
                    if at not in least or severity(each.no_fit_reason) < severity(least[at]):
                        least[at] = each.no_fit_reason
            for reason in least.values():
                overall = most_severe(overall, reason)
        assignment.no_fit_reason = overall


def _is_preferred(rank: _Rank, other: _Rank, fungibility: FlavorFungibility) -> bool:
    """Return whether ``rank`` is better than ``other``."""
    if Possibility.NO_FIT in (rank.possibility, other.possibility):
        return rank.possibility is not Possibility.NO_FIT
    hopeless, other_hopeless = (each.possibility is Possibility.NO_CANDIDATES for each in (rank, other))
    if hopeless != other_hopeless:
        return not hopeless
    keys = [(each.possibility, -each.borrow) for each in (rank, other)]
    if fungibility.preference == "PreemptionOverBorrowing":
        return keys[0][::-1] > keys[1][::-1]
    return keys[0] > keys[1]


def _continues(rank: _Rank, fungibility: FlavorFungibility) -> bool:
    """Return whether the next flavor is tried as well."""
    return (
        rank.possibility <= Possibility.NO_CANDIDATES
        or (rank.possibility is not Possibility.FIT and fungibility.preempt == _TRY_NEXT)
        or (rank.borrow != 0 and fungibility.borrow == _TRY_NEXT)
    )
