"""Changes to a question as data: what is different, how to apply it, and the options that have the same effect.

A pod's fields are changed by their paths, as ``--set`` does, so that what is proved is what a reader can repeat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.explain.overrides import cordon, set_budget, uncordon, without
from kpreempt.analysis.field_paths import Assignment
from kpreempt.analysis.what_if import Overrides, override_pod, pod_document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod, annotations_of, with_annotations
from kpreempt.model.quantity import Quantity, quantity
from kpreempt.verdict import Change, ChangeKind

# How far a change reaches: first what the pod asks for, then what it puts up with, then what it insists on, then what
# others pay for, and last what pods of the system pay for. A request cut by more than half counts as more than a wish
# given up.
INTRUSIVENESS = {kind: rank for rank, kind in enumerate(ChangeKind)}
_OF_SYSTEM = len(INTRUSIVENESS)
_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that belong together, with what they do to the pod and to the cluster.

    ``share_affected`` is that of all running pods that the edit puts behind the pod in question; ``is_about_system``
    says that pods of the system are among those that it costs.
    """

    changes: Sequence[Change]
    overrides: Overrides = Overrides()
    uncordoned: str = ""
    cordoned: str = ""
    budgets: Sequence[str] = ()
    removed_pods: Sequence[str] = ()
    share_affected: float = 0.0
    is_about_system: bool = False

    @property
    def is_of_cluster(self) -> bool:
        """Whether the cluster is another one afterwards."""
        return bool(self.uncordoned or self.cordoned or self.budgets or self.removed_pods)

    @property
    def weight(self) -> tuple[int, float]:
        """How far the edit reaches: by its worst change, and among those by the share that is cut or affected."""
        rank, share = max(map(_weight, self.changes))
        return (rank + _OF_SYSTEM if self.is_about_system else rank), max(share, self.share_affected)

    def options(self, stated: Stated) -> list[str]:
        """The arguments that make ``kpreempt explain`` apply the edit to the pod as its user states it."""
        arguments: list[str] = []
        if self.overrides.priority is not None:
            arguments.append(f"--priority={self.overrides.priority}")
        if self.overrides.preemption_policy is not None:
            arguments.append(f"--preemption-policy={self.overrides.preemption_policy}")
        arguments += [f"--set={stated.setting(assignment)}" for assignment in self.overrides.assignments]
        arguments += [f"--uncordon={self.uncordoned}"] if self.uncordoned else []
        arguments += [f"--cordon={self.cordoned}"] if self.cordoned else []
        arguments += [f"--budget={budget}" for budget in self.budgets]
        arguments += [f"--without=pod/{key}" for key in self.removed_pods]
        return arguments


class Stated(msgspec.Struct, frozen=True):
    """How the pod as its user states it differs from the one that the scheduler sees.

    ``num_tolerations`` is how many it states itself, to which admission adds.
    """

    num_tolerations: int

    def setting(self, assignment: Assignment) -> str:
        """``PATH=VALUE`` for an assignment to the admitted pod; tolerations are appended to the stated ones."""
        path = assignment.path
        if match := _TOLERATION.fullmatch(path):
            path = f"spec.tolerations[{self.num_tolerations + int(match[1])}]"
        return f"{path}={_as_yaml(assignment.value)}"


# A toleration to be appended, by its number among those that an edit appends.
_TOLERATION = re.compile(r"spec\.tolerations\[\+([0-9]+)\]")


def appended_toleration(number: int) -> str:
    """The path of the ``number``-th toleration that an edit appends."""
    return f"spec.tolerations[+{number}]"


def edit_pod(pod: Pod, edit: Edit) -> Pod:
    """The pod as the edit makes it. Raises ``UsageError`` where a path of the edit is not there."""
    if not edit.overrides:
        return pod
    assignments = [_placed(assignment, len(pod.spec.tolerations)) for assignment in edit.overrides.assignments]
    overrides = msgspec.structs.replace(edit.overrides, assignments=assignments)
    document = override_pod(pod_document(pod), overrides)
    edited = msgspec.convert(document, Pod, dec_hook=_quantity)
    # An edit changes no annotation; where all were read they stay.
    told = annotations_of(pod)
    return with_annotations(edited, told) if told else edited


def edit_cluster(cluster: ClusterSnapshot, edit: Edit) -> ClusterSnapshot:
    """The cluster as the edit makes it. Raises ``NotFoundError`` for an object that is not there."""
    steps: list[tuple[Callable[[ClusterSnapshot, str], ClusterSnapshot], str]] = [
        *((set_budget, budget) for budget in edit.budgets),
        *((without, f"pod/{key}") for key in edit.removed_pods),
    ]
    steps += [(uncordon, edit.uncordoned)] if edit.uncordoned else []
    steps += [(cordon, edit.cordoned)] if edit.cordoned else []
    for change, target in steps:
        cluster = change(cluster, target)
    return cluster


def _weight(change: Change) -> tuple[int, float]:
    rank = INTRUSIVENESS[change.kind]
    if change.kind != ChangeKind.REQUEST or change.before is None or change.after is None:
        return rank, 0.0
    cut = 1 - change.after / max(change.before, 1)
    if change.after == 0:
        rank = INTRUSIVENESS[ChangeKind.PIN]
    elif cut > 0.5:
        rank = INTRUSIVENESS[ChangeKind.HOST_PORT]
    return rank, cut


def _placed(assignment: Assignment, num_tolerations: int) -> Assignment:
    """The assignment with plain data, and with the place of a toleration that is appended."""
    path, value = assignment.path, assignment.value
    if match := _TOLERATION.fullmatch(path):
        path = f"spec.tolerations[{num_tolerations + int(match[1])}]"
    return Assignment(path, str(value) if isinstance(value, Quantity) else value)


def _as_yaml(value: Any) -> str:
    """A value as YAML on one line; JSON is YAML, too."""
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, separators=(",", ":"))


def _quantity(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return quantity(str(value))
    raise NotImplementedError(f"{kind.__name__} has no decoder")
