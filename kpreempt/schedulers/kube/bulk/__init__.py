"""Dry runs of many nodes at once: the same decisions as ``preemption.victims``, as arithmetic on columns.

On a big cluster the same few checks are made for every node and every pod on it, and most of them are sums: requests
against what is allocatable, matching pods against what a spread constraint allows. So every plugin that takes part
states its check as a limit per node and an amount per pod (``limits``), and the victims of all nodes are found in
lockstep: the most important pod of every node is put back, then the second of every node, and so on.

The one door is ``dry_run``. It answers only what it can answer exactly, and leaves every other node to the plain path:
nodes that a pod is nominated to, nodes whose pods tie in a way that Go's sort decides, and all nodes where a plugin
takes part that cannot state limits. Property tests and the conformance data hold the two paths equal.
"""

from kpreempt.schedulers.kube.bulk.dry_run import dry_run
from kpreempt.schedulers.kube.bulk.pod_table import PodTable

__all__ = ["PodTable", "dry_run"]
