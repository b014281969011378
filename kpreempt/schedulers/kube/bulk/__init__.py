"""Dry runs of many nodes at once: the same decisions as ``preemption.victims``, computed on columns.

On a big cluster, the same few checks run for every node and every pod on it, and most of them are sums: requests
compared with allocatable resources, or matching pods with what a spread constraint allows. So every plugin that
supports this states its check as a limit per node and an amount per pod (``limits``), and the victims of all nodes are
found in lockstep: the most important pod of every node is put back, then the second of every node, and so on.

The entry point is ``serve``, which adds the columns and the bulk function to a scheduler's handle. It only returns
exact results and leaves every other node to the ordinary path: nodes for which a plugin cannot state its limits, and
all nodes if a plugin in use states none. Property tests and the conformance data check that both paths agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.equal_pods import Steps
from kpreempt.schedulers.kube.bulk.dry_run import dry_run
from kpreempt.schedulers.kube.bulk.pod_table import LatestTable, PodTable
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import BulkDryRun, Handle
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex


def serve(handle: Handle, framework: Framework, tables: LatestTable) -> None:
    """Let the plugins of ``handle``, run by ``framework``, use columns over the pods of their cluster."""

    def dry_run_at_once(
        state: CycleState,
        pod: Pod,
        nodes: Sequence[NodeInfo],
        budgets: BudgetIndex,
        orders: Steps | None,
        is_brief: bool,
    ) -> BulkDryRun:
        table = tables.table_of(nodes) if framework.all_filters_are_node_local(state) else tables.table
        return dry_run(table, framework, state, pod, nodes, budgets, orders, is_brief=is_brief)

    handle.tables = tables
    handle.dry_run_at_once = dry_run_at_once


__all__ = ["LatestTable", "PodTable", "dry_run", "serve"]
