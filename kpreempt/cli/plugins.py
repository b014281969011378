"""``kpreempt plugins``: the plugins and extenders that would run, and where each is from."""

from __future__ import annotations

import msgspec

from kpreempt.cli.extensions import installed_plugins
from kpreempt.cli.requests import PluginsRequest
from kpreempt.cli.runner import Run
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.scheduler_table import KUBE_ALGORITHMS
from kpreempt.schedulers.kube.plugin_list import list_plugins
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict.plugins import AvailablePlugin


def plugins(request: PluginsRequest) -> int:
    """Answer the request, and return the exit code."""
    run = Run(request)
    asked = run.read_scheduler()
    # A cluster of which at least the version is known, if it is; an empty one where no cluster is named.
    if not request.snapshots and not request.connection.given():
        versioned = ClusterSnapshot()
    else:
        live = run.connect()
        if live is None:
            versioned = run.load(None).cluster
        else:
            from kpreempt.snapshot.live.lists import read_version

            versioned = ClusterSnapshot(version=read_version(live))
    configured = asked.on(versioned)
    scheduler = configured.scheduler
    if not isinstance(scheduler, KubeScheduler):
        raise UsageError(
            f"--algorithm {scheduler.algorithm}: plugins are listed for {KUBE_ALGORITHMS[0]} and later alone",
            hint="kpreempt algorithms, for what the others do differently",
        )
    installed = [AvailablePlugin(name, each.package) for name, found in installed_plugins().items() for each in found]
    listed = list_plugins(scheduler, installed)
    run.write(msgspec.structs.replace(listed, assumptions=[*configured.assumptions, *listed.assumptions]), None)
    return 0
