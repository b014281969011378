"""SchedulingGates holds a pod back while it has gates (``plugins/schedulinggates``, v1.36.3)."""

from __future__ import annotations

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.events import Action, is_own, on_pod
from kpreempt.schedulers.kube.framework.in_tree import in_tree
from kpreempt.schedulers.kube.framework.interface import PreEnqueuePlugin
from kpreempt.verdict import SUCCESS, Code, Status


class SchedulingGates(PreEnqueuePlugin):
    """Rejects pods that have ``spec.schedulingGates``."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject the pod, naming its gates."""
        if not pod.spec.scheduling_gates:
            return SUCCESS
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [f"waiting for scheduling gates: [{gates}]"])


PLUGIN = in_tree(SchedulingGates, awaits=lambda: [on_pod(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_own)])
