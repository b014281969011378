"""What plugins can have a say in, by the switch that lets them (``pkg/scheduler/framework/session_plugins.go``)."""

from __future__ import annotations

from enum import Enum


class Vote(Enum):
    """A question that a session puts to plugins; the value is the switch, empty where there is none."""

    JOB_ORDER = "enableJobOrder"
    QUEUE_ORDER = "enableQueueOrder"
    TASK_ORDER = "enableTaskOrder"
    PREEMPTABLE = "enablePreemptable"
    RECLAIMABLE = "enableReclaimable"
    OVERUSED = "enabledOverused"
    ALLOCATABLE = "enabledAllocatable"
    JOB_READY = "enableJobReady"
    JOB_PIPELINED = "enableJobPipelined"
    JOB_STARVING = "enableJobStarving"
    JOB_VALID = ""
    # The three that share a switch with another are told apart by a suffix.
    JOB_ENQUEUEABLE = "enableJobEnqueued"
    JOB_ENQUEUED = "enableJobEnqueued#after"
    PREDICATE = "enablePredicate"
    PRE_PREDICATE = "enablePredicate#before"
    NODE_ORDER = "enableNodeOrder"
    BATCH_NODE_ORDER = "enableNodeOrder#batch"

    @property
    def switch(self) -> str:
        """The switch as the configuration spells it, or an empty text."""
        return self.value.partition("#")[0]
