# ruff: noqa: E501 - strategies read better in rows
"""Laws of changes: existing objects are not modified, and every difference is detected."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.analysis.check.rollout.apply import same_template
from kpreempt.analysis.check.rollout.review import Review
from kpreempt.verdict.check import ChangeKind
from tests.unit.analysis.rollout.changes import plan_of, served, workload

Document = dict[str, Any]

names = st.sampled_from(["a", "b", "c"])
amounts = st.sampled_from(["1", "1000m", "250m", "1Gi", "1024Mi", 2])
modes = st.sampled_from([0o400, 0o644])


def sometimes(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=fields)


def named(element: st.SearchStrategy[Document], key: str = "name") -> st.SearchStrategy[list[Document]]:
    """Up to three elements of different names."""
    return st.lists(st.tuples(names, element), max_size=3, unique_by=lambda each: each[0]).map(
        lambda found: [{key: name, **each} for name, each in found]
    )


probes = st.one_of(
    st.builds(lambda port: {"httpGet": {"port": port}}, st.sampled_from([80, "http"])),
    st.builds(lambda command, period: {"exec": {"command": command}, "periodSeconds": period}, st.lists(names, min_size=1, max_size=2), st.integers(1, 20)),
    st.just({"grpc": {"port": 5}}),
)  # fmt: skip
variables = st.one_of(
    st.builds(lambda value: {"value": value}, st.sampled_from(["", "1", "x"])),
    st.just({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    st.just({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}),
)
containers = st.builds(
    lambda image, rest: {"image": image, **rest},
    st.sampled_from(["shop/api:1", "shop/api", "r.example:5000/api@sha256:1", "api:latest"]),
    sometimes(
        env=named(variables),
        command=st.lists(names, max_size=2),
        resources=sometimes(requests=st.dictionaries(names, amounts, max_size=2), limits=st.dictionaries(names, amounts, max_size=2)),
        livenessProbe=probes,
        ports=st.lists(st.integers(1, 3), unique=True, max_size=2).map(lambda ports: [{"containerPort": each} for each in ports]),
        volumeMounts=named(st.builds(lambda name, rest: {"name": name, **rest}, names, sometimes(readOnly=st.booleans())), "mountPath"),
        securityContext=sometimes(privileged=st.booleans(), runAsUser=st.integers(0, 2)),
        tty=st.booleans(),
    ),
)  # fmt: skip
volumes = st.one_of(
    st.just({}),
    st.builds(lambda mode: {"secret": {"secretName": "s", "defaultMode": mode}}, modes),
    st.just({"configMap": {"name": "c"}}),
    st.just({"hostPath": {"path": "/x"}}),
    st.builds(lambda size: {"emptyDir": {"sizeLimit": size}}, amounts),
)
templates = st.builds(
    lambda found, labels, rest: {
        "metadata": {"labels": {"app": "api", **labels}},
        "spec": {"containers": found, **rest},
    },
    named(containers).filter(bool),
    st.dictionaries(names, names, max_size=2),
    sometimes(
        initContainers=named(containers),
        volumes=named(volumes),
        tolerations=st.lists(sometimes(key=names, value=names, operator=st.just("Equal")), max_size=2),
        nodeSelector=st.dictionaries(names, names, max_size=2),
        serviceAccountName=names,
        hostNetwork=st.booleans(),
        terminationGracePeriodSeconds=st.integers(0, 60),
        priorityClassName=names,
    ),
)
kinds = st.sampled_from(["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])


@st.composite
def workloads(draw: st.DrawFn) -> Document:
    kind = draw(kinds)
    spec = draw(sometimes(minReadySeconds=st.integers(0, 3)))
    if kind != "ReplicaSet":
        spec |= draw(sometimes(revisionHistoryLimit=st.integers(0, 3)))
    if kind != "DaemonSet":
        spec |= draw(sometimes(replicas=st.integers(0, 5)))
    return workload(kind, template=draw(templates), **spec)


def shuffled(value: Any, draw: st.DrawFn) -> Any:
    """The same with the keys of every mapping in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(list(value)))}
    return [shuffled(each, draw) for each in value] if isinstance(value, list) else value


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values that are not mappings or lists."""
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*path, key))
    else:
        yield path


def with_value(document: Document, path: tuple[Any, ...], change: Any) -> Document:
    result = copy.deepcopy(document)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return result


def another(value: Any) -> Any:
    """Another value of the type, with another meaning."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else "17" if str(value)[:1].isdigit() else f"{value}x"


@pytest.fixture(autouse=True, scope="module")
def _accepting_server() -> Iterator[None]:
    """Accept every object: these laws are about differences, and hold for objects that the API server rejects, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Review, "problems", lambda _self, _document: [])
        yield


@pytest.mark.parametrize("applied", [True, False], ids=["applied before", "by someone else"])
@settings(max_examples=40)
@given(document=workloads())
def test_a_manifest_does_not_change_the_stored_object(applied: bool, document: Document) -> None:
    plan = plan_of(document, served(document, applied=applied))
    assert [(each.kind, each.fields) for each in plan.changes] == [(ChangeKind.UNCHANGED, [])]


@settings(max_examples=40)
@given(document=workloads(), data=st.data())
def test_the_order_of_keys_never_matters(document: Document, data: st.DataObject) -> None:
    other = shuffled(document, data.draw)
    assert [each.kind for each in plan_of(other, served(document)).changes] == [ChangeKind.UNCHANGED]
    assert same_template(document["spec"]["template"], other["spec"]["template"])


@pytest.mark.parametrize("applied", [True, False], ids=["applied before", "by someone else"])
@settings(max_examples=40)
@given(document=workloads(), data=st.data())
def test_any_other_value_changes_a_template(applied: bool, document: Document, data: st.DataObject) -> None:
    template = document["spec"]["template"]
    # Another operator is invalid, and the selector requires the label.
    kept = (("metadata", "labels", "app"),)
    paths = [each for each in leaves(template) if each[-1] != "operator" and tuple(each) not in kept]
    path = data.draw(st.sampled_from(paths))
    changed = with_value(template, path, another)
    other = {**document, "spec": {**document["spec"], "template": changed}}
    plan = plan_of(other, served(document, applied=applied))
    assert [each.fields[:1] != [] and each.fields[0].startswith("spec.template") for each in plan.changes] == [True]
    assert [each.is_same_template for each in plan.workloads] == [False]
    assert not same_template(template, changed)


@settings(max_examples=40)
@given(before=workloads(), after=workloads())
def test_what_was_applied_is_no_change_when_it_is_applied_again(before: Document, after: Document) -> None:
    after = {**after, "kind": before["kind"]}
    plan = plan_of(after, served(before, applied=True))
    for planned in plan.workloads:
        assert planned.after is not None
        applied = copy.deepcopy(planned.after)
        applied["metadata"]["annotations"] = served(after, applied=True)["metadata"]["annotations"]
        again = plan_of(after, served(applied) | {"metadata": applied["metadata"]})
        assert [(each.kind, each.fields) for each in again.changes] == [(ChangeKind.UNCHANGED, [])]


tools = ("helm.sh/", "argocd.argoproj.io/", "kubernetes.io/", "kustomize.toolkit.fluxcd.io/")
moments = st.sampled_from(
    ["test", "pre-delete", "pre-upgrade,test", "Skip", "SyncFail", "PreSync", "none", "", "-1", "7", "true"]
)
annotations = st.dictionaries(
    st.builds("".join, st.tuples(st.sampled_from(tools), st.sampled_from(["hook", "sync-wave", "hook-weight", "ignore"]))),
    moments,
    min_size=1,
    max_size=3,
)  # fmt: skip


@settings(max_examples=40)
@given(document=workloads(), there=st.none() | workloads(), noted=annotations)
def test_no_annotation_takes_an_object_out_of_what_kubectl_applies(
    document: Document, there: Document | None, noted: dict[str, str]
) -> None:
    metadata = {**document["metadata"], "annotations": noted}
    live = [] if there is None else [served({**there, "kind": document["kind"]})]
    plain, marked = plan_of(document, *live), plan_of({**document, "metadata": metadata}, *live)
    expected = [(each.object, each.kind) for each in plain.changes if each.kind is not ChangeKind.UNCHANGED]
    found = [(each.object, each.kind) for each in marked.changes]
    # If it is otherwise unchanged, its annotations change.
    assert found == (expected or [(plain.changes[0].object, ChangeKind.UPDATED)])
    assert (marked.order, marked.duplicates) == (plain.order, {})
    assert [each.after and each.after["spec"] for each in marked.workloads][: len(plain.workloads)] == [
        each.after and each.after["spec"] for each in plain.workloads
    ]


@settings(max_examples=40)
@given(first=workloads(), last=workloads())
def test_a_document_that_is_replaced_is_a_duplicate_or_changes_nothing(first: Document, last: Document) -> None:
    last = {**last, "kind": first["kind"], "apiVersion": first["apiVersion"]}
    plan, alone = plan_of([first, last]), plan_of(last)
    assert [(each.object, each.kind) for each in plan.changes] == [(each.object, each.kind) for each in alone.changes]
    assert bool(plan.duplicates) is (first["spec"] != last["spec"])
    assert not plan_of([first, last], served(first)).duplicates
