"""``kpreempt plugins``: the plugins and extenders that would run, and their sources."""

from __future__ import annotations

from kpreempt.cli import extensions
from kpreempt.cli.requests import PluginsRequest
from kpreempt.cli.runner import CommandRun
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.schedulers import Context
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict.plugins import AvailablePlugin


def plugins(request: PluginsRequest) -> int:
    """Answer the request and return the exit code."""
    run = CommandRun(request)
    factory = run.read_scheduler()
    # Only the cluster's version is needed; without a cluster, use an empty one.
    if not request.snapshots and not request.connection.as_arguments():
        versioned = ClusterSnapshot()
    else:
        live = run.connect()
        if live is None:
            versioned = run.load(None).cluster
        else:
            from kpreempt.snapshot.live.lists import read_version

            versioned = ClusterSnapshot(version=read_version(live))
    installed = [
        AvailablePlugin(name, each.package) for name, found in extensions.installed_plugins().items() for each in found
    ]
    context = Context(LoadedCluster(versioned, []), factory, run.now())
    run.write(answer(context, request.having(installed=installed)).record, None)
    return 0
