"""The rules about victims: of budgets, all in all, of a workload, who must not be one, and how far evictions lead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpreempt.analysis.gate.attribution import Attribution, namespace_of
from kpreempt.analysis.gate.facts import Facts, PodFacts
from kpreempt.analysis.gate.measures import CLUSTER, Measure, Part, Tally
from kpreempt.analysis.gate.patterns import matches
from kpreempt.analysis.gate.rules import ForbiddenVictims, GateRules
from kpreempt.gate_rules import RuleId
from kpreempt.verdict.play import Displaced, Play, StepKind


class Victims:
    """The victims of a play in the order in which they go, each with its workload and the change behind it."""

    def __init__(self, play: Play, attribution: Attribution) -> None:
        self.play = play
        self.attribution = attribution
        # A pod that goes several times under one name does so in the order of its steps.
        times: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for position, step in enumerate(play.steps):
            if step.kind is StepKind.LEAVES:
                times.setdefault((step.pod, step.cause), []).append((step.at, position))
        self.since = [0.0] * len(play.displaced)
        places: list[tuple[int, int]] = []
        for index, victim in enumerate(play.displaced):
            left = times.get((victim.pod, victim.cause))
            at, position = left.pop(0) if left else (0.0, len(play.steps))
            self.since[index] = at
            places.append((position, index))
        self.order = [index for _, index in sorted(places)]
        self.workloads = [each.workload or attribution.workload_of(each.pod) for each in play.displaced]
        self.changes = [attribution.change_behind(index) for index in range(len(play.displaced))]

    def __iter__(self) -> Iterator[tuple[int, Displaced]]:
        """The victims with their index, in the order in which they go."""
        for index in self.order:
            yield index, self.play.displaced[index]


def violations(victims: Victims, rules: GateRules) -> Iterator[Measure]:
    """For each budget the victims that it does not allow to go."""
    tallies: dict[str, Tally] = {}
    since: dict[str, float] = {}
    for index, victim in victims:
        for budget in victim.violated:
            tallies.setdefault(budget, Tally()).add(victims.changes[index], victim.pod)
            since.setdefault(budget, victims.since[index])
    for low in victims.play.budgets:
        # Those that go for a pod which waited before are victims, too, and no change's.
        if low.violations:
            tally = tallies.setdefault(low.budget, Tally())
            tally.add_unnamed(max(low.violations - tally.amount, 0))
    for budget, tally in tallies.items():
        yield Measure(
            rule=RuleId.MAX_PDB_VIOLATIONS,
            subject=f"PodDisruptionBudget {budget}",
            parts=tally.parts(),
            group=rules.group_of(RuleId.MAX_PDB_VIOLATIONS, namespace_of(budget), ""),
            since=since.get(budget, 0.0),
        )


def all_victims(victims: Victims, rules: GateRules) -> Iterator[Measure]:
    """How many have to go, all in all; those of an override are counted on their own."""
    tallies: dict[int, Tally] = {}
    since: dict[int, float] = {}
    for index, victim in victims:
        group = rules.group_of(RuleId.MAX_VICTIMS, namespace_of(victim.pod), victims.workloads[index])
        tallies.setdefault(group, Tally()).add(victims.changes[index], victim.pod)
        since.setdefault(group, victims.since[index])
    for group, tally in tallies.items():
        yield Measure(
            rule=RuleId.MAX_VICTIMS,
            subject=CLUSTER if group < 0 else rules.overrides[group].name,
            parts=tally.parts(),
            group=group,
            since=since[group],
        )


def victims_by_workload(victims: Victims, rules: GateRules) -> Iterator[Measure]:
    """How many of each workload have to go."""
    tallies: dict[str, Tally] = {}
    since: dict[str, float] = {}
    for index, victim in victims:
        workload = victims.workloads[index]
        tallies.setdefault(workload, Tally()).add(victims.changes[index], victim.pod)
        since.setdefault(workload, victims.since[index])
    for workload, tally in tallies.items():
        yield Measure(
            rule=RuleId.MAX_VICTIMS_PER_WORKLOAD,
            subject=workload,
            parts=tally.parts(),
            group=rules.group_of(RuleId.MAX_VICTIMS_PER_WORKLOAD, namespace_of(workload), workload),
            since=since[workload],
        )


def forbidden_victims(victims: Victims, rules: GateRules, facts: Facts) -> Iterator[Measure]:
    """The workloads of which pods go that must not; where a pod's labels are not known, they are taken to match."""
    if not rules.forbidden:
        return
    known = dict(facts.pods)
    for victim in victims.play.displaced:
        # What takes the place of a pod is made from the same template. The list has the pod before it.
        if victim.replacement and victim.pod in known:
            known.setdefault(victim.replacement, known[victim.pod])
    tallies: dict[str, Tally] = {}
    since: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for index, victim in victims:
        reason = _forbidden_by(rules.forbidden, victim.pod, known.get(victim.pod))
        if reason:
            workload = victims.workloads[index]
            tallies.setdefault(workload, Tally()).add(victims.changes[index], victim.pod)
            since.setdefault(workload, victims.since[index])
            reasons.setdefault(workload, reason)
    for workload, tally in tallies.items():
        yield Measure(
            rule=RuleId.FORBID_VICTIMS,
            subject=workload,
            parts=tally.parts(),
            since=since[workload],
            detail=reasons[workload],
        )


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


def lost_pods(victims: Victims, rules: GateRules) -> Iterator[Measure]:
    """Who had to go and has nothing that would make it again, each for itself."""
    tallies: dict[str, Tally] = {}
    since: dict[str, float] = {}
    for index, victim in victims:
        if victim.lost:
            workload = victims.workloads[index]
            tallies.setdefault(workload, Tally()).add(victims.changes[index], victim.pod)
            since.setdefault(workload, victims.since[index])
    for workload, tally in tallies.items():
        yield Measure(
            rule=RuleId.LOST_PODS,
            subject=workload,
            parts=tally.parts(),
            group=rules.group_of(RuleId.LOST_PODS, namespace_of(workload), workload),
            since=since[workload],
        )


def cascades(victims: Victims, rules: GateRules) -> Iterator[Measure]:
    """For each workload whose pods come first the longest line of evictions, and for each override of a last victim."""
    longest: dict[tuple[str, int], int] = {}
    for index, victim in victims:
        workload = victims.workloads[index]
        group = rules.group_of(RuleId.MAX_CASCADE_DEPTH, namespace_of(victim.pod), workload)
        key = (victims.attribution.root_workload(index), group)
        if key not in longest or victims.play.displaced[longest[key]].depth < victim.depth:
            longest[key] = index
    for (root, group), index in longest.items():
        victim = victims.play.displaced[index]
        yield Measure(
            rule=RuleId.MAX_CASCADE_DEPTH,
            subject=root,
            parts=[Part(change=victims.changes[index], amount=victim.depth, pods=[victim.pod])],
            group=group,
            chain=victims.attribution.chain_to(index),
            since=victims.since[index],
        )
