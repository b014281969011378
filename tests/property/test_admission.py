"""Laws of admission over generated pods and budgets."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.admission import admit, apply_api_defaults, fill_budget_statuses
from kpreempt.admission.admit import merge_tolerations
from kpreempt.admission.pod_resources import format_nano
from kpreempt.admission.records import PodRejectedError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.quantity import NANO_PER_MILLI, Quantity, quantity
from kpreempt.model.taints import Taint, Toleration
from kpreempt.model.workloads import LimitRange

QUANTITIES = st.sampled_from(["0", "1", "2", "100m", "1500u", "1n", "1Gi", "3Mi", "1e3"])
RESOURCES = st.dictionaries(st.sampled_from(["cpu", "memory", "hugepages-2Mi", "example.com/gpu"]), QUANTITIES)
REQUIREMENTS = st.fixed_dictionaries({}, optional={"requests": RESOURCES, "limits": RESOURCES})
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"resources": REQUIREMENTS},
        optional={
            "restartPolicy": st.just("Always"),
            "ports": st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 99)}), max_size=2),
        },
    ),
    max_size=3,
)
PODS = st.fixed_dictionaries(
    {"metadata": st.just({"name": "a", "namespace": "shop", "labels": {"app": "web"}})},
    optional={
        "spec": st.fixed_dictionaries(
            {"containers": CONTAINERS, "initContainers": CONTAINERS},
            optional={"resources": REQUIREMENTS, "hostNetwork": st.booleans()},
        )
    },
)
TOLERATIONS = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(["", "a", "b"]),
        operator=st.sampled_from(["Equal", "Exists"]),
        value=st.sampled_from(["", "x"]),
        effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
    ),
    max_size=4,
)


def read(record: type, document: dict[str, Any]) -> Any:
    return msgspec.convert(document, record, dec_hook=lambda _, text: quantity(text))


@given(PODS)
def test_defaulting_twice_changes_nothing_more(document: dict[str, Any]) -> None:
    once = apply_api_defaults(read(Pod, document))
    assert apply_api_defaults(once) == once


@given(PODS)
def test_every_limit_is_a_request_and_no_amount_is_finer_than_a_thousandth(document: dict[str, Any]) -> None:
    pod = apply_api_defaults(read(Pod, document))
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        assert container.resources.limits.keys() <= container.resources.requests.keys()
        assert all(amount.nano % NANO_PER_MILLI == 0 for amount in container.resources.requests.values())


@given(PODS, st.dictionaries(st.sampled_from(["default", "defaultRequest"]), RESOURCES))
def test_an_admitted_pod_is_admitted_as_it_is(document: dict[str, Any], item: dict[str, Any]) -> None:
    limits = {"metadata": {"name": "l", "namespace": "shop"}, "spec": {"limits": [{"type": "Container", **item}]}}
    cluster = ClusterSnapshot(limit_ranges=[read(LimitRange, limits)])
    pod = read(Pod, document)
    before = msgspec.json.encode(pod, enc_hook=str)
    try:
        once = admit(pod, cluster)
    except PodRejectedError:
        # A request above its limit, which may be a default one.
        once = None
    assert once is None or admit(once.pod, cluster).pod == once.pod
    assert msgspec.json.encode(pod, enc_hook=str) == before


@given(TOLERATIONS, TOLERATIONS)
def test_merged_tolerations_tolerate_the_same_taints(first: list[Toleration], second: list[Toleration]) -> None:
    merged = merge_tolerations(first, second)
    for key in ("a", "b"):
        for value in ("", "x"):
            for effect in ("NoSchedule", "NoExecute"):
                taint = Taint(key=key, value=value, effect=effect)
                tolerated = any(each.tolerates(taint) for each in (*first, *second))
                assert any(each.tolerates(taint) for each in merged) == tolerated


@given(st.integers(-(10**24), 10**24), st.booleans())
def test_formatted_amounts_read_back_exactly(nano: int, binary: bool) -> None:
    assert Quantity(format_nano(nano, binary=binary)).nano == nano


@given(
    st.integers(0, 6),
    st.integers(0, 6),
    st.one_of(st.integers(0, 8), st.integers(0, 120).map("{}%".format)),
    st.sampled_from(["minAvailable", "maxUnavailable"]),
)
def test_a_budget_never_allows_more_than_its_healthy_pods(
    ready: int, unready: int, amount: int | str, field: str
) -> None:
    pods = [
        read(
            Pod,
            {
                "metadata": {
                    "name": str(index),
                    "namespace": "shop",
                    "labels": {"app": "web"},
                    "ownerReferences": [{"kind": "Set", "name": "s", "apiVersion": "x/v1", "controller": True}],
                },
                "status": {"conditions": [{"type": "Ready", "status": str(index < ready)}]},
            },
        )
        for index in range(ready + unready)
    ]
    spec = {"selector": {"matchLabels": {"app": "web"}}, field: amount}
    budget = read(PodDisruptionBudget, {"metadata": {"name": "b", "namespace": "shop"}, "spec": spec})
    cluster = fill_budget_statuses(ClusterSnapshot(pods=pods, pod_disruption_budgets=[budget]))[0]
    status = cluster.pod_disruption_budgets[0].status
    assert status is not None
    assert 0 <= status.disruptions_allowed <= status.current_healthy == ready
