"""Answering ``kpreempt plugins``."""

from __future__ import annotations

from kpreempt.analysis.algorithms import DEFAULT_ALGORITHM
from kpreempt.cli.answering import AnswerRequest, understand
from kpreempt.cli.extensions import Extensions, available_plugins
from kpreempt.errors import UsageError
from kpreempt.schedulers.kube.plugin_list import list_plugins
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot.live.flags import ConnectionFlags


def run_plugins(
    *,
    scheduler_config: str | None,
    feature_gates: list[str],
    extensions: Extensions,
    algorithm: str | None,
    outputs: list[str],
    colour: str,
) -> int:
    """Answer the request, and return the exit code. Raises ``UsageError`` for a scheduler without such plugins."""
    request = AnswerRequest(
        snapshots=[],
        connection=ConnectionFlags(),
        namespace=None,
        scheduler_config=scheduler_config,
        feature_gates=feature_gates,
        outputs=outputs,
        colour=colour,
        skip_bad_objects=False,
        now=None,
        profile_json=None,
        algorithm=algorithm,
        extensions=extensions,
    )
    asked = understand(request)
    scheduler = asked.scheduler.scheduler
    if not isinstance(scheduler, KubeScheduler):
        raise UsageError(
            f"--algorithm {algorithm}: plugins are listed for {DEFAULT_ALGORITHM} alone",
            hint="kpreempt algorithms, for what the others do differently",
        )
    asked.write(list_plugins(scheduler, available_plugins()), None)
    return 0
