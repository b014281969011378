"""Every change that lowers protection, applied to every object of the example clusters: none may be reported as
harmless.

``python -m tests.gate.mutations`` runs all of them, and prints those that are reported as harmless or do not fail
though they should; ``test_mutations.py`` runs a few of each.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kpreempt import Cluster
from kpreempt.errors import KpreemptError
from tests.gate.sets import CLUSTERS, Object

_FIXTURES = CLUSTERS.parent
CLUSTER_FILES = {
    "1.33": CLUSTERS / "kube-1.33.json.gz",
    "1.36": CLUSTERS / "kube-1.36.json.gz",
    "outage": _FIXTURES / "check" / "outage" / "cluster.yaml",
    "release": _FIXTURES / "check" / "release" / "cluster.yaml",
    "rules": _FIXTURES / "check" / "rules" / "cluster.yaml",
    "demo": _FIXTURES / "demo" / "cluster.yaml",
}
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TEMPLATED = ("Deployment", "StatefulSet", "DaemonSet")
_SIZED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_NOTHING = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mutant", "namespace": "default"}}
_LOW = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "mutant-low"},
    "value": -1_000_000,
}


class Outcome(NamedTuple):
    """The result of checking a mutation: whether it passes, the headline, and the rules with findings."""

    cluster: str
    subject: str
    passed: bool
    summary: str
    rules: list[str]

    @property
    def is_harmless(self) -> bool:
        """Whether it is reported as harmless."""
        return "harmless" in self.summary


class Change(NamedTuple):
    """What is applied, and the previous manifests, which are pruned."""

    documents: list[Object]
    base: list[Object] = []
    delete: list[str] = []


class Mutation(NamedTuple):
    """A way to lower protection: ``make`` returns the change of an object as a manifest, or ``None`` if it has none.

    ``must_fail`` means that the check fails; it is never reported as harmless.
    """

    name: str
    kinds: Sequence[str]
    make: Callable[[Object, ExampleCluster], Change | None]
    must_fail: bool = True


class ExampleCluster:
    """An example cluster, with its objects as manifests."""

    def __init__(self, name: str) -> None:
        path = CLUSTER_FILES[name]
        self.name = name
        self.cluster = Cluster.load(path)
        self.objects = [each for each in _documents(path) if each["kind"] != "Event"]

    def of(self, *kinds: str) -> list[Object]:
        """The objects of some kinds."""
        return [each for each in self.objects if each["kind"] in kinds]

    def selecting(self, labels: Object, namespace: str) -> list[Object]:
        """The PDBs that select these pods by matchLabels."""
        return [
            each
            for each in self.of("PodDisruptionBudget")
            if each["metadata"]["namespace"] == namespace
            if (wanted := each["spec"]["selector"].get("matchLabels")) and wanted.items() <= labels.items()
        ]

    def check(self, change: Change) -> Any:
        """Check the change."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.cluster.check(change.documents, base=change.base, prune=bool(change.base), delete=change.delete)


@cache
def example(name: str) -> ExampleCluster:
    """The cluster of that name, read once."""
    return ExampleCluster(name)


def _documents(path: Path) -> Iterator[Object]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    found = [json.loads(text)] if ".json" in path.suffixes else yaml.safe_load_all(text)
    for each in filter(None, found):
        yield from each.get("items", [each] if "kind" in each else [])


def manifest_of(document: Object) -> Object:
    """An object of a cluster as a manifest: without its status and fields that only the server sets."""
    manifest = {key: deepcopy(value) for key, value in document.items() if key != "status"}
    for field in _SERVER_FIELDS:
        manifest["metadata"].pop(field, None)
    manifest["metadata"].get("annotations", {}).pop(_LAST_APPLIED, None)
    return manifest


def _one(make: Callable[[Object], object]) -> Callable[[Object, ExampleCluster], Change | None]:
    """A mutation that edits the object itself; one that returns ``False`` does not apply."""

    def change(document: Object, _cluster: ExampleCluster) -> Change | None:
        return None if make(document) is False else Change([document])

    return change


def _pdb(spec: Object) -> Callable[[Object, ExampleCluster], Change | None]:
    """Set these fields in the spec of a PDB; ``None`` removes one."""

    def edit(document: Object) -> None:
        merged = {**document["spec"], **spec}
        document["spec"] = {key: value for key, value in merged.items() if value is not None}

    return _one(edit)


def _one_more(document: Object) -> bool | None:
    spec = document["spec"]
    field, step = ("maxUnavailable", 1) if "maxUnavailable" in spec else ("minAvailable", -1)
    if not isinstance(spec[field], int) or spec[field] + step < 0:
        return False
    spec[field] += step
    return None


def _mistyped(document: Object) -> bool | None:
    labels = document["spec"]["selector"].get("matchLabels")
    if not labels:
        return False
    key = next(iter(labels))
    labels[key] += "x"
    return None


def _narrowed(document: Object) -> None:
    own = {"key": "mutant", "operator": "Exists"}
    document["spec"]["selector"].setdefault("matchExpressions", []).append(own)


def _second_pdb(document: Object, _cluster: ExampleCluster) -> Change:
    document["metadata"]["name"] += "-mutant"
    document["spec"] = {"selector": document["spec"]["selector"], "maxUnavailable": "100%"}
    return Change([document])


def _moved_pdb(document: Object, _cluster: ExampleCluster) -> Change | None:
    moved = deepcopy(document)
    moved["metadata"]["namespace"] = "default"
    return None if moved == document else Change([moved], [document])


def _pruned(document: Object, _cluster: ExampleCluster) -> Change:
    return Change([_NOTHING], [_NOTHING, document])


def _pruned_if_protecting(document: Object, cluster: ExampleCluster) -> Change | None:
    pods = [each["metadata"] for each in cluster.of("Pod")]
    names = [
        each["metadata"]["name"] for pod in pods for each in cluster.selecting(pod.get("labels", {}), pod["namespace"])
    ]
    return _pruned(document, cluster) if document["metadata"]["name"] in names else None


def _pruned_if_used(document: Object, cluster: ExampleCluster) -> Change | None:
    name = document["metadata"]["name"]
    used = any(
        each["spec"].get("priorityClassName") == name and each["metadata"].get("ownerReferences")
        for each in cluster.of("Pod")
    )
    return Change([_NOTHING], [_NOTHING, document]) if used and not name.startswith("system-") else None


def _pod_spec(document: Object) -> Object:
    spec = document["spec"]
    spec = spec["jobTemplate"]["spec"] if document["kind"] == "CronJob" else spec
    found: Object = spec["template"]["spec"]
    return found


def _low_class(document: Object, _cluster: ExampleCluster) -> Change:
    spec = _pod_spec(document)
    spec["priorityClassName"] = "mutant-low"
    spec.pop("priority", None)
    return Change([_LOW, document])


def _no_class(document: Object, cluster: ExampleCluster) -> Change | None:
    spec = _pod_spec(document)
    spec.pop("priority", None)
    name = spec.pop("priorityClassName", "")
    values = {each["metadata"]["name"]: each["value"] for each in cluster.of("PriorityClass")}
    default = next((each["value"] for each in cluster.of("PriorityClass") if each.get("globalDefault")), 0)
    return Change([document]) if values.get(name, 0) > default else None


def _never_preempts(document: Object) -> None:
    _pod_spec(document)["preemptionPolicy"] = "Never"


def _lower_value(document: Object) -> None:
    document["value"] -= 1


def _new_default(value: int) -> Callable[[Object, ExampleCluster], Change]:
    def change(document: Object, _cluster: ExampleCluster) -> Change:
        document["metadata"]["name"] = "mutant-default"
        return Change([{**document, "value": value, "globalDefault": True}])

    return change


def _relabeled_template(document: Object, cluster: ExampleCluster) -> Change | None:
    """Change a label of the template that a PDB selects and the workload does not, otherwise any of it."""
    labels = document["spec"]["template"]["metadata"]["labels"]
    budgets = cluster.selecting(labels, document["metadata"]["namespace"])
    if not budgets:
        return None
    own = document["spec"]["selector"]["matchLabels"]
    wanted = [key for each in budgets for key in each["spec"]["selector"]["matchLabels"]]
    key = next((each for each in wanted if each not in own), wanted[0])
    labels[key] += "x"
    return Change([document])


def _relabeled_pod(document: Object, cluster: ExampleCluster) -> Change | None:
    labels = document["metadata"].get("labels", {})
    budgets = cluster.selecting(labels, document["metadata"]["namespace"])
    if not budgets:
        return None
    labels[next(iter(budgets[0]["spec"]["selector"]["matchLabels"]))] += "x"
    return Change([document])


def _fewer(document: Object) -> bool | None:
    replicas = document["spec"].get("replicas", 1)
    document["spec"]["replicas"] = replicas // 2
    return None if replicas > 1 else False


def _to_zero(document: Object) -> bool | None:
    is_owned = document["metadata"].get("ownerReferences")
    is_zero = document["spec"].get("replicas", 1) == 0
    document["spec"]["replicas"] = 0
    return False if is_owned or is_zero else None


def _under_pdb(document: Object, cluster: ExampleCluster) -> Change | None:
    """Scale down to as few replicas as the PDB requires."""
    labels = document["spec"]["template"]["metadata"]["labels"]
    for each in cluster.selecting(labels, document["metadata"]["namespace"]):
        least = each["spec"].get("minAvailable")
        if isinstance(least, int) and 0 < least < document["spec"].get("replicas", 1):
            document["spec"]["replicas"] = least
            return Change([document])
    return None


def _without_owner(document: Object) -> bool | None:
    owners = document["metadata"].pop("ownerReferences", [])
    return None if any(each.get("controller") for each in owners) else False


def _no_longer_managed(document: Object) -> bool | None:
    owners = document["metadata"].get("ownerReferences", [])
    is_managed = any(each.get("controller") for each in owners)
    for each in owners:
        each["controller"] = False
    return None if is_managed else False


def _labels_of_namespace(document: Object) -> None:
    labels = document["metadata"].setdefault("labels", {})
    labels["pod-security.kubernetes.io/enforce"] = "privileged"


def _higher(document: Object) -> None:
    document["spec"]["hard"] = dict.fromkeys(document["spec"]["hard"], "1000Ti")


def _without_limit(document: Object) -> None:
    document["spec"]["hard"].popitem()


def _scoped(document: Object) -> None:
    document["spec"]["scopes"] = [*document["spec"].get("scopes", []), "NotTerminating"]


def _wider_range(document: Object) -> bool | None:
    limits = [each for each in document["spec"]["limits"] if each.pop("max", None)]
    return None if limits else False


def _other_selector(document: Object) -> bool | None:
    selector = document["spec"].get("selector")
    if not selector:
        return False
    labels = selector.get("matchLabels", selector)
    labels[next(iter(labels))] += "x"
    return None


_PDB = ("PodDisruptionBudget",)
_CLASS = ("PriorityClass",)
_WORKLOADS = (*_TEMPLATED, "CronJob")

MUTATIONS = (
    Mutation("PDB allows one more", _PDB, _one(_one_more)),
    Mutation("PDB allows all", _PDB, _pdb({"maxUnavailable": "100%", "minAvailable": None})),
    Mutation("PDB keeps none", _PDB, _pdb({"minAvailable": 0, "maxUnavailable": None})),
    Mutation("PDB lets unready pods go", _PDB, _pdb({"unhealthyPodEvictionPolicy": "AlwaysAllow"})),
    Mutation("PDB keeps all", _PDB, _pdb({"minAvailable": "100%", "maxUnavailable": None}), must_fail=False),
    Mutation("PDB with a mistyped selector", _PDB, _one(_mistyped)),
    Mutation("PDB with a narrower selector", _PDB, _one(_narrowed)),
    Mutation("PDB with an empty selector", _PDB, _pdb({"selector": {}})),
    Mutation("PDB without a selector", _PDB, _pdb({"selector": None})),
    Mutation("second PDB on the same pods", _PDB, _second_pdb),
    Mutation("PDB moved to another namespace", _PDB, _moved_pdb),
    Mutation("PDB pruned", _PDB, _pruned_if_protecting),
    Mutation("template relabeled out of a PDB", _TEMPLATED, _relabeled_template),
    Mutation("pod relabeled out of a PDB", ("Pod",), _relabeled_pod),
    Mutation("lower class in a template", _WORKLOADS, _low_class),
    Mutation("no class in a template", _WORKLOADS, _no_class),
    Mutation("template never preempts", _WORKLOADS, _one(_never_preempts)),
    Mutation("lower value of a class", _CLASS, _one(_lower_value)),
    Mutation("new default class above others", _CLASS, _new_default(1_000_000)),
    Mutation("new default class below others", _CLASS, _new_default(-1_000_000)),
    Mutation("class in use pruned", _CLASS, _pruned_if_used),
    Mutation("fewer replicas", _SIZED, _one(_fewer), must_fail=False),
    Mutation("replicas down to minAvailable", _TEMPLATED, _under_pdb),
    Mutation("owner left out", ("Pod", "ReplicaSet", "Job"), _one(_without_owner)),
    Mutation("owner no longer controls", ("Pod", "ReplicaSet", "Job"), _one(_no_longer_managed)),
    Mutation("label of Pod Security", ("Namespace",), _one(_labels_of_namespace)),
    Mutation("quota raised", ("ResourceQuota",), _one(_higher)),
    Mutation("quota without a limit", ("ResourceQuota",), _one(_without_limit)),
    Mutation("quota for fewer pods", ("ResourceQuota",), _one(_scoped)),
    Mutation("quota pruned", ("ResourceQuota",), _pruned),
    Mutation("range without a maximum", ("LimitRange",), _one(_wider_range)),
    Mutation("range pruned", ("LimitRange",), _pruned),
    Mutation("another selector of a workload", (*_TEMPLATED, "ReplicaSet"), _one(_other_selector)),
    Mutation("scaled to zero", _SIZED, _one(_to_zero)),
    Mutation("another selector of a Service", ("Service",), _one(_other_selector)),
    Mutation("workload pruned", _WORKLOADS, _pruned, must_fail=False),
    Mutation("claim, Service or Namespace pruned", ("PersistentVolumeClaim", "Service", "Namespace"), _pruned, False),
)


def outcomes(mutation: Mutation, cluster: ExampleCluster, most: int | None = None) -> Iterator[Outcome]:
    """The result of checking a mutation of each object, or of the first ``most`` that have it."""
    for document in cluster.of(*mutation.kinds):
        if most is not None and most <= 0:
            return
        change = mutation.make(manifest_of(document), cluster)
        if change is None:
            continue
        most = None if most is None else most - 1
        metadata = document["metadata"]
        subject = f"{document['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
        try:
            answer = cluster.check(change)
        except KpreemptError as error:
            # Invalid input is not reported as harmless, either.
            yield Outcome(cluster.name, subject, passed=False, summary=error.message, rules=[])
            continue
        rules = sorted({str(each.rule) for each in answer.findings})
        yield Outcome(cluster.name, subject, answer.passed, answer.summary, rules)


def faults(mutation: Mutation, found: Sequence[Outcome]) -> list[Outcome]:
    """Those that are reported as harmless, or that do not fail though they must."""
    return [each for each in found if each.is_harmless or (mutation.must_fail and each.passed)]


def main() -> None:
    """Print one line for each mutation, and below it the objects that are reported as harmless, or do not fail."""
    for mutation in MUTATIONS:
        found = [each for name in CLUSTER_FILES for each in outcomes(mutation, example(name))]
        wrong = faults(mutation, found)
        red = sum(not each.passed for each in found)
        sys.stdout.write(f"{mutation.name}: {len(found)} made, {red} red, {len(wrong)} wrong\n")
        for each in wrong:
            sys.stdout.write(f"  {each.cluster} {each.subject}: {each.summary} [{', '.join(each.rules)}]\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
