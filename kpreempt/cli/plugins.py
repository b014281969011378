"""``kpreempt plugins``: the plugins and extenders that would run, and where each is from."""

from __future__ import annotations

from typing import Annotated

from kpreempt.cli.options import After, Algorithm, AnswerRequest


class PluginsRequest(
    AnswerRequest,
    without=[
        "snapshots",
        "namespace",
        "all_namespaces",
        "selector",
        "algorithm",
        "policy_config",
        "verbose",
        "strict",
        "skip_bad_objects",
        "now",
        "jobs",
        "profile_json",
        "connection",
    ],
):
    """What the options of ``kpreempt plugins`` ask for."""

    algorithm: Annotated[Algorithm, After("extensions")] = None


def plugins(request: PluginsRequest) -> int:
    """List the plugins that would run, by extension point and in order, where each is from, and the extenders.

    No plugin is started, no extender called, and no cluster read. Plugins that are installed, and that no profile
    enables, are listed, too; docs/writing-plugins.md says how to write one.
    """
    from kpreempt.analysis.algorithms import KUBE_ALGORITHMS
    from kpreempt.cli.answering import Run
    from kpreempt.cli.extensions import available_plugins
    from kpreempt.errors import UsageError
    from kpreempt.schedulers.kube.plugin_list import list_plugins
    from kpreempt.schedulers.kube.scheduler import KubeScheduler

    run = Run(request)
    scheduler = run.read_scheduler().scheduler
    if not isinstance(scheduler, KubeScheduler):
        raise UsageError(
            f"--algorithm {request.algorithm}: plugins are listed for {KUBE_ALGORITHMS[0]} and later alone",
            hint="kpreempt algorithms, for what the others do differently",
        )
    run.write(list_plugins(scheduler, available_plugins()), None)
    return 0
