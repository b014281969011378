"""A one-sentence summary of what a change does to a cluster, with the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kpreempt.gate_rules import DEADLOCK, OptionType, RuleId
from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Part, Phrase
from kpreempt.report.check.effects import anyway_text, effect_of
from kpreempt.report.check.words import finding_phrase
from kpreempt.report.drains import summary_phrase as drain_summary
from kpreempt.report.html.lanes import ready_series, steps_by_workload
from kpreempt.report.quoting import message, name, names, plain
from kpreempt.report.simulation_words import clock
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.check import ChangeKind, Check, FindingStatus, GateFinding
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.simulation import SimulatedWorkload, Simulation, SimulationEnd
from kpreempt.verdict.unread import LIST

_CLAUSES_SHOWN = 4
_NOT_SIMULATED = "where pods land, and what they evict, is unknown without all nodes and pods"
_NOTHING = "nothing changes"
# Their pods end by themselves, or are listed as lost.
_NEVER_DOWN = ("Pod ", "Job ", "CronJob ")


def summary(check: Check) -> str:
    """The sentence as in the document, without a period."""
    return plain(summary_phrase(check))


def summary_phrase(check: Check) -> Phrase:
    """``metrics/ingester is down for at least 30s``, or ``harmless: 12 pods are replaced; no pod is evicted``.

    What the change itself removes or weakens comes first, even if suppressed. ``is_harmless`` decides on "harmless".
    """
    if isinstance(check, Drain):
        what, effect = "drain", _joined([*_worst_of_drain(check), drain_summary(check)], "; ")
    else:
        what, effect = "change", _effect(check)
    anyway = anyway_text(check)
    return (*effect, f"; without the {what}, {anyway} anyway") if anyway else effect


def _worst_of_drain(drain: Drain) -> list[Phrase]:
    """Why a drain that finishes does not pass; pods that stay pending are in its own sentence."""
    failing = [each for each in drain.findings if each.status is FindingStatus.FAILS]
    if not failing or not drain.finishes or drain.removals or drain.pending_after:
        return []
    return [*_down(drain.simulation, at_least=2)][:1] or [finding_phrase(failing[0])]


def _effect(check: Check) -> Phrase:
    """What the change itself does."""
    clauses = [*_damage(check.findings), *_harm(check)]
    if check.simulation.end is SimulationEnd.NOT_SIMULATED:
        return _joined([*clauses[:_CLAUSES_SHOWN], (_NOT_SIMULATED,)], "; ")
    if clauses:
        which = "case" if check.explored_all else f"of {check.runs:,} runs"
        worst: Phrase = (f"in the worst {which}, ",) if len(check.outcomes) > 1 else ()
        return (*worst, *_joined(clauses[:_CLAUSES_SHOWN], "; "))
    losses = [*_losses(check)]
    actions = _actions(check, losses)
    counted = sorted((each for each in check.findings if each.status.counts), key=lambda each: each.status)
    nothing = "no further pod is evicted" if check.without_change is not None else "no pod is evicted"
    done = f"{', '.join(actions)}; {_headroom(check) or nothing}"
    doubts = _doubts(check)
    if actions == [_NOTHING] and not check.headroom and counted and not doubts:
        done = nothing
    elif actions == [_NOTHING] and not check.headroom and check.without_change is not None:
        done = "no effect"
    if doubts:
        return (f"{done} (unverified: {doubts})",)
    if counted:
        more = f", and {count(len(counted) - 1, 'more finding')}" if counted[1:] else ""
        return (*finding_phrase(counted[0]), f"{more}; {done}")
    broken = dict.fromkeys(str(each.rule) for each in check.findings if each.status is not FindingStatus.NOT_NEW)
    if broken or not check.passed:
        return (f"{done}{f' (findings: {_few(list(broken))})' if broken else ''}",)
    always = "" if check.runs == 1 or check.explored_all else f" in any of {check.runs:,} runs"
    if left := len(check.only_in_base):
        always += f"; {count(left, 'object')} {agree(left, 'is')} only in the base"
    return (f"{'harmless: ' if is_harmless(check) else ''}{done}{always}",)


def _headroom(check: Check) -> str:
    """``only 3 placeholders are evicted (headroom/filler), 1 of which waits for room``."""
    used, waiting = (sum(getattr(each, field) for each in check.headroom) for field in ("evicted", "pending"))
    if not used:
        return ""
    of = plain(names([_short(each.workload) for each in check.headroom], limit=2))
    waits = f", {waiting:,} of which {agree(waiting, 'waits')} for room" if waiting else ""
    return f"only {count(used, 'placeholder')} {agree(used, 'is')} evicted ({of}){waits}"


def is_harmless(check: Check) -> bool:
    """Whether the change may be called harmless.

    It must pass without any finding, even a suppressed one, and without assumptions that could change the answer. It
    must not remove anything: no object is deleted or left to be pruned, no workload is scaled down, no pod is evicted,
    pending or rejected, no dependency is broken, and no Node changes. All rules about damage must be enabled.
    """
    simulation = check.simulation
    is_certain = all(each.kind.only_informs for each in check.assumptions)
    is_checked = all(each.is_on for each in check.rules if each.rule.row.is_damage)
    changes_nodes = any(
        each.object.startswith("Node ") and each.kind is not ChangeKind.UNCHANGED for each in check.changes
    )
    removes_nothing = not changes_nodes and not (
        [*_losses(check)] or check.headroom or check.only_in_base or simulation.broken_dependencies or [*_harm(check)]
    )
    return check.passed and not check.findings and is_certain and is_checked and removes_nothing


# For these rules about damage a few words are enough. For others, the sentence of the first finding is used.
_DELETED = (RuleId.MAX_DELETIONS, RuleId.NAMESPACE_DELETION, RuleId.VOLUME_DELETION)
_EMPTIED = (RuleId.SERVICE_OUTAGE, RuleId.SCALED_TO_ZERO)


def _damage(findings: Iterable[GateFinding]) -> Iterator[Phrase]:
    """What the change itself removes or weakens; weakened protection comes first."""
    found: dict[RuleId, list[GateFinding]] = {}
    for each in sorted(findings, key=lambda finding: not finding.rule.row.weakens):
        if each.rule.row.is_damage:
            found.setdefault(each.rule, []).append(each)
    for rule, own in found.items():
        subjects = names([each.subject for each in own], limit=2)
        pods = len({pod for each in own for pod in each.pods})
        if rule in _DELETED:
            pods_too = f" with {count(pods, 'pod')}" if pods and rule is RuleId.MAX_DELETIONS else ""
            yield (*subjects, f" {agree(len(own), 'is')} deleted{pods_too}")
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
    """The bad effects of the change itself, worst first."""
    simulation = effect_of(check)
    if rejected := dict.fromkeys(each.subject for each in check.findings if each.rule is RuleId.APPLY_REJECTED):
        yield ("the API server rejects ", *names(list(rejected), limit=2))
    yield from _end(simulation)
    yield from _down(simulation)
    yield from _evicted(check, simulation)
    if broken := [each.budget for each in simulation.budgets if each.violations]:
        nouns = "budget " if len(broken) == 1 else "budgets "
        yield (nouns, *names(broken, limit=2), f" {agree(len(broken), 'is')} violated")
    ran = sum(each.was_running for each in simulation.pending)
    new = sum(not each.was_running and not each.pending_before for each in simulation.pending)
    # Volumes have their own clause.
    deadlocks = [each for each in check.findings if each.detail.startswith(DEADLOCK) and not each.rule.row.is_damage]
    for each in deadlocks[:1]:
        more = f", and {count(len(deadlocks) - 1, 'more rollout')} as well" if deadlocks[1:] else ""
        yield (name(_short(each.subject)), " is in a ", message(each.detail.partition("; ")[0]), more)
    if new and not deadlocks:
        yield (f"{count(new, 'new pod')} {agree(new, 'stays')} pending",)
    if ran:
        yield (f"{count(ran, 'previously running pod')} {agree(ran, 'stays')} pending",)
    if left := sum(each.rejected_after for each in simulation.rejected):
        yield (f"{count(left, 'pod')} {agree(left, 'is')} rejected by quota",)
    stuck = [each.workload for each in simulation.workloads if each.is_changed and not each.is_done]
    if stuck and not new and not left and not any(each.detail.startswith(DEADLOCK) for each in check.findings):
        yield ("the rollout of ", *names([_short(each) for each in stuck], limit=2), " does not complete")


def _end(simulation: Simulation) -> Iterator[Phrase]:
    if simulation.end is SimulationEnd.LOOP:
        loop = [_short(each) for each in simulation.loop] or ["the cluster"]
        yield (*names(loop, limit=2), f" never {agree(len(loop), 'settles')}")
    elif simulation.end is SimulationEnd.ABORTED:
        yield ("the final state is unknown",)


def _down(simulation: Simulation, *, at_least: int = 1) -> Iterator[Phrase]:
    """Workloads with ``at_least`` N ready pods that lose all of them.

    The time is a minimum, because no pod is simulated to start slowly.
    """
    down = [
        each
        for each in simulation.workloads
        if each.ready_before >= at_least and not each.ready_min and each.desired_after != 0
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
    """The longest time without a ready pod, in seconds; ``None`` if the steps don't show it."""
    series = ready_series(workload, steps)  # type: ignore[arg-type]
    if not series.is_complete:
        return None
    longest, since = 0.0, None
    for at, ready in [*series.points, (simulation.seconds, workload.ready_after)]:
        if since is not None:
            longest = max(longest, at - since)
        since = None if ready else at if since is None else since
    return longest


def _evicted(check: Check, effect: Simulation) -> Iterator[Phrase]:
    displaced = effect.displaced
    with_node = sum(each.with_node for each in displaced)
    evicted = len(displaced) - with_node
    lost = sum(each.lost for each in displaced)
    if evicted:
        some = f", {lost:,} of them never recreated" if len(displaced) > 1 else " and never recreated"
        yield (f"{count(evicted, 'pod')} {agree(evicted, 'is')} evicted{some if lost else ''}",)
    elif check.evictions.max > len(check.simulation.displaced):
        yield (f"up to {count(check.evictions.max, 'pod')} {agree(check.evictions.max, 'is')} evicted",)
    if with_node:
        end = f", {lost:,} of them never recreated" if lost and not evicted else ""
        verb, node = agree(with_node, "is"), agree(with_node, "its")
        yield (f"{count(with_node, 'pod')} {verb} lost with {node} node{end}",)


def _doubts(check: Check) -> str:
    """The rules about unknowns that have a finding, even a suppressed one, and quotas that a larger size might hit.

    What is unknown without the change as well is no doubt about the change.
    """
    rules = dict.fromkeys(
        str(each.rule)
        for each in check.findings
        if each.rule.row.takes is OptionType.NOTHING and each.status is not FindingStatus.NOT_NEW
    )
    is_scaled = any(each.kind is ChangeKind.SCALED for each in check.changes)
    lacks_quotas = any(
        (each.subject, each.field, each.kind) == ("ResourceQuota", LIST, AssumptionKind.INFORMATIONAL)
        for each in check.assumptions
    )
    return _few([*rules, *(["no ResourceQuota in the snapshot"] if is_scaled and lacks_quotas and not rules else [])])


def _losses(check: Check) -> Iterator[str]:
    """What is deleted or scaled down, in words: ``2 objects are deleted with 3 pods``."""
    if deleted := [each for each in check.changes if each.kind is ChangeKind.DELETED]:
        pods = sum(len(each.pods) for each in deleted)
        with_pods = f" with {count(pods, 'pod')}" if pods else ""
        yield f"{count(len(deleted), 'object')} {agree(len(deleted), 'is')} deleted{with_pods}"
    if down := _scaled_down(check):
        before, after = (sum(sizes) for sizes in zip(*down.values(), strict=True))
        yield f"{count(len(down), 'workload')} {agree(len(down), 'is')} scaled down from {before:,} to {after:,}"


def _scaled_down(check: Check) -> dict[str, tuple[int, int]]:
    """The workloads with fewer pods after the change, DaemonSets included, with the numbers before and after."""
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


def _actions(check: Check, losses: Sequence[str]) -> list[str]:
    """What happens to pods: ``12 pods are replaced``; if nothing does, to objects: ``2 objects change``."""
    rolled = new = scaled = others = 0
    fewer = _scaled_down(check)
    # A DaemonSet has as many pods as nodes.
    ready = {each.workload: each.ready_before for each in check.simulation.workloads}
    for each in check.changes:
        if each.kind is ChangeKind.ROLLED:
            rolled += each.replicas or each.replicas_before or ready.get(each.object, 0)
        elif each.kind is ChangeKind.CREATED:
            new, others = new + (each.replicas or 0), others + (each.replicas is None)
        elif each.kind is ChangeKind.SCALED and each.object not in fewer:
            scaled += 1
        elif each.kind is ChangeKind.UPDATED:
            others += 1
    clauses = [f"{count(rolled, 'pod')} {agree(rolled, 'is')} replaced"] if rolled else []
    clauses += [f"{count(new, 'pod')} {agree(new, 'is')} created"] if new else []
    clauses += [f"{count(scaled, 'workload')} {agree(scaled, 'is')} scaled"] if scaled else []
    clauses += losses
    if not clauses:
        clauses = [f"{count(others, 'object')} {agree(others, 'changes')}"] if others else [_NOTHING]
    return clauses


def _short(workload: str) -> str:
    """``shop/api`` for ``Deployment shop/api``."""
    return workload.rpartition(" ")[2] or workload
