"""``kpreempt mcp``: the questions of the library for assistants, by the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import Algorithm, ClusterRequest, Now

_Text = str | None


class McpRequest(ClusterRequest):
    """What the options of ``kpreempt mcp`` ask for."""

    algorithm: Algorithm = None
    scheduler_config: Annotated[
        _Text, Option(metavar="FILE", help="The scheduler has this KubeSchedulerConfiguration.")
    ] = None
    now: Now = None


def mcp(request: McpRequest) -> int:
    """Serve assistants on call: questions and answers by the Model Context Protocol on standard input and output.

    Its tools are explain, pending, budgets, at_risk, check, drain, compare and cluster; their answers are the documents
    of -o json, cut to the size that the caller names. Nothing is changed, and no file, address or program is reachable
    through it but the cluster of these options. A snapshot is read once, a live cluster for each question.

    Needs pip install 'kpreempt[mcp]'.
    """
    from kpreempt.cli.mcp_run import run_mcp

    return run_mcp(request)
