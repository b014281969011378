from __future__ import annotations

import pytest

from kpreempt.model.extra_fields import NO_EXTRAS, ExtraFields, ObjectKind, all_extras

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
    extra_fields = all_extras([ExtraFields((bare,)), ExtraFields((CLASS, QUOTA)), ExtraFields(pod_annotations=True)])
    assert extra_fields == ExtraFields((QUOTA, CLASS), pod_annotations=True)
    assert extra_fields.beyond(ExtraFields((bare,))) == ExtraFields((CLASS,), pod_annotations=True)
    assert not extra_fields.beyond(extra_fields)
    conditions = ExtraFields(pod_conditions=True)
    assert extra_fields | conditions == ExtraFields((QUOTA, CLASS), pod_annotations=True, pod_conditions=True)
    assert conditions.beyond(extra_fields) == conditions
    assert not conditions.beyond(extra_fields | conditions)


def test_nothing_is_wanted_unless_something_asks() -> None:
    assert not NO_EXTRAS
    assert all_extras([]) == NO_EXTRAS == NO_EXTRAS | ExtraFields()
    assert ExtraFields((QUOTA,))
    assert ExtraFields(pod_annotations=True)
    assert ExtraFields(pod_conditions=True)
