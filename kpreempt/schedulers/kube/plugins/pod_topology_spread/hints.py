"""Which changes may help a pod that topology spread refused (``plugins/podtopologyspread/plugin.go``, v1.36.3)."""

from __future__ import annotations

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.schedulers.kube.framework.events import Action, has_place, is_same, on_node, on_pod


def pod_changes_spread(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod that one of the constraints counts came or left, or is counted otherwise now."""
    if any(each is not None and not _is_in_spread(each, pod) for each in (old, new)):
        return False
    constraints = _spread_constraints(pod)
    if old is None or new is None:
        one = old or new
        return one is not None and any(_selects(each, one) for each in constraints)
    if (
        is_same(new, pod)
        and old.spec.tolerations != new.spec.tolerations
        and any(each.node_taints_policy == "Honor" for each in constraints)
    ):
        return True
    return any(_selects(each, old) != _selects(each, new) for each in constraints)


def node_changes_spread(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Whether the node joins, leaves or changes a domain, or has other taints."""
    keys = [each.topology_key for each in _spread_constraints(pod)]
    was_in = old is not None and all(key in old.labels for key in keys)
    is_in = new is not None and all(key in new.labels for key in keys)
    if old is None or new is None:
        return was_in or is_in
    if was_in != is_in:
        return True
    return is_in and (old.spec.taints != new.spec.taints or any(old.labels[key] != new.labels[key] for key in keys))


def _spread_constraints(pod: Pod) -> list[TopologySpreadConstraint]:
    """The pod's own constraints that forbid nodes; those of the scheduler's configuration are not looked at."""
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]


def _selects(constraint: TopologySpreadConstraint, pod: Pod) -> bool:
    return constraint.label_selector is not None and constraint.label_selector.matches(pod.metadata.labels)


def _is_in_spread(pod: Pod, refused: Pod) -> bool:
    if is_same(pod, refused):
        return True
    return has_place(pod) and pod.metadata.namespace == refused.metadata.namespace


HINTS = (
    on_pod(
        Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE,
        pod_changes_spread,
    ),
    on_node(Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT, node_changes_spread),
)
