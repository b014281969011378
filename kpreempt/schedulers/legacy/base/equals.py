"""Which victims of a dry run had equals that stay, and so might have stayed themselves.

An old scheduler, too, puts equals back in the order of its cache (``NodeInfo.Pods``), which nothing shows from outside.
"""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.legacy.base.node_info import PodInfo
from kpreempt.schedulers.legacy.base.victims import Importance, Victims
from kpreempt.verdict import PodChoice


class Parted(NamedTuple):
    """The victims without equals that stay, and how many of each group of equals go.

    It ``is_exact`` where equals differ in nothing that a check or a budget looks at, so that others would go likewise.
    """

    victims: list[str]
    choices: list[PodChoice]
    is_exact: bool


def part_equals(victims: Victims, is_more_important: Importance, budgets: SelectingBudgets) -> Parted:
    """Tell victims whose equals stay from the others."""
    groups: list[list[tuple[PodInfo, bool]]] = []
    gone = {info.key for info in victims.pods}
    for info in victims.tried:
        group = next((each for each in groups if _are_equal(each[0][0], info, is_more_important)), None)
        if group is None:
            groups.append([(info, info.key in gone)])
        else:
            group.append((info, info.key in gone))
    certain: list[str] = []
    choices: list[PodChoice] = []
    is_exact = True
    for group in groups:
        going = [info.key for info, goes in group if goes]
        if len(going) in (0, len(group)):
            certain += going
            continue
        choices.append(PodChoice(len(going), [info.key for info, _ in group]))
        is_exact &= all(_is_alike(group[0][0], info, budgets) for info, _ in group)
    return Parted(certain, choices, is_exact)


def _are_equal(one: PodInfo, other: PodInfo, is_more_important: Importance) -> bool:
    return is_more_important(one, other) == is_more_important(other, one)


def _is_alike(one: PodInfo, other: PodInfo, budgets: SelectingBudgets) -> bool:
    mine, its = one.pod, other.pod
    return (
        mine.metadata.namespace == its.metadata.namespace
        and mine.metadata.labels == its.metadata.labels
        and mine.spec == its.spec
        and budgets.selecting(one.pod) == budgets.selecting(other.pod)
    )
