"""The schedulers of two versions under the same settings, and those in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpreempt.analysis.compare.causes import Versions
from kpreempt.errors import UsageError
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.history import ToldChange, changes_between, partly
from kpreempt.schedulers.kube.versions import PREFIX, RELEASES, number_of, version_of

if TYPE_CHECKING:
    from kpreempt.schedulers.extender_protocol import Connect
    from kpreempt.schedulers.kube.configuration import FoundPlugin
    from kpreempt.schedulers.kube.scheduler import KubeScheduler

_OPTION = "--upgrade-to"


def parse_version(text: str) -> str:
    """The version in ``1.35``, ``v1.35.4`` or ``kube-1.35``. Raises ``UsageError`` for one that is not modelled."""
    version = version_of(f"{PREFIX}{text.strip().removeprefix(PREFIX).removeprefix('v')}")
    if version is None:
        raise UsageError(f"{_OPTION}: there is no version {text!r} here", hint=", ".join(RELEASES))
    return version


def versions_between(
    base: str,
    target: str,
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    plugins: Sequence[FoundPlugin] = (),
    connect: Connect | None = None,
) -> Versions:
    """The version of the algorithm ``base`` and the version ``target``, with what changed between them.

    Raises ``UsageError`` where the target is not the newer one, or has no such gate, and ``ConfigurationError`` where
    one of them refuses the configuration.
    """
    algorithm, base = base, version_of(base) or ""
    if not base:
        raise UsageError(f"{_OPTION}: what comes after {algorithm} is not known here", hint="--algorithms")
    if number_of(target) <= number_of(base):
        hint = f"--algorithm {PREFIX}{list(RELEASES)[-2]}, where that is not the version to start from"
        raise UsageError(f"{_OPTION} {target}: that is not newer than {base}", hint=hint)

    def made(version: str) -> KubeScheduler:
        return scheduler_from_configuration(configuration, feature_gates, plugins, connect, version)

    older, newer = made(base), made(target)

    def with_changes(changes: Sequence[ToldChange]) -> KubeScheduler:
        facts = partly(older.behaviour, newer.behaviour, changes)
        return scheduler_from_configuration(configuration, None, plugins, connect, facts=facts)

    changes = changes_between(older.behaviour, newer.behaviour)
    return Versions(base=older, target=newer, changes=changes, with_changes=with_changes)
