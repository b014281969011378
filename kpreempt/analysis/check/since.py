"""What is worse, better or new since a former answer, of which the document may be of another version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from kpreempt.errors import InputError
from kpreempt.verdict import API_VERSION
from kpreempt.verdict.check import Check, Drift, DriftKind, GateFinding, GateStanding, Since

_KIND = "Check"
_GROUP = API_VERSION.partition("/")[0]


class _FormerFinding(msgspec.Struct, frozen=True, rename="camel"):
    rule: str = ""
    subject: str = ""
    standing: str = GateStanding.FAILS
    amount: int = 0
    change: str = ""
    fingerprint: str = ""


class _FormerPlay(msgspec.Struct, frozen=True, rename="camel"):
    """Lists of which only the numbers and a flag are read; ``None`` where the document has none."""

    displaced: list[Any] | None = None
    waiting: list[dict[str, Any]] | None = None
    budgets: list[dict[str, Any]] | None = None
    stranded: list[Any] | None = None
    depth: int | None = None


class FormerCheck(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a former answer. What it lacks is not compared, and what it has besides is not looked at."""

    api_version: str = ""
    kind: str = ""
    passed: bool | None = None
    summary: str = ""
    algorithm: str = ""
    at: str | None = None
    findings: list[_FormerFinding] | None = None
    play: _FormerPlay = _FormerPlay()


def read_former(content: bytes, source: str) -> FormerCheck:
    """The answer in a file that ``check -o json`` wrote, of this version or another. Raises ``InputError``."""
    try:
        found = msgspec.json.decode(content, type=FormerCheck)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise InputError(f"{problem[:1].lower()}{problem[1:]}", source=source, path=path.strip("`.")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not JSON: {str(error).removeprefix('JSON is malformed: ')}", source=source) from None
    if found.kind != _KIND or found.api_version.partition("/")[0] != _GROUP:
        what = f"{found.api_version} {found.kind}".strip() or "nothing that it says"
        raise InputError(f"is no answer of check: {what}", source=source, hint="kpreempt check -o json=FILE")
    return found


def since(former: FormerCheck, check: Check) -> Since:
    """What differs: the figures of the worst simulations, and the findings that count; those that are worse first."""
    drifts = [*_figures(former.play, check), *_findings(former.findings, check)]
    order = list(DriftKind)
    drifts.sort(key=lambda each: order.index(each.kind))
    is_whole = former.findings is not None and None not in msgspec.structs.astuple(former.play)
    return Since(
        passed=former.passed,
        summary=former.summary,
        algorithm=former.algorithm,
        at=former.at or "",
        drifts=drifts,
        is_whole=is_whole,
    )


def _figures(former: _FormerPlay, check: Check) -> Iterator[Drift]:
    simulation = check.simulation
    numbers: dict[str, tuple[int | None, int]] = {
        "pods evicted": (_sum(former.displaced, lambda _: 1), len(simulation.displaced)),
        "budget violations": (
            _sum(former.budgets, lambda each: each.get("violations", 0)),
            sum(each.violations for each in simulation.budgets),
        ),
        "evictions in a chain": (former.depth, simulation.depth),
        "pods that ran left pending": (
            _sum(former.waiting, lambda each: each.get("wasRunning") is True),
            sum(each.was_running for each in simulation.waiting),
        ),
        "new pods pending": (
            _sum(former.waiting, lambda each: not (each.get("wasRunning") or each.get("waitedBefore"))),
            sum(not (each.was_running or each.waited_before) for each in simulation.waiting),
        ),
        "stranded": (_sum(former.stranded, lambda _: 1), len(simulation.stranded)),
    }
    for what, (before, after) in numbers.items():
        if before is not None and before != after:
            yield Drift(kind=_towards(before, after), what=what, before=before, after=after)


def _sum(items: list[dict[str, Any]] | None, of: Callable[[dict[str, Any]], Any]) -> int | None:
    if items is None:
        return None
    numbers = [of(each) for each in items]
    return sum(numbers) if all(isinstance(each, int) for each in numbers) else None


def _towards(before: int, after: int) -> DriftKind:
    return DriftKind.WORSE if after > before else DriftKind.BETTER


def _findings(former: Iterable[_FormerFinding] | None, check: Check) -> Iterator[Drift]:
    if former is None:
        return
    had = {_key(each): each for each in former if each.standing in (GateStanding.FAILS, GateStanding.WARNS)}
    have = {_key(each): each for each in check.findings if each.standing.counts}
    for key, each in have.items():
        before = had.get(key)
        if before is None:
            yield Drift(kind=DriftKind.NEW, rule=each.rule, subject=each.subject, after=each.amount)
        elif before.amount != each.amount:
            kind = _towards(before.amount, each.amount)
            yield Drift(kind=kind, rule=each.rule, subject=each.subject, before=before.amount, after=each.amount)
    for key, gone in had.items():
        if key not in have:
            yield Drift(kind=DriftKind.GONE, rule=gone.rule, subject=gone.subject, before=gone.amount)


def _key(finding: _FormerFinding | GateFinding) -> tuple[str, ...]:
    """What a finding is known by; without a fingerprint its rule, its subject and its change."""
    return (finding.fingerprint,) if finding.fingerprint else (str(finding.rule), finding.subject, finding.change)
