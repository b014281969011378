"""``kpreempt drain``: whether nodes get empty, and what their pods do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from kpreempt.cli.gate_options import DrainGate
from kpreempt.cli.options import Additions, After, AnswerRequest, ChangingNodes, Without

if TYPE_CHECKING:
    from kpreempt.report.options import RenderOptions

_Text = str | None


class DrainRequest(AnswerRequest, without=["namespace", "all_namespaces", "strict"]):
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
    remove: Annotated[
        bool,
        Option(
            "--remove",
            help="Which of the nodes can go, as Cluster Autoscaler and Karpenter may move pods, with nobody left "
            "pending.",
        ),
    ] = False
    kubelet_version: Annotated[
        _Text, Option("--kubelet-version", metavar="VERSION", help="The new nodes run this kubelet: v1.37.0.")
    ] = None
    without: Annotated[Without, After("selector")] = []
    additions: Additions = []
    node_changes: ChangingNodes
    seed: Annotated[int, After("extensions"), Option(metavar="NUMBER", help="What chance starts from.")] = 0
    runs: Annotated[
        int | None,
        Option(
            metavar="N",
            min=1,
            help="Run it N times with other draws; the worst counts. By default once where nothing is drawn, every "
            "choice where these are few, else up to 20 times.",
        ),
    ] = None
    worst_case: Annotated[
        bool, Option("--worst-case", help="Simulate every choice that chance leaves; the worst counts.")
    ] = False
    max_plays: Annotated[
        int, Option(metavar="N", min=1, help="With --worst-case: at most so many; more leave it uncertain.")
    ] = 100
    stream_name: Annotated[
        str,
        Option("--stream-name", metavar="FILE", help="The file that SARIF and GitLab name, which want one."),
    ] = "kpreempt-input.yaml"
    docs_url: Annotated[
        str,
        Option(
            "--docs-url",
            metavar="URL",
            help="Where kpreempt's docs are to be read: findings link to the pages of their rules there.",
        ),
    ] = ""
    gate: DrainGate
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown, html, junit, sarif, github or gitlab, into FILE "
            "if given. Repeatable. Or, as kubectl has them, jsonpath=TEMPLATE and custom-columns=HEADER:PATH,...",
        ),
    ] = []

    def lengthened_for_log(self, options: RenderOptions) -> RenderOptions:
        """The report: a pipeline's log keeps what the gate found."""
        import msgspec

        from kpreempt.report.options import Extent

        return msgspec.structs.replace(self.lengthened(options), extent=Extent.REPORT)


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
