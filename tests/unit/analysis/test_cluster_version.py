"""Which algorithm stands for a cluster where none is named, and what is said of the version where one is."""

from __future__ import annotations

import pytest

from kpreempt.analysis.algorithms import AUTO, algorithm_for
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node, NodeStatus, NodeSystemInfo
from kpreempt.scheduler_table import LATEST_ALGORITHM, LATEST_VERSION, RELEASES
from kpreempt.schedulers.kube.versions import ALIKE, minor_of
from kpreempt.verdict import AssumptionKind
from tests.factories import LATER_VERSION

TOLD, UNMODELED = AssumptionKind.INFORMATIONAL, AssumptionKind.UNMODELED


def cluster(server: str = "", *kubelets: str) -> ClusterSnapshot:
    """A cluster of a server's version with nodes of these kubelets."""
    nodes = [Node(status=NodeStatus(node_info=NodeSystemInfo(kubelet_version=each))) for each in kubelets]
    return ClusterSnapshot(version=server, nodes=nodes)


@pytest.mark.parametrize(
    ("server", "algorithm"),
    [
        pytest.param("v1.36.3", "kube-1.36", id="the release that the minor version stands for"),
        pytest.param("v1.33.9-eks-abc123", "kube-1.33", id="a managed one, whose patch decides as the last one"),
        pytest.param("v1.33.5-gke.1090000", "kube-1.33.5", id="a managed one, whose patch does not"),
        pytest.param("v1.34.1+k3s1", "kube-1.34.1", id="a distribution's patch that words taints otherwise"),
        pytest.param("v1.29.0", "kube-1.29.0", id="the first patch of the oldest one"),
        pytest.param("1.31+", "kube-1.31", id="a minor version alone"),
        pytest.param("v1.37.0-rc.1", "kube-1.37", id="one that is not out yet"),
        pytest.param("v1.18.20", "kube-1.18", id="one of the old schedulers"),
        pytest.param("v1.8.15", "kube-1.8", id="the oldest scheduler"),
    ],
)
def test_a_known_and_modeled_version_is_used_without_an_assumption(server: str, algorithm: str) -> None:
    assert algorithm_for(AUTO, cluster(server, "v1.30.0")) == (algorithm, [])


@pytest.mark.parametrize(
    ("kubelets", "algorithm"),
    [
        pytest.param(["v1.33.5-eks-abc123"], "kube-1.33", id="one"),
        pytest.param(["v1.9.9", "v1.32.13", "v1.33.1", "v1.33.0"], "kube-1.33", id="the newest of several"),
        pytest.param(["kwok-v0.7.0", "v1.31.2"], "kube-1.31", id="beside a node that only looks like one"),
        pytest.param(["v0.99.0", "v1.31.2"], "kube-1.31", id="beside one that numbers its own versions"),
    ],
)
def test_the_newest_kubelet_stands_for_the_server(kubelets: list[str], algorithm: str) -> None:
    chosen = algorithm_for(AUTO, cluster("", *kubelets))
    (assumption,) = chosen.assumptions
    assert (chosen.algorithm, assumption.kind) == (algorithm, TOLD)
    number = algorithm.removeprefix("kube-")
    assert assumption.message == f"unknown; assuming {number}, like the newest kubelet"


@pytest.mark.parametrize("kubelets", [[], [""], ["kwok-v0.7.0", "fake"], ["v0.3.1"]], ids=repr)
def test_without_any_sign_the_default_version_is_used(kubelets: list[str]) -> None:
    chosen = algorithm_for(AUTO, cluster("", *kubelets))
    (assumption,) = chosen.assumptions
    assert (chosen.algorithm, assumption.kind) == (LATEST_ALGORITHM, TOLD)
    assert assumption.message == f"unknown; assuming {LATEST_VERSION} (latest supported)"


def test_a_server_whose_version_is_no_version_is_guessed_from_kubelets() -> None:
    assert algorithm_for(AUTO, cluster("unknown", "v1.31.2")).algorithm == "kube-1.31"


@pytest.mark.parametrize(
    ("found", "algorithm", "said"),
    [
        pytest.param(cluster("v1.28.9"), "kube-1.29", "SidecarContainers is on", id="one older"),
        pytest.param(cluster("v1.27.9"), "kube-1.29", "Known differences: ", id="two older"),
        pytest.param(cluster("v1.22.1"), "kube-1.29", "The differences in 1.22 are unknown.", id="much older"),
        pytest.param(
            cluster(f"v{LATER_VERSION}.1"),
            LATEST_ALGORITHM,
            f"The differences in {LATER_VERSION} are unknown.",
            id="newer",
        ),
        pytest.param(cluster("v2.0.1"), LATEST_ALGORITHM, "The differences in 2.0 are unknown.", id="much newer"),
        pytest.param(cluster("", "v1.28.9"), "kube-1.29", "v1.28.9 (newest kubelet)", id="older kubelets"),
        pytest.param(
            cluster("", f"v{LATER_VERSION}.1"),
            LATEST_ALGORITHM,
            f"v{LATER_VERSION}.1 (newest kubelet)",
            id="newer kubelets",
        ),
    ],
)
def test_one_that_is_not_modeled_is_not_evaluated(found: ClusterSnapshot, algorithm: str, said: str) -> None:
    chosen = algorithm_for(AUTO, found)
    (assumption,) = chosen.assumptions
    assert (chosen.algorithm, assumption.kind) == (algorithm, UNMODELED)
    assert said in assumption.message


@pytest.mark.parametrize("suffix", ["", "+0123abc"])
def test_a_release_whose_scheduler_is_that_of_another_is_that_one(suffix: str) -> None:
    for release, its in ALIKE.items():
        if minor_of(release) in RELEASES:
            continue
        chosen = algorithm_for(AUTO, cluster(f"v{release}{suffix}"))
        (assumption,) = chosen.assumptions
        assert (chosen.algorithm, assumption.kind) == (f"kube-{its}", TOLD)
        assert f"has the same scheduler as {its}" in assumption.message
        assert algorithm_for(f"kube-{its}", cluster(f"v{release}{suffix}", "v1.29.0")).assumptions == []
        # Another release with the same beginning is not known.
        assert algorithm_for(AUTO, cluster(f"v{release}1")).assumptions[0].kind == UNMODELED


@pytest.mark.parametrize(
    ("named", "server", "is_reported"),
    [
        ("kube-1.33", "v1.33.9", False),
        ("kube-1.33", "v1.33.5", True),
        ("kube-1.33.5", "v1.33.4", False),
        ("kube-1.36", "v1.33.9", True),
        ("kube-1.13", "v1.13.12", False),
        ("kube-1.13", "v1.33.9", True),
        (LATEST_ALGORITHM, f"v{LATER_VERSION}.0", True),
        ("kube-1.36", "", False),
        ("volcano-1.8", "v1.33.9", False),
    ],
)
def test_the_named_algorithm_is_used_and_a_contradiction_is_reported(
    named: str, server: str, is_reported: bool
) -> None:
    chosen = algorithm_for(named, cluster(server, "v1.29.0"))
    assert chosen.algorithm == named
    assert [each.kind for each in chosen.assumptions] == ([UNMODELED] if is_reported else [])
