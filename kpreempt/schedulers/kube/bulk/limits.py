"""What a plugin checks, as a limit per node and an amount per pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kpreempt.schedulers.kube.bulk.pod_table import Booleans, Integers
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.verdict import Status

# Limits that no sum of pods reaches, and that none keeps to.
ALWAYS = 2**62
NEVER = -(2**62)


class Limit(NamedTuple):
    """A sum over the pods of a node that must not go beyond a limit.

    ``used`` is the sum with all pods in place and ``limit`` the most it may be, one value per node of the question;
    ``amounts`` is what each pod of the table adds. All three are integers in the same unit; ``used`` is of this
    question alone.
    """

    used: Integers
    limit: Integers
    amounts: Integers


class Excess(NamedTuple):
    """A node on which limits of a plugin are exceeded.

    ``node`` is its position in the question, ``exceeded`` says of every limit whether it is exceeded there, ``sums``
    has their sums at that moment, and ``num_pods`` is the number of pods that are left on the node. ``is_bare`` says
    that no pod of lower priority is among these.
    """

    node: int
    exceeded: list[bool]
    sums: list[int]
    num_pods: int
    is_bare: bool


class PluginLimits(NamedTuple):
    """All limits of one plugin; ``refuse`` makes the status of a node on which some are exceeded.

    ``left_out`` marks the nodes about which the plugin cannot state its limits. The status of a bare node has all the
    detail that the plugin itself would give; ``tells_detail`` says that every other has, too.

    ``adds`` gives what a pod that is nominated to a node adds to each limit there; ``None`` where that is not to be
    said.
    """

    plugin: str
    limits: list[Limit]
    refuse: Callable[[Excess], Status]
    left_out: Booleans | None = None
    tells_detail: bool = False
    adds: Callable[[PodInfo], list[int] | None] = lambda _: None
