"""``kpreempt drain``: whether nodes get empty, and what their pods do."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from kpreempt.cli.gate_options import DrainGate, GatedRequest
from kpreempt.cli.options import Additions, After, ChangingNodes, Without
from kpreempt.scheduler_table import LATEST_VERSION

_Text = str | None


class DrainRequest(GatedRequest, without=["namespace", "all_namespaces", "strict"]):
    """What the options of ``kpreempt drain`` ask for."""

    nodes: Annotated[
        list[str], Argument(metavar="NODE...", help="The nodes to drain, in this order.", show_default=False)
    ] = []
    selector: Annotated[
        _Text, Option("-l", "--selector", metavar="SELECTOR", help="The nodes with these labels, by name: pool=a.")
    ] = None
    pool: Annotated[_Text, Option("--pool", metavar="LABEL=VALUE", help="The nodes with this label.")] = None
    force: Annotated[bool, Option("--force", help="As kubectl drain: also pods that no controller makes again.")] = (
        False
    )
    ignore_daemonsets: Annotated[
        bool, Option("--ignore-daemonsets", help="As kubectl drain: leave pods of DaemonSets alone.")
    ] = False
    delete_emptydir_data: Annotated[
        bool, Option("--delete-emptydir-data", help="As kubectl drain: also pods with an emptyDir, whose data goes.")
    ] = False
    disable_eviction: Annotated[
        bool, Option("--disable-eviction", help="As kubectl drain: delete pods; no budget is asked.")
    ] = False
    grace_period: Annotated[
        int, Option("--grace-period", metavar="SECONDS", help="Time for each pod to stop; negative: its own.")
    ] = -1
    pod_selector: Annotated[
        str, Option("--pod-selector", metavar="SELECTOR", help="As kubectl drain: only pods with these labels.")
    ] = ""
    skip_wait_for_delete_timeout: Annotated[
        int,
        Option(
            "--skip-wait-for-delete-timeout",
            metavar="SECONDS",
            help="As kubectl drain: pass over pods told to go longer ago than that; 0: none.",
        ),
    ] = 0
    timeout: Annotated[
        str, Option("--timeout", metavar="TIME", help="As kubectl drain: give a node up after so long; 0s: never.")
    ] = "0s"
    chunk_size: Annotated[
        int, Option("--chunk-size", metavar="N", help="As kubectl drain; how pods are listed changes nothing here.")
    ] = 500
    one_by_one: Annotated[
        bool,
        Option("--one-by-one", help="An upgrade: each node is cordoned, drained and replaced by an empty one in turn."),
    ] = False
    max_unavailable: Annotated[
        int | None,
        Option("--max-unavailable", metavar="N", min=1, help="An upgrade in which so many are drained side by side."),
    ] = None
    surge: Annotated[
        int | None,
        Option("--surge", metavar="N", min=1, help="So many new nodes like the old come before these are drained."),
    ] = None
    best_order: Annotated[
        bool,
        Option("--best-order", help="An upgrade in the order of nodes that displaces least; a greedy search."),
    ] = False
    remove: Annotated[
        bool,
        Option(
            "--remove",
            help="Which of the nodes can go, as Cluster Autoscaler and Karpenter may move pods, with nobody left "
            "pending.",
        ),
    ] = False
    kubelet_version: Annotated[
        _Text,
        Option("--kubelet-version", metavar="VERSION", help=f"The new nodes run this kubelet: v{LATEST_VERSION}.0."),
    ] = None
    without: Annotated[Without, After("selector")] = []
    additions: Additions = []
    node_changes: ChangingNodes
    stream_name: Annotated[
        str,
        Option("--stream-name", metavar="FILE", help="The file that SARIF and GitLab name, which want one."),
    ] = "kpreempt-input.yaml"
    gate: Annotated[DrainGate, After("docs_url")]


def drain(request: DrainRequest) -> int:
    """Simulate kubectl drain: whether the nodes get empty, what blocks them, and where their pods go.

    The nodes are cordoned, then drained one after the other: evictions ask budgets as the API server does, controllers
    make new pods, these land, preempt or wait, and refused evictions are tried again every 5 seconds, until the nodes
    are empty or nothing more can happen. Each blocked eviction comes with the smallest change that was found to help.
    The same rules as of check guard a pipeline, from options or kpreempt.toml. One screen; -v has everything.

    Exit codes: 0 all rules hold, 1 one does not (drain-blocked where a node stays), 2 wrong usage, 3 input unreadable.
    """
    from kpreempt.cli.drain_run import run_drain

    return run_drain(request)
