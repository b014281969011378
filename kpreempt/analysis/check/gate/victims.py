"""What rules about victims measure: of budgets, all in all, of a workload, forbidden ones, and lines of evictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kpreempt.analysis.check.gate.case import CLUSTER, Case, Measure, Part, PodFacts, grouped, namespace_of
from kpreempt.analysis.check.gate.rules import ForbiddenVictims, matches
from kpreempt.gate_rules import RuleId


def _violations(case: Case) -> Iterator[Measure]:
    """For each budget the victims that it does not allow to go."""
    rule = RuleId.MAX_PDB_VIOLATIONS
    found: dict[str, list[int]] = {}
    for index in case.order:
        for budget in case.simulation.displaced[index].violated:
            found.setdefault(budget, []).append(index)
    unnamed: dict[str, int] = {}
    for low in case.simulation.budgets:
        # Those that go for a pod which waited before are victims, too, and no change's.
        if low.violations:
            rest = low.violations - len(found.setdefault(low.budget, []))
            unnamed[low.budget] = max(rest, unnamed.get(low.budget, 0))
    for budget, own in found.items():
        yield Measure(
            rule=rule,
            subject=f"PodDisruptionBudget {budget}",
            parts=case.parts(own, unnamed.get(budget, 0)),
            group=case.group_of(rule, "", namespace_of(budget)),
            since=case.since[own[0]] if own else 0.0,
        )


def _all_victims(case: Case) -> Iterator[Measure]:
    """How many have to go, all in all; those of an override are counted on their own."""
    rule = RuleId.MAX_VICTIMS

    def group_of(index: int) -> int:
        return case.group_of(rule, case.workloads[index], namespace_of(case.simulation.displaced[index].pod))

    for group, own in grouped(case.order, group_of).items():
        subject = CLUSTER if group < 0 else case.rules.overrides[group].name
        yield Measure(rule=rule, subject=subject, parts=case.parts(own), group=group, since=case.since[own[0]])


def _victims_by_workload(case: Case) -> Iterator[Measure]:
    """How many of each workload have to go."""
    return _of_workloads(case, RuleId.MAX_VICTIMS_PER_WORKLOAD, case.order)


def _lost_pods(case: Case) -> Iterator[Measure]:
    """Who had to go and has nothing that would make it again, each for itself."""
    lost = [index for index in case.order if case.simulation.displaced[index].lost]
    return _of_workloads(case, RuleId.LOST_PODS, lost)


def _forbidden_victims(case: Case) -> Iterator[Measure]:
    """The workloads of which pods go that must not; where a pod's labels are not known, they are taken to match."""
    known = dict(case.facts.pods)
    for victim in case.simulation.displaced:
        # What takes the place of a pod is made from the same template. The list has the pod before it.
        if victim.replacement and victim.pod in known:
            known.setdefault(victim.replacement, known[victim.pod])
    reasons: dict[int, str] = {}
    for index in case.order:
        pod = case.simulation.displaced[index].pod
        if reason := _forbidden_by(case.rules.forbidden, pod, known.get(pod)):
            reasons[index] = reason
    return _of_workloads(case, RuleId.FORBID_VICTIMS, reasons, reasons)


def _forbidden_by(forbidden: Sequence[ForbiddenVictims], pod: str, known: PodFacts | None) -> str:
    """The first that forbids it, in words, or an empty text."""
    for each in forbidden:
        if each.namespace and not matches(each.namespace, namespace_of(pod)):
            continue
        if known is None:
            if each.selector is None and not each.priority_class:
                return each.name
            return f"{each.name}: what it is labelled with, and its priority class, are not known"
        if each.selector is not None and not each.selector.matches(known.labels):
            continue
        if not each.priority_class or matches(each.priority_class, known.priority_class):
            return each.name
    return ""


def _of_workloads(
    case: Case, rule: RuleId, victims: Iterable[int], details: Mapping[int, str] | None = None
) -> Iterator[Measure]:
    """These victims by their workload, with what there is to say of the first."""
    for workload, own in grouped(victims, lambda index: case.workloads[index]).items():
        yield Measure(
            rule=rule,
            subject=workload,
            parts=case.parts(own),
            group=case.group_of(rule, workload),
            since=case.since[own[0]],
            detail=details[own[0]] if details else "",
        )


def _cascades(case: Case) -> Iterator[Measure]:
    """For each workload whose pods come first the longest line of evictions, and for each override of a last victim."""
    rule = RuleId.MAX_CASCADE_DEPTH
    victims = case.simulation.displaced

    def key(index: int) -> tuple[str, int]:
        group = case.group_of(rule, case.workloads[index], namespace_of(victims[index].pod))
        return case.root_workload(index), group

    for (root, group), own in grouped(case.order, key).items():
        last = max(own, key=lambda index: victims[index].depth)
        yield Measure(
            rule=rule,
            subject=root,
            parts=[Part(change=case.behind[last], amount=victims[last].depth, pods=[victims[last].pod])],
            group=group,
            chain=case.chain_to(last),
            since=case.since[last],
        )


MEASURES = (_violations, _all_victims, _victims_by_workload, _forbidden_victims, _cascades, _lost_pods)
