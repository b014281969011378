"""The supported schedulers and how each differs from the others, in words.

Also the versions of kpreempt and of the schedulers that it models.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.report.amounts import count
from kpreempt.report.options import RenderOptions
from kpreempt.scheduler_table import DEFAULT_ALGORITHM, KUBE_ROW, LEGACY_ROWS, OTHER_ROWS, PREFIX, RELEASES, row_of

_INDENT = "  - "
_OLDEST = f"Like {DEFAULT_ALGORITHM}, without later changes; each version below lists what it decides differently."


class Algorithms(msgspec.Struct, frozen=True, rename="camel"):
    """The supported schedulers."""

    items: list[Algorithm]


class Algorithm(msgspec.Struct, frozen=True, rename="camel"):
    """A scheduler by its ``--algorithm`` name, the release it follows, and its differences."""

    name: str
    release: str
    differences: list[str]
    project: str = "Kubernetes"


def algorithms_with(news: Mapping[str, tuple[Sequence[str], int]]) -> Algorithms:
    """All schedulers. ``news`` has, by minor version, the changes that alter decisions and the number of others."""
    items = list(map(_item, LEGACY_ROWS))
    for number, (minor, release) in enumerate(RELEASES.items()):
        name = f"{PREFIX}{minor}"
        special = KUBE_ROW.differences if name == DEFAULT_ALGORITHM else ()
        items.append(Algorithm(name, f"v{release}", [*special, *(_new(*news[minor]) if number else [_OLDEST])]))
    return Algorithms([*items, *map(_item, OTHER_ROWS)])


def _item(name: str) -> Algorithm:
    row = row_of(name)
    return Algorithm(name, row.release, list(row.differences), row.project)


def _new(changes: Sequence[str], others: int) -> list[str]:
    """The changes in a version; those that alter no decision are in ``docs/versions.md``."""
    rest = f"{count(others, 'change')} to messages, the queue, configuration and so on: see docs/versions.md."
    return [*(changes or ["No modeled decision changes."]), *([rest] if others else [])]


def render_algorithms(algorithms: Algorithms, options: RenderOptions) -> str:
    """All schedulers, in words."""
    return "\n".join(_text(each, options.width) for each in algorithms.items)


def _text(algorithm: Algorithm, width: int) -> str:
    lines = [f"{algorithm.name} ({algorithm.project} {algorithm.release})"]
    for difference in algorithm.differences:
        lines += textwrap.wrap(difference, width, initial_indent=_INDENT, subsequent_indent=" " * len(_INDENT))
    return "".join(f"{line}\n" for line in lines)


class ModeledScheduler(msgspec.Struct, frozen=True):
    """A scheduler by its ``--algorithm`` name, its project, and the release it follows."""

    name: str
    project: str
    release: str


class Versions(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of ``kpreempt version``."""

    client_version: str
    python_version: str
    schedulers: list[ModeledScheduler]


def versions_of(client: str, python: str, algorithms: Algorithms) -> Versions:
    """The versions of kpreempt, Python and the modeled schedulers."""
    schedulers = [ModeledScheduler(each.name, each.project, each.release) for each in algorithms.items]
    return Versions(client, python, schedulers)


def render_versions(answer: Versions, _options: RenderOptions) -> str:
    """A line for kpreempt, and one per scheduler."""
    schedulers = "".join(f"  {each.name:<12} {each.project} {each.release}\n" for each in answer.schedulers)
    return f"kpreempt {answer.client_version}, Python {answer.python_version}\nModeled schedulers:\n{schedulers}"
