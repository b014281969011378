"""What a change does to a cluster, in one plain sentence: what hurts most comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kpreempt.gate_rules import RuleId, Takes
from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Part, Phrase
from kpreempt.report.check.words import finding_phrase
from kpreempt.report.drains import summary_phrase as drain_summary
from kpreempt.report.html.lanes import ready_series, steps_by_workload
from kpreempt.report.quoting import name, names, plain
from kpreempt.report.simulation_words import clock
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.check import ChangeKind, Check, GateFinding
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.simulation import SimulatedWorkload, Simulation, SimulationEnd
from kpreempt.verdict.unread import LIST

_CLAUSES_SHOWN = 4
# Pods of these end by themselves, or are listed as lost.
_NEVER_DOWN = ("Pod ", "Job ", "CronJob ")


def summary(check: Check) -> str:
    """The sentence as the document has it, without a full stop."""
    return plain(summary_phrase(check))


def summary_phrase(check: Check) -> Phrase:
    """``metrics/ingester is down for at least 30s``, or ``harmless: 12 pods roll, nothing is evicted``.

    What the change itself removes or weakens comes first, excused or not. The word harmless is ``is_harmless``'s.
    """
    if isinstance(check, Drain):
        return drain_summary(check)
    clauses = [*_damage(check.findings), *_harm(check)]
    if clauses:
        which = "case" if check.explored_all else f"of {check.runs:,} runs"
        worst: Phrase = (f"in the worst {which}, ",) if len(check.outcomes) > 1 else ()
        return (*worst, *_joined(clauses[:_CLAUSES_SHOWN], "; "))
    losses = [*_losses(check)]
    done = f"{', '.join(_deeds(check, losses))}{';' if losses else ','} nothing is evicted"
    if doubts := _doubts(check):
        return (f"{done}, as far as is known: {doubts}",)
    broken = dict.fromkeys(str(each.rule) for each in check.findings)
    if broken or not check.passed:
        return (f"{done}{f', but for {_few(list(broken))}' if broken else ''}",)
    always = "" if check.runs == 1 or check.explored_all else f" in any of {check.runs:,} runs"
    if left := len(check.only_in_base):
        always += f"; {count(left, 'object')} {agree(left, 'is')} only in the base"
    return (f"{'harmless: ' if is_harmless(check) else ''}{done}{always}",)


def is_harmless(check: Check) -> bool:
    """Whether an answer may be called harmless.

    It must pass without a finding, not even an excused one, rest on nothing that could change the answer, and take
    nothing away: no object is deleted, or left to whatever prunes it, no workload scaled down, no pod evicted, pending
    or refused, nothing cut off from what it needs, no Node changed. All rules about damage must have been checked.
    """
    simulation = check.simulation
    is_certain = all(each.kind.only_informs for each in check.assumptions)
    is_checked = all(each.is_on for each in check.rules if each.rule.row.is_damage)
    changes_nodes = any(
        each.object.startswith("Node ") and each.kind is not ChangeKind.UNCHANGED for each in check.changes
    )
    is_kept = not changes_nodes and not (
        [*_losses(check)] or check.only_in_base or simulation.stranded or [*_harm(check)]
    )
    return check.passed and not check.findings and is_certain and is_checked and is_kept


# Rules about damage of which a few words are enough. Of others the sentence of the first finding is shown.
_DELETED = (RuleId.MAX_DELETIONS, RuleId.NAMESPACE_DELETION, RuleId.VOLUME_DELETION)
_EMPTIED = (RuleId.SERVICE_OUTAGE, RuleId.SCALED_TO_ZERO)


def _damage(findings: Iterable[GateFinding]) -> Iterator[Phrase]:
    """What the change itself removes or weakens, from what to what; weakened protection comes first."""
    found: dict[RuleId, list[GateFinding]] = {}
    for each in sorted(findings, key=lambda finding: not finding.rule.row.weakens):
        if each.rule.row.is_damage:
            found.setdefault(each.rule, []).append(each)
    for rule, own in found.items():
        subjects = names([each.subject for each in own], limit=2)
        pods = len({pod for each in own for pod in each.pods})
        if rule in _DELETED:
            along = f" with {count(pods, 'pod')}" if pods and rule is RuleId.MAX_DELETIONS else ""
            yield (*subjects, f" {agree(len(own), 'is')} deleted{along}")
        elif rule in _EMPTIED:
            size = f"goes from {count(pods, 'pod')} to 0" if pods else "is scaled to zero"
            verb, _, rest = size.partition(" ")
            yield (*subjects, f" {agree(len(own), verb)} {rest}")
        else:
            more = f", and {count(len(own) - 1, 'more finding')} of {rule}" if len(own) > 1 else ""
            yield (*finding_phrase(own[0]), more)


def _joined(clauses: Sequence[Phrase], separator: str) -> Phrase:
    parts: list[Part] = []
    for number, clause in enumerate(clauses):
        parts += [separator, *clause] if number else clause
    return tuple(parts)


def _few(words: Sequence[str]) -> str:
    more = f" and {len(words) - 2:,} more" if len(words) > 2 else ""
    return f"{' and '.join(words[:2]) if not more else ', '.join(words[:2])}{more}"


def _harm(check: Check) -> Iterator[Phrase]:
    """What is bad about it, the worst first."""
    simulation = check.simulation
    if refused := dict.fromkeys(each.subject for each in check.findings if each.rule is RuleId.APPLY_REFUSED):
        yield ("the API server refuses ", *names(list(refused), limit=2))
    yield from _end(simulation)
    yield from _down(simulation)
    yield from _evicted(check)
    if broken := [each.budget for each in simulation.budgets if each.violations]:
        yield ("budget " if len(broken) == 1 else "budgets ", *names(broken, limit=2), agree(len(broken), " breaks"))
    ran = sum(each.was_running for each in simulation.waiting)
    new = sum(not each.was_running and not each.waited_before for each in simulation.waiting)
    if new:
        yield (f"{count(new, 'new pod')} {agree(new, 'stays')} pending",)
    if ran:
        yield (f"{count(ran, 'pod')} that ran {agree(ran, 'stays')} pending",)
    if left := sum(each.left for each in simulation.refused):
        yield (f"{count(left, 'pod')} {agree(left, 'is')} refused by quota",)
    stuck = [each.workload for each in simulation.workloads if each.is_changed and not each.is_done]
    if stuck and not new and not left:
        yield ("the rollout of ", *names([_short(each) for each in stuck], limit=2), " does not complete")


def _end(simulation: Simulation) -> Iterator[Phrase]:
    if simulation.end is SimulationEnd.LOOP:
        loop = [_short(each) for each in simulation.loop] or ["the cluster"]
        yield (*names(loop, limit=2), f" never {agree(len(loop), 'settles')}")
    elif simulation.end is SimulationEnd.BROKEN_OFF:
        yield ("how it ends is not known",)


def _down(simulation: Simulation) -> Iterator[Phrase]:
    """Workloads without a ready pod that had one; how long is the least, since no pod is simulated to start slowly."""
    down = [
        each
        for each in simulation.workloads
        if each.ready_before and not each.ready_least and each.wanted_after != 0
        if not each.workload.startswith(_NEVER_DOWN)
    ]
    if not down:
        return
    steps = steps_by_workload(simulation)
    spans = {each.workload: _span(each, simulation, steps.get(each.workload, [])) for each in down}
    down.sort(key=lambda each: -(spans[each.workload] or 0) if each.ready_after else float("-inf"))
    worst, *others = down
    span = spans[worst.workload]
    how_long = " is down for a while" if span is None else f" is down for at least {clock(max(span, 1))}"
    if not worst.ready_after:
        how_long = " goes down and stays down"
    more = f", and {count(len(others), 'more workload')} {agree(len(others), 'is')} down as well" if others else ""
    yield (name(_short(worst.workload)), how_long, more)


def _span(workload: SimulatedWorkload, simulation: Simulation, steps: Sequence[object]) -> float | None:
    """The seconds without a ready pod, at the longest; ``None`` where the steps do not tell."""
    series = ready_series(workload, steps)  # type: ignore[arg-type]
    if not series.is_whole:
        return None
    longest, since = 0.0, None
    for at, ready in [*series.points, (simulation.seconds, workload.ready_after)]:
        if since is not None:
            longest = max(longest, at - since)
        since = None if ready else at if since is None else since
    return longest


def _evicted(check: Check) -> Iterator[Phrase]:
    displaced = check.simulation.displaced
    with_node = sum(each.with_node for each in displaced)
    evicted = len(displaced) - with_node
    lost = sum(each.lost for each in displaced)
    if evicted:
        gone = f", {lost:,} of them for good" if lost and len(displaced) > 1 else " for good" if lost else ""
        yield (f"{count(evicted, 'pod')} {agree(evicted, 'is')} evicted{gone}",)
    elif check.evictions.most > len(displaced):
        yield (f"up to {count(check.evictions.most, 'pod')} {agree(check.evictions.most, 'is')} evicted",)
    if with_node:
        gone = f", {count(lost, 'pod')} for good" if lost and not evicted else ""
        yield (f"{count(with_node, 'pod')} {agree(with_node, 'goes')} with {agree(with_node, 'its')} node{gone}",)


def _doubts(check: Check) -> str:
    """The rules about what is not known that have a finding, excused or not, and quotas that a larger size may meet."""
    rules = dict.fromkeys(str(each.rule) for each in check.findings if each.rule.row.takes is Takes.NOTHING)
    is_scaled = any(each.kind is ChangeKind.SCALED for each in check.changes)
    lacks_quotas = any(
        (each.subject, each.field, each.kind) == ("ResourceQuota", LIST, AssumptionKind.TOLD)
        for each in check.assumptions
    )
    return _few([*rules, *(["no ResourceQuota in the snapshot"] if is_scaled and lacks_quotas and not rules else [])])


def _losses(check: Check) -> Iterator[str]:
    """What is deleted or scaled down, in words: ``2 objects are deleted with 3 pods``."""
    if gone := [each for each in check.changes if each.kind is ChangeKind.DELETED]:
        pods = sum(len(each.pods) for each in gone)
        along = f" with {count(pods, 'pod')}" if pods else ""
        yield f"{count(len(gone), 'object')} {agree(len(gone), 'is')} deleted{along}"
    if down := _scaled_down(check):
        before, after = (sum(sizes) for sizes in zip(*down.values(), strict=True))
        yield f"{count(len(down), 'workload')} {agree(len(down), 'is')} scaled down from {before:,} to {after:,}"


def _scaled_down(check: Check) -> dict[str, tuple[int, int]]:
    """The workloads that are to have fewer pods, or DaemonSets that do, with how many before and after."""
    sizes = {
        each.object: (each.replicas_before, each.replicas)
        for each in check.changes
        if each.replicas_before is not None and each.replicas is not None
    }
    sizes |= {
        each.workload: (each.ready_before, each.ready_after)
        for each in check.simulation.workloads
        if each.is_changed and each.workload.startswith("DaemonSet ")
    }
    return {name: (before, after) for name, (before, after) in sizes.items() if after < before}


def _deeds(check: Check, losses: Sequence[str]) -> list[str]:
    """What is done to pods: ``12 pods roll``; to none: ``2 objects change``."""
    rolled = new = scaled = others = 0
    fewer = _scaled_down(check)
    for each in check.changes:
        if each.kind is ChangeKind.ROLLED:
            rolled += each.replicas or each.replicas_before or 0
        elif each.kind is ChangeKind.CREATED:
            new, others = new + (each.replicas or 0), others + (each.replicas is None)
        elif each.kind is ChangeKind.SCALED and each.object not in fewer:
            scaled += 1
        elif each.kind is ChangeKind.UPDATED:
            others += 1
    clauses = [f"{count(rolled, 'pod')} {agree(rolled, 'rolls')}"] if rolled else []
    clauses += [f"{count(new, 'pod')} {agree(new, 'is')} new"] if new else []
    clauses += [f"{count(scaled, 'workload')} {agree(scaled, 'is')} scaled"] if scaled else []
    clauses += losses
    if not clauses:
        clauses = [f"{count(others, 'object')} {agree(others, 'changes')}"] if others else ["nothing changes"]
    return clauses


def _short(workload: str) -> str:
    """``shop/api`` of ``Deployment shop/api``."""
    return workload.rpartition(" ")[2] or workload
