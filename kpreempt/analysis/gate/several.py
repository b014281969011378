"""What the rules say of several plays of one change, of which any may come about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kpreempt.verdict.check import GateFinding, GateStanding, RuleResult


class Judged(msgspec.Struct, frozen=True):
    """The rules as they fare in one play, what breaks them, and how likely the play is beside the others."""

    results: Sequence[RuleResult]
    findings: Sequence[GateFinding]
    likelihood: float = 1.0


def together(plays: Sequence[Judged], shown: int) -> tuple[list[RuleResult], list[GateFinding]]:
    """The rules over all plays, and what breaks one in any of them, each with in how many plays it does.

    Of what several plays have in common the worst counts: that of the play ``shown`` where others are no worse.
    """
    if len(plays) == 1:
        return list(plays[0].results), list(plays[0].findings)
    found: dict[str, list[tuple[int, GateFinding]]] = {}
    # The play that is shown comes first, so that it wins where nothing is worse.
    for index in (shown, *(each for each in range(len(plays)) if each != shown)):
        for finding in plays[index].findings:
            found.setdefault(finding.fingerprint, []).append((index, finding))
    whole = sum(play.likelihood for play in plays)
    findings = [_worst(own, plays, whole) for own in found.values()]
    order = [result.rule for result in plays[shown].results]
    findings.sort(key=lambda each: (order.index(each.rule), each.subject, each.change, each.fingerprint))
    return [_over_all(index, plays, findings) for index in range(len(order))], findings


def least(plays: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """What there is in every play, the least amount of each: what only may be there excuses nothing."""
    found: dict[str, int] | None = None
    for play in plays:
        if found is None:
            found = dict(play)
        found = {key: min(amount, play[key]) for key, amount in found.items() if key in play}
    return found or {}


def _worst(own: Sequence[tuple[int, GateFinding]], plays: Sequence[Judged], whole: float) -> GateFinding:
    _, worst = max(own, key=lambda each: (each[1].standing is GateStanding.FAILS, each[1].amount))
    alike = {index for index, finding in own if finding.standing is worst.standing}
    share = sum(plays[index].likelihood for index in alike) / whole
    return msgspec.structs.replace(worst, in_runs=len(alike), of_runs=len(plays), share=share)


def _over_all(index: int, plays: Sequence[Judged], findings: Sequence[GateFinding]) -> RuleResult:
    first = plays[0].results[index]
    own = [each.standing for each in findings if each.rule is first.rule]
    return msgspec.structs.replace(
        first,
        amount=max(play.results[index].amount for play in plays),
        failures=own.count(GateStanding.FAILS),
        waived=own.count(GateStanding.WAIVED),
        accepted=own.count(GateStanding.ACCEPTED),
        not_new=own.count(GateStanding.NOT_NEW),
    )
