"""What a name means in a cluster: the namespace of a pod or workload, and errors that suggest what was meant.

Without a namespace, a name may be in any. If it is in several, the one in the default namespace is meant.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable

from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.workload_pods import WORKLOAD_KINDS, kind_of
from kpreempt.errors import KpreemptError, NotFoundError, UsageError, listed
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import ObjectName
from kpreempt.verdict.unread import missing

_SHOWN = 3
_WORKLOAD = "Workload of Kueue"
# Kinds that have no pods: the words for them, and what answers a question about one.
_OTHER_KINDS = {
    "Service": (("svc", "service", "services"), "name a pod or workload behind it"),
    "Node": (
        ("no", "node", "nodes"),
        "explain POD --node {name} explains the node for a pod; kpreempt drain {name} simulates draining it",
    ),
    "PodDisruptionBudget": (
        ("pdb", "pdbs", "poddisruptionbudget", "poddisruptionbudgets"),
        "kpreempt budgets audits PodDisruptionBudgets",
    ),
    "Namespace": (("ns", "namespace", "namespaces"), "kpreempt pending -n {name}, or kpreempt at-risk -n {name}"),
    "PersistentVolumeClaim": (("pvc", "persistentvolumeclaim", "persistentvolumeclaims"), "name a pod that uses it"),
    "PersistentVolume": (("pv", "persistentvolume", "persistentvolumes"), "name a pod that uses it"),
    "HorizontalPodAutoscaler": (
        ("hpa", "horizontalpodautoscaler", "horizontalpodautoscalers"),
        "name the workload that it scales",
    ),
    "PriorityClass": (("pc", "priorityclass", "priorityclasses"), "--priority-class {name} tries it for a pod"),
    _WORKLOAD: (("wl", "workload", "workloads"), "--algorithm kueue-0.19 explains Workloads of Kueue"),
}
_ACCEPTED = "pod, deploy, sts, ds, rs, rc, job, cj"
_SHORT = {kind_of(word): word for word in _ACCEPTED.split(", ")}


def namespace_of(
    cluster: ClusterSnapshot, documents: Iterable[Document], text: str, stated: str | None, default: str
) -> str:
    """The namespace of ``NAME``, ``KIND/NAME`` or ``NS/NAME``.

    Without a ``stated`` one, it is the default one if the object is there, else the only one that has it, and empty if
    none has. Raises ``UsageError`` for a kind without pods and for two namespaces, and ``NotFoundError`` if several
    objects could be meant.
    """
    first, _, name = text.rpartition("/")
    kind = kind_of(first) if first else "Pod"
    if not kind:
        if all(pod.key != text for pod in cluster.pods):
            check_kind(cluster, first, name, stated)
        if stated and stated != first:
            raise UsageError(f"two namespaces given: {first} and -n {stated}")
        return first
    if stated:
        return stated
    if kind == "Pod":
        found = {pod.metadata.namespace for pod in cluster.pods if pod.metadata.name == name}
    else:
        known = [*_workloads(cluster), *(ObjectName.parse(describe(each)) for each in documents)]
        found = {each.namespace for each in known if (each.kind, each.name) == (kind, name)}
    return only_namespace(found, f'{kind if kind != "Pod" else "pod"} "{name}"', default)


def only_namespace(found: Collection[str], what: str, default: str) -> str:
    """The namespace of an object that is in the ``found`` ones, or empty. Raises ``NotFoundError`` for several."""
    if default in found:
        return default
    if len(found) > 1:
        raise NotFoundError(f"{what} is in several namespaces: {listed(sorted(found))}", hint=f"-n {min(found)}")
    return next(iter(found), "")


def unknown_pod(cluster: ClusterSnapshot, namespace: str, name: str) -> NotFoundError:
    """The error for a pod that is not in the cluster: where else there is one of that name, or what is similar."""
    what = f'pod "{name}"{in_namespace(namespace)}'
    elsewhere = sorted({pod.metadata.namespace for pod in cluster.pods if pod.metadata.name == name})
    if elsewhere:
        return NotFoundError(f"{what} not found", hint=f"it is in {', '.join(elsewhere)}: -n {elsewhere[0]}")
    own = [pod.metadata.name for pod in cluster.pods if pod.metadata.namespace == namespace]
    near = difflib.get_close_matches(name, own, n=_SHOWN)
    if not near:
        near = [_named(each) for each in _workloads(cluster) if each.name == name]
    if not near:
        by_name = {pod.metadata.name: pod.key for pod in cluster.pods}
        near = [by_name[each] for each in difflib.get_close_matches(name, by_name, n=_SHOWN)]
    return NotFoundError(missing(cluster, "Pod", what), hint=", ".join(near[:_SHOWN]))


def in_namespace(namespace: str) -> str:
    """The end of a phrase about an object in the namespace, or in any if it is empty."""
    return f' in namespace "{namespace}"' if namespace else ""


def similar_workloads(cluster: ClusterSnapshot, kind: str, namespace: str, name: str) -> list[str]:
    """How to name the workloads that may be meant: those of this name, then those with similar names, at most three."""
    known = _workloads(cluster)
    same = [each for each in known if each.name == name and each != (kind, namespace, name)]
    if same:
        return [_named(each) for each in same[:_SHOWN]]
    similar = difflib.get_close_matches(name, [each.name for each in known], n=_SHOWN)
    near = [each for close in similar for each in known if each.name == close]
    return [_named(each) for each in dict.fromkeys(near)][:_SHOWN]


def check_kind(cluster: ClusterSnapshot, word: str, name: str, namespace: str | None = None) -> None:
    """Raise an error if the word before a slash is neither a namespace nor a kind with pods.

    A Service may be in the ``namespace``, or in any.
    """
    spaces = {each.metadata.name for each in cluster.namespaces} | {pod.metadata.namespace for pod in cluster.pods}
    if word in spaces:
        return
    lower = word.partition(".")[0].lower()
    kind = next((kind for kind, (words, _) in _OTHER_KINDS.items() if lower in words), "")
    if kind == "Service":
        raise _about_service(cluster, name, namespace)
    if kind:
        problem = f'"{word}/{name}" is a {kind}; expected a pod or a workload ({_ACCEPTED})'
        near = similar_workloads(cluster, "", "", name) if kind == _WORKLOAD else []
        raise UsageError(problem, hint=", ".join(near) or _OTHER_KINDS[kind][1].format(name=name))
    if "Pod" in cluster.unread:
        return
    if any(pod.metadata.name == word for pod in cluster.pods):
        problem = f'"{word}" is a pod, and "{name}" is one name too many: give one pod or workload'
        raise UsageError(problem, hint=f"{word}, or KIND/NAME for a workload")
    known = [*_ACCEPTED.split(", "), *(each for names in WORKLOAD_KINDS.values() for each in names), *sorted(spaces)]
    near = difflib.get_close_matches(lower, known, n=1)
    raise UsageError(
        f'"{word}" is neither a namespace with pods nor a kind that has pods ({_ACCEPTED})',
        hint=", ".join([*(f"{each}/{name}" for each in near), *similar_workloads(cluster, "", "", name)][:_SHOWN]),
    )


def _about_service(cluster: ClusterSnapshot, name: str, namespace: str | None) -> KpreemptError:
    """The error for a Service: which workloads have the pods that it selects."""
    from kpreempt.analysis.simulation.cluster import Workloads  # noqa: PLC0415 - only for this error

    services = [each for each in cluster.services if namespace in (None, each.metadata.namespace)]
    found = [each for each in services if each.metadata.name == name]
    if not found:
        near = difflib.get_close_matches(name, [each.metadata.name for each in services], n=_SHOWN)
        hint = ", ".join([f"svc/{each}" for each in near] or similar_workloads(cluster, "", "", name))
        return NotFoundError(missing(cluster, "Service", f'Service "{name}"'), hint=hint)
    workloads, selected = Workloads(cluster), Counter[str]()
    for service in found:
        selected.update(workloads.of(pod) for pod in cluster.pods if service.selects(pod.metadata))
    subject = f"Service {found[0].metadata.namespace}/{name}"
    if not selected:
        return UsageError(f"{subject} selects no pod", hint=listed(similar_workloads(cluster, "", "", name)))
    number = selected.total()
    pods = "1 pod" if number == 1 else f"{number:,} pods"
    problem = f"{subject} itself has no pods; it selects {pods} of {listed([*selected])}"
    return UsageError(problem, hint=", ".join(_named(ObjectName.parse(each)) for each in [*selected][:_SHOWN]))


def _workloads(cluster: ClusterSnapshot) -> list[ObjectName]:
    """All workloads, in the input or known by their pods."""
    from kpreempt.analysis.simulation.cluster import Workloads  # noqa: PLC0415 - not needed for pods
    from kpreempt.model.kinds import KINDS  # noqa: PLC0415 - as above

    workloads = Workloads(cluster)
    of_pods = (ObjectName.parse(each) for each in dict.fromkeys(map(workloads.of, cluster.pods)))
    kinds = (kind for kind in _SHORT if kind in KINDS and kind != "Pod")
    records = (ObjectName.of(kind, each.metadata) for kind in kinds for each in getattr(cluster, KINDS[kind].field))
    return [*dict.fromkeys([*(each for each in of_pods if each.kind != "Pod"), *records])]


def names_in(cluster: ClusterSnapshot, kind: str) -> dict[str, list[str]]:
    """The names of the objects of a kind, each with its namespaces; also of those that only pods show."""
    from kpreempt.model.kinds import KINDS  # noqa: PLC0415 - only for completion

    found: dict[str, dict[str, None]] = {}
    for each in getattr(cluster, KINDS[kind].field):
        found.setdefault(each.metadata.name, {})[each.metadata.namespace] = None
    if kind in _SHORT and kind != "Pod":
        for each in _workloads(cluster):
            if each.kind == kind:
                found.setdefault(each.name, {})[each.namespace] = None
    if kind == "Namespace":
        found |= {pod.metadata.namespace: {} for pod in cluster.pods if pod.metadata.namespace not in found}
    return {name: [each for each in namespaces if each] for name, namespaces in found.items()}


def _named(workload: ObjectName) -> str:
    """``deploy/web -n shop`` for ``Deployment shop/web``, as on a command line; pods as ``shop/web-1``."""
    kind, namespace, name = workload
    return f"{namespace}/{name}" if kind == "Pod" else f"{_SHORT.get(kind, kind.lower())}/{name} -n {namespace}"
