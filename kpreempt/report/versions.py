"""The version of kpreempt and those of the schedulers that it models, as text."""

from __future__ import annotations

import msgspec

from kpreempt.report.algorithms import Algorithms
from kpreempt.report.options import RenderOptions


class ModelledScheduler(msgspec.Struct, frozen=True):
    """A scheduler by the name that ``--algorithm`` takes, its project, and the release that it follows."""

    name: str
    project: str
    release: str


class Versions(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of ``kpreempt version``."""

    client_version: str
    python_version: str
    schedulers: list[ModelledScheduler]


def versions_of(client: str, python: str, algorithms: Algorithms) -> Versions:
    """What is known of the versions."""
    schedulers = [ModelledScheduler(each.name, each.project, each.release) for each in algorithms.items]
    return Versions(client, python, schedulers)


def render_versions(answer: Versions, _options: RenderOptions) -> str:
    """A line for kpreempt, and one for each scheduler."""
    schedulers = "".join(f"  {each.name:<12} {each.project} {each.release}\n" for each in answer.schedulers)
    return f"kpreempt {answer.client_version}, Python {answer.python_version}\nModelled schedulers:\n{schedulers}"
