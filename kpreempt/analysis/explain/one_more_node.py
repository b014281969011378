"""Whether one more node of a kind that the cluster has would place a pod that evicts others, or that lands nowhere.

A new node's own filters say which kinds could take it; the smallest of them is proved by a whole verdict on the cluster
with that node. Autoscalers have rules of their own for whether they add one, which are not looked at here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.nodes.copies import with_nodes
from kpreempt.analysis.nodes.kinds import NewNodes, Sample, told_assumptions, told_kind
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, Outcome, Verdict
from kpreempt.verdict.story import OneMoreNode

# On more nodes each verdict takes too long for what nobody asked for.
MAX_NODES = 5000
# On so many nodes a second kind is worth a verdict, too.
_FEW_NODES = 200
_MOST_VERDICTS = 8


def one_more_node(
    scheduler: Scheduler, cluster: ClusterSnapshot, prepared: Any, pod: Pod, verdict: Verdict, *, now: datetime
) -> OneMoreNode:
    """What is found for the pod, on which there is this verdict in the cluster; ``now`` is the snapshot's time.

    ``prepared`` is the cluster as the scheduler has made it ready.
    """
    if verdict.extender_calls:
        return OneMoreNode(not_sought="extenders would be called about nodes that there are not")
    if len(cluster.nodes) > MAX_NODES:
        return OneMoreNode(not_sought="not on a cluster of this size; --add-node NODE tries one")
    new = NewNodes(cluster, scheduler, now=now)
    taking = new.taking(pod)
    is_small = len(cluster.nodes) <= _FEW_NODES
    most = _MOST_VERDICTS if is_small else max(2, min(_MOST_VERDICTS, 4000 // len(cluster.nodes)))
    proved: list[Sample] = []
    nodes: list[str] = []
    assumed: list[Assumption] = []
    for sample in taking[:most]:
        grown = scheduler.prepare(with_nodes(cluster, sample.added), now=now, before=prepared)
        answer = scheduler.decide(grown, pod, records_steps=False)
        if answer.outcome is not Outcome.LANDS or answer.volume_choices is not None:
            continue
        if not proved:
            nodes = answer.lands_on or answer.chosen_nodes
            known = verdict.assumptions
            assumed = [*sample.added.assumptions, *(each for each in answer.assumptions if each not in known)]
        proved.append(sample)
        if not is_small:
            break
    return OneMoreNode(
        kinds=[told_kind(sample.kind) for sample in proved],
        options=[f"--add-node={proved[0].kind.like.name}"] if proved else [],
        node=proved[0].name if proved else "",
        nodes=nodes,
        num_kinds=new.num_kinds,
        untried=new.untried + (0 if proved else len(taking[most:])),
        assumed=told_assumptions(assumed),
    )
