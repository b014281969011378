"""The algorithms to compare: each a name, perhaps with a configuration and feature gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import VOLCANO, Scheduler, scheduler_for
from kpreempt.cli.extensions import Extensions
from kpreempt.errors import UsageError
from kpreempt.model.wanted import Wanted, all_wanted
from kpreempt.schedulers.kube.feature_gates import parse_feature_gates
from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM
from kpreempt.snapshot import decode_object, read_document


class Compared(NamedTuple):
    """An algorithm as it is shown, and what makes its scheduler."""

    label: str
    algorithm: str
    configuration: Mapping[str, Any] | None
    feature_gates: Mapping[str, bool]
    extensions: Extensions = Extensions()

    def scheduler(
        self, configuration: Mapping[str, Any] | None = None, gates: Mapping[str, bool] | None = None
    ) -> Scheduler:
        """The scheduler; what is given here counts where the algorithm brings nothing of its own.

        A plugin of ``--plugin`` runs only where a configuration enables it, so that one can be compared with itself.
        """
        own = self.configuration or configuration
        if self.algorithm == VOLCANO:
            return _volcano(self)
        plugins = [msgspec.structs.replace(each, is_asked_for=False) for each in self.extensions.found(own)]
        both = {**(gates or {}), **self.feature_gates}
        return scheduler_for(self.algorithm, own, both, plugins=plugins, connect=self.extensions.connect)


def wanted_of(compared: Sequence[Compared]) -> Wanted:
    """What the plugins of any of them read beyond what every snapshot has."""
    return all_wanted(each.scheduler().wanted for each in compared)


def parse_compared(text: str, extensions: Extensions = Extensions()) -> list[Compared]:
    """The algorithms in ``NAME[@FILE][:GATE=BOOL]...,...``, two at least. Raises ``UsageError`` and ``InputError``."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) < 2:
        raise UsageError("two algorithms or more are compared", hint=f"--algorithms kube-1.13,{NEWEST_ALGORITHM}")
    twice = next((part for part in parts if parts.count(part) > 1), "")
    if twice:
        hint = f"{twice},{twice}@FILE or {twice},{twice}:GATE=false"
        raise UsageError(f"--algorithms {text}: {twice} is there twice, and decides the same", hint=hint)
    return [_parsed(part, extensions) for part in parts]


def _volcano(compared: Compared) -> Scheduler:
    """Volcano, asked about one pod after the other. Raises ``UsageError`` and ``ConfigurationError``."""
    from kpreempt.analysis.volcano_pods import VolcanoOfPods
    from kpreempt.cli.volcano_configuration import volcano_configuration_in

    if compared.feature_gates:
        raise UsageError(f"{compared.label}: {VOLCANO} has no feature gates")
    return VolcanoOfPods(volcano_configuration_in(compared.configuration, compared.label), decode_object)


def _parsed(text: str, extensions: Extensions) -> Compared:
    named, *gates = text.split(":")
    name, at, path = named.partition("@")
    if at and not path:
        raise UsageError(f"--algorithms {text}: the configuration's file is missing", hint=f"{name}@FILE")
    configuration = read_document(path) if path else None
    label = ":".join([f"{name}@{PurePath(path).name}" if path else name, *gates])
    compared = Compared(label, name, configuration, parse_feature_gates(",".join(gates)), extensions)
    # Now rather than after the cluster was read: most mistakes are made here.
    compared.scheduler()
    return compared
