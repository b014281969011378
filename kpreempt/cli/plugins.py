"""``kpreempt plugins``: the plugins and extenders that would run, and where each is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.options import After, Algorithm, AnswerRequest

if TYPE_CHECKING:
    from kpreempt.cli.answering import Run
    from kpreempt.model.cluster import ClusterSnapshot


class PluginsRequest(
    AnswerRequest,
    without=[
        "namespace",
        "all_namespaces",
        "selector",
        "algorithm",
        "policy_config",
        "verbose",
        "strict",
        "now",
        "jobs",
        "profile_json",
    ],
):
    """What the options of ``kpreempt plugins`` ask for."""

    snapshots: Annotated[
        list[str],
        Option("--snapshot", metavar="PATH", help="Those of this cluster's version: a dump's. Repeatable."),
    ] = []
    algorithm: Annotated[Algorithm, After("extensions")] = None


def plugins(request: PluginsRequest) -> int:
    """List the plugins that would run, by extension point and in order, where each is from, and the extenders.

    No plugin is started, and no extender called. Of a cluster only the version counts: --snapshot or an option that
    names a live cluster (--context, --kubeconfig, ...) says which; without either it is the newest that is modelled.
    Plugins that are installed, and that no profile enables, are listed, too; docs/writing-plugins.md says how to write
    one.
    """
    import msgspec

    from kpreempt.cli.answering import Run
    from kpreempt.cli.clusters import single_use_of_stdin
    from kpreempt.cli.extensions import available_plugins
    from kpreempt.errors import UsageError
    from kpreempt.scheduler_table import KUBE_ALGORITHMS
    from kpreempt.schedulers.kube.plugin_list import list_plugins
    from kpreempt.schedulers.kube.scheduler import KubeScheduler

    single_use_of_stdin({"--snapshot": request.snapshots})
    run = Run(request)
    asked = run.read_scheduler()
    configured = asked.on(_versioned(request, run))
    scheduler = configured.scheduler
    if not isinstance(scheduler, KubeScheduler):
        raise UsageError(
            f"--algorithm {scheduler.algorithm}: plugins are listed for {KUBE_ALGORITHMS[0]} and later alone",
            hint="kpreempt algorithms, for what the others do differently",
        )
    listed = list_plugins(scheduler, available_plugins())
    run.write(msgspec.structs.replace(listed, assumptions=[*configured.assumptions, *listed.assumptions]), None)
    return 0


def _versioned(request: PluginsRequest, run: Run) -> ClusterSnapshot:
    """A cluster of which at least the version is known, if it is; an empty one where no cluster is named."""
    from kpreempt.model.cluster import ClusterSnapshot

    if not request.snapshots and not request.connection.given():
        return ClusterSnapshot()
    live = run.connect()
    if live is None:
        return run.load(None).cluster
    from kpreempt.snapshot.live.lists import read_version

    return ClusterSnapshot(version=read_version(live))
