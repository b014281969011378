"""Words for sessions of Volcano: amounts in its units, runs of tasks, and its reasons without what the reader knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kpreempt.report.amounts import format_amount
from kpreempt.report.evidence import join_names
from kpreempt.verdict.volcano import Amounts

# A run of this many numbered tasks is told by its ends.
_SHORTEST_RUN = 3
_PARTS_NAMED = 4
_NUMBERED = re.compile(r"(?P<stem>.*\D)(?P<number>0|[1-9]\d{0,8})", re.DOTALL)
_THOUSANDTHS = 1000
_PREDICATES = re.compile(
    r"(?:preempt |reclaim )?predicates failed (?:in \w+ )?for task <[^>]*> on node <[^>]*>(?P<rest>.*)", re.DOTALL
)
_STATUS = re.compile(r", status is not success(?: or unschedulable)?")
_SUBTRACTION = re.compile(r"<(?P<have>[^>]*)> sub <(?P<take>[^>]*)>")
_QUANTITY = re.compile(r"(?P<name>\S+) (?P<amount>-?\d+(?:\.\d+)?)")


def volcano_amount(resource: str, amount: float) -> str:
    """An amount as a quantity; CPU is in thousandths and memory in bytes, all others in thousandths; -1 is no limit."""
    if amount == -1:
        return "no limit"
    if resource in ("cpu", "memory"):
        nearest = round(amount)
        shown = format_amount(resource, nearest)
        return shown if nearest == amount or shown.startswith("~") else f"~{shown}"
    whole, rest = divmod(amount, _THOUSANDTHS)
    return format_amount(resource, int(whole)) if not rest else f"{amount / _THOUSANDTHS:,.3f}".rstrip("0")


def amounts_in_words(amounts: Amounts) -> str:
    """``cpu 2, memory 1Gi``; what is 0 is left out."""
    parts = [f"{name} {volcano_amount(name, amount)}" for name, amount in amounts.items() if amount]
    return ", ".join(parts) or "nothing"


def change(before: str, after: str) -> str:
    """``2 → 4``, or once where they are the same."""
    return after if before == after else f"{before} → {after}"


def tasks_in_words(tasks: Iterable[str], *, home: str = "", limit: int | None = _PARTS_NAMED) -> str:
    """Tasks by name, runs of numbered ones by their ends: ``ml/train-0 … train-7 (8)``.

    The namespace of the job ``home`` goes without saying; ``limit`` is how many names and runs there are to be.
    """
    prefix = f"{home.partition('/')[0]}/" if home else ""
    runs = _runs(tasks)
    shown = []
    for first, *others in runs if limit is None else runs[:limit]:
        ends = f" … {others[-1].rpartition('/')[2]} ({len(others) + 1:,})" if others else ""
        shown.append(f"{first.removeprefix(prefix)}{ends}")
    if rest := sum(map(len, runs[len(shown) :])):
        return f"{', '.join(shown)} and {rest:,} more"
    return join_names(shown, limit=max(len(shown), 1))


def _runs(tasks: Iterable[str]) -> list[list[str]]:
    """The tasks, with those of one name and following numbers together; in the order of the first of each name."""
    stems: dict[str, dict[int, str]] = {}
    for task in dict.fromkeys(tasks):
        match = _NUMBERED.fullmatch(task)
        stem, number = (match["stem"], int(match["number"])) if match else (f"{task}\0", 0)
        stems.setdefault(stem, {})[number] = task
    runs: list[list[str]] = []
    for numbered in stems.values():
        gathered: list[list[int]] = []
        for number in sorted(numbered):
            if gathered and number == gathered[-1][-1] + 1:
                gathered[-1].append(number)
            else:
                gathered.append([number])
        for run in gathered:
            names = [numbered[number] for number in run]
            runs += [names] if len(names) >= _SHORTEST_RUN else [[name] for name in names]
    return runs


def refusal_in_words(reason: str) -> str:
    """Why a node was refused, without the names of task and node that stand beside it."""
    match = _PREDICATES.fullmatch(reason)
    if match is None:
        return reason
    return match["rest"].removeprefix(": ") if not _STATUS.fullmatch(match["rest"]) else "its predicates failed"


def by_text(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The keys by their text, the commonest text first."""
    groups: dict[str, list[str]] = {}
    for key, text in texts.items():
        groups.setdefault(text, []).append(key)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def subtraction_in_words(message: str) -> str:
    """What a panic says of a subtraction: ``cpu 6 from cpu 4``; empty where it is about something else."""
    match = _SUBTRACTION.search(message)
    if match is None:
        return ""
    have, take = (
        {found["name"]: float(found["amount"]) for found in _QUANTITY.finditer(match[side])}
        for side in ("have", "take")
    )
    parts = []
    for name, amount in take.items():
        left = have.get(name, 0.0)
        if amount > left:
            sign = "-" if left < 0 else ""
            parts.append(f"{name} {volcano_amount(name, amount)} from {name} {sign}{volcano_amount(name, abs(left))}")
    return ", ".join(parts)


def masked(text: str, name: str) -> str:
    """A message without the name of whom it is about, so that equal ones read as one."""
    return text.replace(name, "…") if name else text
