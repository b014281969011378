from __future__ import annotations

import pytest

from kpreempt.model.wanted import NOTHING_WANTED, ObjectKind, Wanted, all_wanted

QUOTA = ObjectKind("ElasticQuota", "scheduling.x-k8s.io", "v1alpha1")
CLASS = ObjectKind("PriorityClass", "scheduling.k8s.io", is_namespaced=False)


@pytest.mark.parametrize(
    ("kind", "key", "resource"),
    [
        pytest.param(QUOTA, "ElasticQuota.scheduling.x-k8s.io", "elasticquotas", id="a custom kind"),
        pytest.param(ObjectKind("Namespace"), "Namespace", "namespaces", id="one of the core group"),
        pytest.param(
            ObjectKind("NodeTopology", "x.io", "v1", "topologies"), "NodeTopology.x.io", "topologies", id="own plural"
        ),
    ],
)
def test_a_kind_is_known_by_kind_and_group_and_listed_by_its_plural(kind: ObjectKind, key: str, resource: str) -> None:
    assert (kind.key, kind.resource) == (key, resource)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(("Secret",), id="Secrets"),
        pytest.param(("ConfigMap",), id="ConfigMaps"),
        pytest.param(("Secret", "vault.example.com", "v1"), id="what is called a Secret elsewhere"),
        pytest.param(("Other", "", "v1", "secrets"), id="Secrets by their plural"),
        pytest.param(("SecretList", "", "v1"), id="a list of Secrets"),
        pytest.param(("",), id="nothing"),
        pytest.param(("Quota", "x.io/v1"), id="a group with a version in it"),
        pytest.param(("Quota", "x.io", "v1/namespaces"), id="a version that leads elsewhere"),
        pytest.param(("Quota", "x.io", "v1", "../secrets"), id="a plural that leads elsewhere"),
        pytest.param(("Quo\nta",), id="a kind with a line end"),
        pytest.param(("Quota\n",), id="a kind that ends with a line end"),
    ],
)
def test_what_is_no_kind_or_must_not_be_read_is_refused(parts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"is not the|never read"):
        ObjectKind(*parts)


def test_what_several_want_is_wanted_once() -> None:
    bare = ObjectKind("ElasticQuota", "scheduling.x-k8s.io")
    wanted = all_wanted([Wanted((bare,)), Wanted((CLASS, QUOTA)), Wanted(pod_annotations=True)])
    assert wanted == Wanted((QUOTA, CLASS), pod_annotations=True)
    assert wanted.beyond(Wanted((bare,))) == Wanted((CLASS,), pod_annotations=True)
    assert not wanted.beyond(wanted)
    conditions = Wanted(pod_conditions=True)
    assert wanted | conditions == Wanted((QUOTA, CLASS), pod_annotations=True, pod_conditions=True)
    assert conditions.beyond(wanted) == conditions
    assert not conditions.beyond(wanted | conditions)


def test_nothing_is_wanted_unless_something_asks() -> None:
    assert not NOTHING_WANTED
    assert all_wanted([]) == NOTHING_WANTED == NOTHING_WANTED | Wanted()
    assert Wanted((QUOTA,))
    assert Wanted(pod_annotations=True)
    assert Wanted(pod_conditions=True)
