"""The pods in question: from manifests, from a cluster, or from a few flags.

Manifests are plain data, so that overrides can change them before they are decoded. What a controller adds when it makes
a pod from a template follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go``,
``pkg/controller/{deployment,statefulset,daemon,job}``; names that the controllers would make up are ``NAME-new``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from kpreempt.analysis.daemon_template import add_daemon_tolerations, tie_to_node
from kpreempt.errors import InputError, NotFoundError, UsageError

Document = dict[str, Any]

class Subjects(msgspec.Struct, frozen=True):
    """The pods that some manifests ask for, and a note on each object that asks for none."""

    templates: list[PodTemplate]
    notes: list[str] = []


def subjects_of(documents: Iterable[tuple[Document, str, int]]) -> Subjects:
    """The pods of all documents, each given with its source and line, in order.

    Raises ``InputError`` for a document that cannot be read, or where no document has a pod.
    """
    templates: list[PodTemplate] = []
    notes: list[str] = []
    sources: dict[str, None] = {}
    for document, source, line in documents:
        sources[source] = None
        found = pods_of(document, source=source, line=line)
        templates += found
        if not found:
            notes.append(f"{describe(document)} has no pod template and is ignored")
    if not templates:
        kinds = ", ".join(WORKLOAD_KINDS)
        raise InputError(f"no pod in it: expected one of {kinds}", source=", ".join(filter(None, sources)))
    return Subjects(templates, notes)


def select(templates: Sequence[PodTemplate], wanted: str) -> list[PodTemplate]:
    """The templates of ``KIND/NAME``; kinds in any case, short (``deploy``) or plural.

    Raises ``UsageError`` for a text of another shape and ``NotFoundError`` for one that fits nothing, listing what
    there is.
    """
    kind, slash, name = wanted.partition("/")
    if not slash or not kind or not name:
        raise UsageError(f'"{wanted}" does not select an object', hint="KIND/NAME, such as deployment/api")
    found = [each for each in templates if each.name == name and _is_kind(kind, each.kind)]
    if not found:
        there = [f"{each.kind.lower()}/{each.name}" for each in templates]
        near = difflib.get_close_matches(f"{kind.lower()}/{name}", there, n=1)
        raise NotFoundError(f'nothing is "{wanted}"; there is: {", ".join(there)}', hint=near[0] if near else "")
    return found


def pod_from_flags(
    *,
    cpu: str = "",
    memory: str = "",
    resources: Mapping[str, str] | None = None,
    priority_class: str = "",
    name: str = "pod",
    namespace: str = DEFAULT_NAMESPACE,
) -> PodTemplate:
    """A pod with one container that asks for these amounts (quantities as text)."""
    requests = dict(resources or {})
    requests |= {key: amount for key, amount in (("cpu", cpu), ("memory", memory)) if amount}
    # The API server wants limits equal to requests for what cannot be overcommitted.
    limits = {key: amount for key, amount in requests.items() if "/" in key or key.startswith("hugepages-")}
    spec: Document = {"containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return PodTemplate(kind="Pod", name=name, namespace=namespace, document=document)


def in_namespace(template: PodTemplate, namespace: str) -> PodTemplate:
    """The same template in another namespace, with all that belongs to it."""

    def moved(document: Document) -> Document:
        return {**document, "metadata": {**document["metadata"], "namespace": namespace}}

    return msgspec.structs.replace(
        template,
        namespace=namespace,
        origin=f"{template.kind} {namespace}/{template.name}" if template.origin else "",
        document=moved(template.document),
        claims=[moved(claim) for claim in template.claims],
        owners=[moved(owner) for owner in template.owners],
    )


def for_nodes(template: PodTemplate, node_names: Iterable[str]) -> list[PodTemplate]:
    """A DaemonSet's pod once per node, each tied to its node as the controller does."""
    tied = []
    for node_name in node_names:
        document = deepcopy(template.document)
        document["metadata"]["name"] = joined(template.name, node_name)
        tie_to_node(document["spec"], node_name)
        tied.append(msgspec.structs.replace(template, document=document))
    return tied


def _is_kind(text: str, kind: str) -> bool:
    text = text.partition(".")[0].lower()
    return text in (kind.lower(), f"{kind.lower()}s", *WORKLOAD_KINDS.get(kind, ()))


