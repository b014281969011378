"""What a rollout does to a cluster, in short: verdict, figures, changes, outcomes, places in files, and the gate.

What differs from a former run is here, too, and where the rules are from and which count for less than by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import quote

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Part, Phrase, Span
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
    GateFinding,
    GateStanding,
    OutcomeShare,
    Since,
)
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.simulation import SimulationEnd

_SHARES_SHOWN = 6
_RULES_NAMED = 3
_STREAMS = frozenset({"-", "standard input"})
# What a shell puts in the place of a file.
_STREAM_FOLDERS = ("/dev/", "/proc/")


def failing(check: Check) -> list[GateFinding]:
    """The findings for which the gate is shut, in their order."""
    return [each for each in check.findings if each.standing is GateStanding.FAILS]


def warning(check: Check) -> list[GateFinding]:
    """The findings of rules that only warn, in their order."""
    return [each for each in check.findings if each.standing is GateStanding.WARNS]


def forgiven(check: Check) -> list[GateFinding]:
    """The findings that are excused, in their order."""
    return [each for each in check.findings if not each.standing.counts]


def files_without_objects(check: Check) -> list[str]:
    """The files of the input that hold no objects, a line for each reason."""
    listed = (each for each in check.assumptions if each.lists_files)
    return [f"{each.subject}: {each.message}" for each in listed]


def verdict_phrase(check: Check) -> Phrase:
    """Whether the gate lets the change through, in a sentence without a full stop."""
    let_by = forgiven(check)
    rest = f"; {count(len(let_by), 'finding')} waived, accepted or not new" if let_by else ""
    warned = list(dict.fromkeys(str(each.rule) for each in warning(check)))
    rest = (f"; {count(len(warned), 'rule')} warned of: {_some(warned)}" if warned else "") + rest
    if check.passed:
        kept = (
            "all rules" if all(each.is_on for each in check.rules) and not check.gate.off else "the rules that are on"
        )
        if not rest:
            return (f"{_what(check)} keeps {kept}",)
        return (f"nothing {'shuts the gate' if isinstance(check, Drain) else 'blocks the change'}{rest}",)
    broken = list(dict.fromkeys(str(each.rule) for each in failing(check)))
    if not broken:
        return (f"{_what(check)} does not pass{rest}",)
    often = how_often(check.failing_runs, check.runs, check.failing_share) if check.failing_runs else ""
    often = f" {often}" if often else ""
    return (f"{count(len(broken), 'rule')} not kept{often}: {_some(broken)}{rest}",)


def _what(check: Check) -> str:
    return "the drain" if isinstance(check, Drain) else "the change"


def _some(rules: Sequence[str]) -> str:
    more = f" and {len(rules) - _RULES_NAMED:,} more" if len(rules) > _RULES_NAMED else ""
    return f"{', '.join(rules[:_RULES_NAMED])}{more}"


def tally(check: Check) -> list[str]:
    """The figures that matter, each with its noun: victims, violations, depth, who waits, how it ends."""
    simulation = check.simulation
    violations = sum(budget.violations for budget in simulation.budgets)
    ran = sum(pod.was_running for pod in simulation.waiting)
    unplaced = sum(not pod.was_running and not pod.waited_before for pod in simulation.waiting)
    with_node = sum(each.with_node for each in simulation.displaced)
    drained = sum(each.drained for each in simulation.displaced)
    evicted = len(simulation.displaced) - with_node - drained
    done, nobody = ("preempted", "nobody preempted") if isinstance(check, Drain) else ("evicted", "no pod evicted")
    figures = [f"{count(drained, 'pod')} drained"] if isinstance(check, Drain) else []
    figures.append(f"{count(evicted, 'pod')} {done}" if evicted else nobody)
    if with_node:
        figures.append(f"{count(with_node, 'pod')} gone with {'its' if with_node == 1 else 'their'} node")
    if lost := sum(each.lost for each in simulation.displaced):
        figures.append(f"{lost:,} of them lost for good" if len(simulation.displaced) > 1 else "lost for good")
    if gone := [each for each in check.changes if each.is_unlisted_deletion and each.pods]:
        figures.append(
            f"{count(len(gone), 'workload')} with {count(sum(len(each.pods) for each in gone), 'pod')} deleted unlisted"
        )
    if refused := sum(each.pods for each in simulation.refused):
        figures.append(f"{count(refused, 'pod')} refused by quota")
    if violations:
        figures.append(count(violations, "budget violation"))
    if simulation.depth > 1:
        figures.append(f"{simulation.depth:,} evictions deep")
    if unplaced:
        figures.append(f"{count(unplaced, 'new pod')} unschedulable")
    if ran:
        figures.append(f"{count(ran, 'pod')} that ran left pending")
    if simulation.stranded:
        figures.append(f"{len(simulation.stranded):,} stranded")
    figures.append(end_text(simulation.end, simulation.seconds))
    return figures


def end_text(end: str, seconds: float) -> str:
    """How it ends, and when: ``settled after 1m30s``."""
    return _ENDS.get(end, end) + (f" after {clock(seconds)}" if seconds else "")


def change_phrase(change: Change) -> Phrase:
    """What becomes of an object: ``rolled (RollingUpdate), 3 → 5 replicas``."""
    if change.kind is ChangeKind.DRAINED:
        return (f"to be drained of {count(change.replicas_before or 0, 'pod')}",)
    strategy: Phrase = (" (", name(change.strategy), ")") if change.strategy else ()
    size = replicas_text(change)
    # A CronJob has no pods of its own, and comes due when it will.
    once = "; one run simulated, as if due now" if change.object.startswith("CronJob ") and change.replicas else ""
    along: Phrase = (" with ", name(change.deleted_with)) if change.deleted_with else ()
    done = "pruned" if change.deleted_by == PRUNED else _KINDS[change.kind]
    return (done, *along, *strategy, f", {size}{once}" if size else "")


def replicas_text(change: Change) -> str:
    """``3 → 5 replicas``, ``5 replicas``; empty where nothing says so."""
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
        parts += [f", {count(pending, 'pod')} left pending (", *_shares(share.pending), ")"]
    if share.depth > 1:
        parts.append(f", {share.depth:,} evictions deep")
    return tuple(parts)


def _shares(numbers: dict[str, int]) -> Phrase:
    rows = sorted(numbers.items(), key=lambda row: (-row[1], row[0]))
    parts: list[Part] = []
    for number, (key, amount) in enumerate(rows[:_SHARES_SHOWN]):
        parts += [", " if number else "", name(key), f" {amount:,}"]
    if len(rows) > _SHARES_SHOWN:
        parts.append(f" and {len(rows) - _SHARES_SHOWN:,} more")
    return tuple(parts)


class Place(NamedTuple):
    """A file, empty where there is none, with a line that is 0 where it is not of that file.

    Of a stream, ``stream`` is its name, ``stream_line`` the line in it, and ``path`` the file that it says it is from.
    """

    path: str = ""
    line: int = 0
    stream: str = ""
    stream_line: int = 0

    @property
    def uri(self) -> str:
        """The path as a reference: relative as it was given, percent-encoded, ``file:`` where it is absolute."""
        # A lone surrogate stands for a byte that is no text.
        encoded = quote(self.path, safe="/", errors="surrogatepass")
        return f"file:///{encoded.lstrip('/')}" if encoded.startswith("/") else encoded

    @property
    def stream_text(self) -> str:
        """``line 34 of standard input``, or nothing for a file."""
        if not self.stream:
            return ""
        return printable(f"line {self.stream_line} of {self.stream}" if self.stream_line else self.stream)

    @property
    def text(self) -> str:
        """``deploy/api.yaml:12``, or ``chart/api.yaml (line 34 of standard input)``; made safe to show."""
        if not self.path:
            return self.stream_text
        shown = printable(self.path)
        if self.stream:
            return f"{shown} ({self.stream_text})"
        return f"{shown}:{self.line}" if self.line else shown


def place_of(record: Change | GateFinding) -> Place:
    """Where the record is written. A file keeps its own lines, even where it says that it was made from another."""
    line = max(record.line, 0)
    if not record.source:
        return Place(_plain_path(record.origin))
    if record.source in _STREAMS or record.source.startswith(_STREAM_FOLDERS):
        return Place(_plain_path(record.origin), 0, record.source, line)
    return Place(_plain_path(record.source), line)


def full_place(record: Change | GateFinding) -> str:
    """Where the record is written, with what it says that it came from: ``chart/api.yaml (out.yaml:12)``."""
    at = f"{record.source}:{record.line}" if record.source and record.line else record.source
    return f"{record.origin} ({at})" if record.origin and at else record.origin or at


def fingerprint_of(finding: GateFinding) -> str:
    """What the finding is known by from run to run; of one that has none, its rule, its subject and its change."""
    return finding.fingerprint or digest(finding.rule, finding.subject, finding.change)


def digest(*parts: str) -> str:
    """A fingerprint that is the same as long as the parts are."""
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def nearest_place(finding: GateFinding, check: Check, stream_name: str) -> Place:
    """The finding's place; where it has none, that of the object that brings it about, or of the first of the change.

    Of a stream that does not say what it is made from, and where nothing has a file, ``stream_name`` stands for it. For
    systems that show nothing, or refuse all, where a finding has no file.
    """
    changes = sorted(check.changes, key=lambda change: change.object != finding.change)
    own = place_of(finding)
    others = [] if own.stream else map(place_of, changes)
    as_file = Place(_plain_path(stream_name), own.stream_line)
    return next((place for place in (own, *others) if place.path), as_file)


def _plain_path(path: str) -> str:
    """A path without the steps that lead nowhere: ``./`` for where one is, and ``a/../``."""
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
    SimulationEnd.BROKEN_OFF: "cut off",
}


WORDS = {DriftKind.NEW: "new", DriftKind.WORSE: "worse", DriftKind.BETTER: "better", DriftKind.GONE: "gone"}


def since_phrase(since: Since, check: Check) -> Phrase:
    """``2 new, 1 worse, 1 gone since the run of 2026-11-20T12:00:00Z, which failed``."""
    numbers = {kind: sum(each.kind is kind for each in since.drifts) for kind in WORDS}
    told = ", ".join(f"{number:,} {WORDS[kind]}" for kind, number in numbers.items() if number)
    of: Phrase = (" of ", Span(since.at)) if since.at else ()
    is_same = since.algorithm in ("", check.algorithm)
    by: Phrase = () if is_same else (" by ", Span(since.algorithm))
    ended = {True: ", which passed", False: ", which failed", None: ""}[since.passed]
    part = "" if since.is_whole else "; its document does not say all of it"
    return (f"{told or 'nothing differs'} since the run", *of, *by, f"{ended}{part}")


def drift_phrase(drift: Drift) -> Phrase:
    """What differs: ``max-victims of Deployment shop/api: 2 → 3``, ``pods evicted: 3 → 1``."""
    if not drift.rule:
        return (f"{drift.what}: {drift.before:,} → {drift.after:,}",)
    about: Phrase = (Span(drift.rule), " of ", name(drift.subject))
    if drift.kind in (DriftKind.NEW, DriftKind.GONE):
        return about
    return (*about, f": {drift.before:,} → {drift.after:,}")


_SHOWN = 8
_OBJECTS_SHOWN = 20


def gate_phrases(check: Check) -> list[Phrase]:
    """``rules of HEAD^1:kpreempt.toml``, ``off: max-stranded``: what there is to say, each without a full stop."""
    gate = check.gate
    found: list[Phrase] = []
    if gate.config:
        found.append(("rules of ", name(gate.config)))
    if gate.baseline:
        found.append(("accepted by ", name(gate.baseline)))
    rows: Sequence[tuple[str, list[str]]] = (
        ("off", gate.off),
        ("warn only", gate.warn_only),
        ("waived", gate.waived),
        ("higher limit", gate.raised),
    )
    found += [(f"{label}: ", *names(those, limit=_SHOWN)) for label, those in rows if those]
    if objects := check.only_in_base:
        number = len(objects)
        rest = f"{agree(number, 'is')} only in the base: kubectl apply leaves {'it' if number == 1 else 'them'}"
        found.append((f"{count(number, 'object')} {rest} in the cluster: ", *names(objects, limit=_OBJECTS_SHOWN)))
    return found


def is_qualified(check: Check) -> bool:
    """Whether a rule counts for less than by default, or objects that only the base has are not deleted."""
    gate = check.gate
    return bool(gate.off or gate.warn_only or gate.waived or gate.raised or check.only_in_base)
