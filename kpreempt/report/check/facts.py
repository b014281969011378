"""What a rollout does to a cluster, in short: verdict, figures, changes, outcomes, places in files, and the gate.

Also the differences from a previous run, the source of the rules, and the rules that are relaxed.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import quote

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Part, Phrase, Span
from kpreempt.report.check.effects import effect_of
from kpreempt.report.check.words import how_often
from kpreempt.report.escape import printable
from kpreempt.report.quoting import name, names
from kpreempt.report.simulation_words import clock
from kpreempt.verdict.check import (
    PRUNED,
    Change,
    ChangeKind,
    Check,
    Drift,
    DriftKind,
    FindingStatus,
    GateFinding,
    OutcomeShare,
    PreviousRun,
)
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.headroom import without_headroom
from kpreempt.verdict.simulation import SimulationEnd

_SHARES_SHOWN = 6
_RULES_LISTED = 3
_STREAMS = frozenset({"-", "standard input"})
# The folders of the files that a shell substitutes for a stream.
_STREAM_FOLDERS = ("/dev/", "/proc/")


def failing(check: Check) -> list[GateFinding]:
    """The findings that fail the gate, in order."""
    return [each for each in check.findings if each.status is FindingStatus.FAILS]


def warning(check: Check) -> list[GateFinding]:
    """The findings that only warn, in order."""
    return [each for each in check.findings if each.status is FindingStatus.WARNS]


def forgiven(check: Check) -> list[GateFinding]:
    """The findings that are waived, accepted or not new, in order."""
    return [each for each in check.findings if not each.status.counts]


def files_without_objects(check: Check) -> list[str]:
    """The input files without objects, with a line per reason."""
    listed = (each for each in check.assumptions if each.lists_files)
    return [f"{each.subject}: {each.message}" for each in listed]


def verdict_phrase(check: Check) -> Phrase:
    """Whether the change passes, as a sentence without a period."""
    suppressed = forgiven(check)
    rest = f"; {count(len(suppressed), 'finding')} waived, accepted or not new" if suppressed else ""
    warnings = warning(check)
    warned = list(dict.fromkeys(str(each.rule) for each in warnings))
    rest = (f"; {count(len(warnings), 'warning')}: {_some(warned)}" if warnings else "") + rest
    if check.passed:
        is_strict = all(each.is_on for each in check.rules) and not check.gate.off
        if not rest:
            return ("All rules pass" if is_strict else "All enabled rules pass",)
        return (f"No violations{rest}",)
    broken = list(dict.fromkeys(str(each.rule) for each in failing(check)))
    if not broken:
        return (f"The {_what(check)} does not pass{rest}",)
    often = how_often(check.failing_runs, check.runs, check.failing_share) if check.failing_runs else ""
    often = f" {often}" if often else ""
    return (f"{count(len(broken), 'rule')} violated{often}: {_some(broken)}{rest}",)


def _what(check: Check) -> str:
    return "drain" if isinstance(check, Drain) else "change"


def _some(rules: Sequence[str]) -> str:
    more = f" and {len(rules) - _RULES_LISTED:,} more" if len(rules) > _RULES_LISTED else ""
    return f"{', '.join(rules[:_RULES_LISTED])}{more}"


def tally(check: Check) -> list[str]:
    """The figures that matter, each with its noun: victims, violations, depth, pending pods, and how it ends."""
    simulation = check.simulation
    refused = sum(each.pods for each in simulation.rejected)
    of_quotas = [f"{count(refused, 'pod')} rejected by quota"] if refused else []
    if simulation.end is SimulationEnd.NOT_SIMULATED:
        return [*of_quotas, end_text(simulation.end, 0)]
    violations = sum(budget.violations for budget in simulation.budgets)
    ran = sum(pod.was_running for pod in simulation.pending)
    unplaced = sum(not pod.was_running and not pod.pending_before for pod in simulation.pending)
    with_node = sum(each.with_node for each in simulation.displaced)
    drained = sum(each.drained for each in simulation.displaced)
    evicted = len(simulation.displaced) - with_node - drained
    done, none = ("preempted", "no pod preempted") if isinstance(check, Drain) else ("evicted", "no pod evicted")
    figures = [f"{count(drained, 'pod')} drained"] if isinstance(check, Drain) else []
    figures.append(f"{count(evicted, 'pod')} {done}{_anyway(check)}" if evicted else none)
    if used := sum(each.evicted for each in check.headroom):
        figures.append(count(used, "placeholder") + " used")
    if with_node:
        figures.append(f"{count(with_node, 'pod')} lost with {'its' if with_node == 1 else 'their'} node")
    if lost := sum(each.lost for each in simulation.displaced):
        figures.append(f"{lost:,} of them never recreated" if len(simulation.displaced) > 1 else "never recreated")
    if deleted := [each for each in check.changes if each.is_unlisted_deletion and each.pods]:
        pods = count(sum(len(each.pods) for each in deleted), "pod")
        figures.append(f"{count(len(deleted), 'workload')} with {pods} deleted (unlisted)")
    figures += of_quotas
    if violations:
        figures.append(count(violations, "budget violation"))
    if simulation.depth > 1:
        figures.append(f"cascade depth {simulation.depth:,}")
    if unplaced:
        figures.append(f"{count(unplaced, 'new pod')} unschedulable")
    if ran:
        figures.append(f"{count(ran, 'previously running pod')} pending")
    if simulation.broken_dependencies:
        figures.append(count(len(simulation.broken_dependencies), "broken dependency"))
    figures.append(end_text(simulation.end, simulation.seconds))
    return figures


def _anyway(check: Check) -> str:
    """How many of the victims are also evicted without the change."""
    if check.without_change is None:
        return ""
    counted = without_headroom(check.simulation, {each.workload for each in check.headroom})
    evicted, own = (
        sum(not (each.drained or each.with_node) for each in simulation.displaced)
        for simulation in (counted, effect_of(check))
    )
    some = "all" if not own else f"{evicted - own:,} of them"
    return f" ({some} without the {_what(check)} as well)" if evicted > own else ""


def end_text(end: str, seconds: float) -> str:
    """How the simulation ends, and when: ``settled after 1m30s``."""
    has_ended = seconds and end != SimulationEnd.LOOP
    return _ENDS.get(end, end) + (f" after {clock(seconds)}" if has_ended else "")


def change_phrase(change: Change) -> Phrase:
    """The change to an object: ``rolled (RollingUpdate), 3 → 5 replicas``."""
    if change.kind is ChangeKind.DRAINED:
        return (f"drained, {count(change.replicas_before or 0, 'pod')}",)
    strategy: Phrase = (" (", name(change.strategy), ")") if change.strategy else ()
    size = replicas_text(change)
    # A CronJob has no pods itself, and it is unknown when it is due.
    once = "; simulated as one run due now" if change.object.startswith("CronJob ") and change.replicas else ""
    owner: Phrase = (" with ", name(change.deleted_with)) if change.deleted_with else ()
    done = "pruned" if change.deleted_by == PRUNED else _KINDS[change.kind]
    return (done, *owner, *strategy, f", {size}{once}" if size else "")


def replicas_text(change: Change) -> str:
    """``3 → 5 replicas``, ``5 replicas``; empty if unknown."""
    before, after = change.replicas_before, change.replicas
    if change.kind is ChangeKind.DELETED:
        return "" if before is None else count(before, "replica")
    if after is None:
        return "" if before is None else f"{before:,} → ? replicas"
    if before is None or before == after:
        return count(after, "replica")
    return f"{before:,} → {count(after, 'replica')}"


def outcome_phrase(share: OutcomeShare, runs: int) -> Phrase:
    """``in 37 of 50 runs (seed 3): settled; 2 victims of Deployment a; …``."""
    victims, violations, pending = (sum(each.values()) for each in (share.victims, share.violations, share.pending))
    parts: list[Part] = [f"in {share.count:,} of {count(runs, 'run')} (first with seed {share.seed}): "]
    parts.append(end_text(share.end, 0))
    parts.append(f", {count(victims, 'pod')} evicted" if victims else ", no pod evicted")
    if share.victims:
        parts += [" (", *_shares(share.victims), ")"]
    if violations:
        parts += [f", {count(violations, 'budget violation')} (", *_shares(share.violations), ")"]
    if pending:
        parts += [f", {count(pending, 'pod')} pending (", *_shares(share.pending), ")"]
    if share.depth > 1:
        parts.append(f", cascade depth {share.depth:,}")
    return tuple(parts)


def _shares(numbers: dict[str, int]) -> Phrase:
    rows = sorted(numbers.items(), key=lambda row: (-row[1], row[0]))
    parts: list[Part] = []
    for number, (key, amount) in enumerate(rows[:_SHARES_SHOWN]):
        parts += [", " if number else "", name(key), f" {amount:,}"]
    if len(rows) > _SHARES_SHOWN:
        parts.append(f" and {len(rows) - _SHARES_SHOWN:,} more")
    return tuple(parts)


class SourceLocation(NamedTuple):
    """A file and a line; the file is empty if there is none, and the line is 0 if it is not a line of that file.

    If the input is a stream, ``stream`` and ``stream_line`` locate it there, and ``path`` is the file it claims as
    its origin.
    """

    path: str = ""
    line: int = 0
    stream: str = ""
    stream_line: int = 0

    @property
    def uri(self) -> str:
        """The path as a percent-encoded reference, relative as given, or a ``file:`` URL if absolute."""
        # A lone surrogate stands for a byte that cannot be decoded.
        encoded = quote(self.path, safe="/", errors="surrogatepass")
        return f"file:///{encoded.lstrip('/')}" if encoded.startswith("/") else encoded

    @property
    def stream_text(self) -> str:
        """``line 34 of standard input``, or empty for a file."""
        if not self.stream:
            return ""
        return printable(f"line {self.stream_line} of {self.stream}" if self.stream_line else self.stream)

    @property
    def text(self) -> str:
        """``deploy/api.yaml:12``, or ``chart/api.yaml (line 34 of standard input)``, escaped."""
        if not self.path:
            return self.stream_text
        shown = printable(self.path)
        if self.stream:
            return f"{shown} ({self.stream_text})"
        return f"{shown}:{self.line}" if self.line else shown


def location_of(record: Change | GateFinding) -> SourceLocation:
    """The place of the record. A file keeps its own lines, even if it says that it was generated from another."""
    line = max(record.line, 0)
    if not record.source:
        return SourceLocation(_plain_path(record.origin))
    if record.source in _STREAMS or record.source.startswith(_STREAM_FOLDERS):
        return SourceLocation(_plain_path(record.origin), 0, record.source, line)
    return SourceLocation(_plain_path(record.source), line)


def full_location(record: Change | GateFinding) -> str:
    """The place of the record, and the origin it claims: ``chart/api.yaml (out.yaml:12)``."""
    at = f"{record.source}:{record.line}" if record.source and record.line else record.source
    return f"{record.origin} ({at})" if record.origin and at else record.origin or at


def fingerprint_of(finding: GateFinding) -> str:
    """The finding's fingerprint, or one computed from its rule, subject and change."""
    return finding.fingerprint or digest(finding.rule, finding.subject, finding.change)


def digest(*parts: str) -> str:
    """A fingerprint of the parts."""
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def nearest_location(finding: GateFinding, check: Check, stream_name: str) -> SourceLocation:
    """The finding's place, or that of the object that causes it, or of the first object of the change.

    ``stream_name`` stands for streams that do not name their origin, and if nothing has a file. For systems that hide
    a finding without a file, or reject the whole report.
    """
    changes = sorted(check.changes, key=lambda change: change.object != finding.change)
    place = location_of(finding)
    others = [] if place.stream else map(location_of, changes)
    as_file = SourceLocation(_plain_path(stream_name), place.stream_line)
    return next((each for each in (place, *others) if each.path), as_file)


def _plain_path(path: str) -> str:
    """The path without ``./`` and ``a/../``."""
    return normpath(path) if path else ""


_KINDS = {
    ChangeKind.CREATED: "created",
    ChangeKind.ROLLED: "rolled",
    ChangeKind.SCALED: "scaled",
    ChangeKind.UPDATED: "updated",
    ChangeKind.DELETED: "deleted",
    ChangeKind.UNCHANGED: "unchanged",
    ChangeKind.DRAINED: "drained",
    ChangeKind.REJECTED: "rejected",
}
_ENDS: dict[str, str] = {
    SimulationEnd.SETTLED: "settled",
    SimulationEnd.LOOP: "never settles",
    SimulationEnd.ABORTED: "stopped",
    SimulationEnd.NOT_SIMULATED: "not simulated",
}


WORDS = {DriftKind.NEW: "new", DriftKind.WORSE: "worse", DriftKind.BETTER: "better", DriftKind.FIXED: "fixed"}


def since_phrase(since: PreviousRun, check: Check) -> Phrase:
    """``2 new, 1 worse, 1 fixed since the run of 2026-11-20T12:00:00Z, which failed``."""
    numbers = {kind: sum(each.kind is kind for each in since.drifts) for kind in WORDS}
    changes = ", ".join(f"{number:,} {WORDS[kind]}" for kind, number in numbers.items() if number)
    of: Phrase = (" of ", Span(since.at)) if since.at else ()
    is_same = since.algorithm in ("", check.algorithm)
    by: Phrase = () if is_same else (" by ", Span(since.algorithm))
    ended = {True: ", which passed", False: ", which failed", None: ""}[since.passed]
    part = "" if since.is_complete else "; its document is incomplete"
    return (f"{changes or 'no difference'} since the run", *of, *by, f"{ended}{part}")


def drift_phrase(drift: Drift) -> Phrase:
    """A difference: ``max-victims of Deployment shop/api: 2 → 3``, ``pods evicted: 3 → 1``."""
    if not drift.rule:
        return (f"{drift.metric}: {drift.before:,} → {drift.after:,}",)
    about: Phrase = (Span(drift.rule), " of ", name(drift.subject))
    if drift.kind in (DriftKind.NEW, DriftKind.FIXED):
        return about
    return (*about, f": {drift.before:,} → {drift.after:,}")


_SHOWN = 8
_OBJECTS_SHOWN = 20


def gate_phrases(check: Check) -> list[Phrase]:
    """``rules of HEAD^1:kpreempt.toml``, ``off: max-broken-dependencies``: facts about the gate, without periods."""
    gate = check.gate
    phrases: list[Phrase] = []
    if gate.config:
        phrases.append(("rules from ", name(gate.config)))
    if gate.baseline:
        phrases.append(("accepted by ", name(gate.baseline)))
    rows: Sequence[tuple[str, list[str]]] = (
        ("off", gate.off),
        ("warn only", gate.warn_only),
        ("waived", gate.waived),
        ("higher limit", gate.raised),
        ("expendable", gate.expendable),
    )
    phrases += [(f"{label}: ", *names(those, limit=_SHOWN)) for label, those in rows if those]
    if objects := check.only_in_base:
        number = len(objects)
        rest = f"{agree(number, 'is')} only in the base: kubectl apply leaves {'it' if number == 1 else 'them'}"
        phrases.append((f"{count(number, 'object')} {rest} in the cluster: ", *names(objects, limit=_OBJECTS_SHOWN)))
    return phrases


def is_qualified(check: Check) -> bool:
    """Whether a rule is relaxed, or objects that only exist in the base are not deleted."""
    gate = check.gate
    return bool(gate.off or gate.warn_only or gate.waived or gate.raised or gate.expendable or check.only_in_base)
