"""Failures between ``kubectl kpreempt`` and a real API server: one clear message, or a retry that helps."""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from kpreempt.scheduler_table import LATEST_VERSION
from tests.factories import LATER_VERSION
from tests.fake_api import TLS, Answer, ReceivedRequest, refused
from tests.live import demo
from tests.live.faults import TOKEN, Answers, Fault, FaultyProxy, write_kubeconfig
from tests.live.patience import until
from tests.live.plane import ControlPlane
from tests.live.plugin import Ran, interrupted_watch, kubectl_kpreempt, needs_kubectl
from tests.live.rights import ROLES, bind, role_without

pytestmark = pytest.mark.live

COMMAND = ("explain", "-f", demo.DEMO / "api.yaml")
RIGHT = "node/node-b\n"
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
# The default timeout of a request, which no test reaches.
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The idle demo cluster. One user may not list nodes, another no PodDisruptionBudgets."""
    needs_kubectl()
    with demo.running(tmp_path_factory.mktemp("scheduler")) as plane:
        for plural in ("nodes", "poddisruptionbudgets"):
            plane.request("POST", ROLES, role_without(plural))
            bind(plane, f"no-{plural}", f"no-{plural}")
        yield plane


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[ControlPlane]:
    """The demo cluster, with an API server that drops a version after a second or two instead of minutes."""
    needs_kubectl()
    # The server also caches lists, which would continue for ten more seconds.
    settings = ["--etcd-compaction-interval=1s", "--feature-gates=ListFromCacheSnapshot=false"]
    with demo.running(tmp_path, [f"-apiserver-arg={each}" for each in settings]) as plane:
        yield plane


def ask(kubeconfig: Path, *options: str | Path) -> Ran:
    """Run the command; in every case the output has no token, and arrives in time."""
    begun = time.monotonic()
    ran = kubectl_kpreempt(kubeconfig, *COMMAND, "-o", "name", *options)
    assert time.monotonic() - begun < PATIENCE_SECONDS
    assert TOKEN not in ran.out + ran.err
    return ran


def lists(path: str) -> Callable[[ReceivedRequest], bool]:
    return lambda requested: requested.path == path


def simulate_rest(requested: ReceivedRequest) -> bool:
    """Whether the request is for another page of pods."""
    return requested.path == PODS and "continue" in requested.query


def busy(seconds: int) -> Answer:
    return refused(429, "too many requests, please try again later", **{"Retry-After": str(seconds)})


def expired() -> Answer:
    return refused(410, "The provided continue parameter is too old to display a consistent list result.")


def dropped() -> Answer:
    return Answer(body=b'{"kind": "PodList", "apiVersion": "v1", "items": [' + b" " * 1000, cut=40)


def test_without_a_fault_the_proxy_is_transparent(plane: ControlPlane, tmp_path: Path) -> None:
    assert ask(plane.kubeconfig) == Ran(0, RIGHT, "")
    with FaultyProxy(plane, lambda _: None, page=5) as proxy:
        assert ask(write_kubeconfig(tmp_path, proxy.url), "--strict") == Ran(0, RIGHT, "")
    assert sum(map(simulate_rest, proxy.requested)) >= 4


def test_a_refused_connection(tmp_path: Path) -> None:
    needs_kubectl()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{unused.getsockname()[1]}"
        ran = ask(write_kubeconfig(tmp_path, server))
    assert (ran.code, ran.out, ran.message) == (3, "", f"{server}: connection refused")
    assert "kubectl config view" in ran.err


def test_401_for_a_token_that_is_wrong(plane: ControlPlane, tmp_path: Path) -> None:
    ran = ask(write_kubeconfig(tmp_path, plane.server, plane.authority))
    problem = "authentication failed for user on-call (401): Unauthorized"
    assert (ran.code, ran.out) == (3, "")
    assert ran.message in (f"{plane.server}{path}: {problem}" for path in (PODS, "/version"))
    assert "log in again" in ran.err


def test_403_for_nodes_leaves_what_needs_none(plane: ControlPlane) -> None:
    ran = ask(plane.kubeconfig, "--as", "no-nodes", "-o", "text", "--exit-code")
    assert ran.code == 13
    assert " ".join(ran.out.split()).startswith(
        "No verdict on shop/api-new: nodes cannot be listed (403). Missing permission: list nodes (cluster-wide)."
    )


def test_403_for_all_is_one_message(plane: ControlPlane) -> None:
    ran = ask(plane.kubeconfig, "--as", "nobody")
    assert (ran.code, ran.out) == (3, "")
    path = "/api/v1/namespaces/shop/pods"
    assert ran.message.startswith(f'{plane.server}{path}: not allowed (403): pods is forbidden: User "nobody"')
    assert "missing permission: list pods and nodes (cluster-wide), or at least pods in namespace shop" in ran.message


def test_403_for_budgets_is_an_assumption(plane: ControlPlane) -> None:
    assumed = (
        "cannot be listed (403): if budgets protect the victims, another node may be chosen; "
        "missing permission: list poddisruptionbudgets.policy (cluster-wide)"
    )
    ran = ask(plane.kubeconfig, "--as", "no-poddisruptionbudgets", "-o", "text", "--strict")
    assert (ran.code, ran.message) == (
        1,
        f"--strict: the answer depends on an assumption: PodDisruptionBudget: list: {assumed}",
    )
    assert "budget violations are unknown because PodDisruptionBudgets" in " ".join(ran.out.split())


def test_an_untrusted_certificate_authority(plane: ControlPlane) -> None:
    ran = ask(plane.kubeconfig, "--certificate-authority", TLS / "ca.crt")
    assert (ran.code, ran.out) == (3, "")
    assert ran.message.startswith(f"{plane.server}: the server's certificate is not trusted: ")
    assert "--certificate-authority" in ran.err


def test_a_certificate_that_has_expired(plane: ControlPlane, tmp_path: Path) -> None:
    with FaultyProxy(plane, lambda _: None, certificate="expired.pem") as proxy:
        ran = ask(write_kubeconfig(tmp_path, proxy.url))
    assert (ran.code, ran.out, ran.message) == (3, "", f"{proxy.url}: the server's certificate has expired")
    assert proxy.requested == []


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        pytest.param(Answers(busy(1), lists(PODS), 1), 1, id="429 with a second to wait"),
        pytest.param(Answers(busy(0), lists(NODES), 2), 0, id="429 twice"),
        pytest.param(Answers(refused(503, "starting"), lists("/version"), 1), 0.5, id="503 without a time to wait"),
        pytest.param(Answers(dropped(), lists(PODS), 1), 0.5, id="dropped in the middle of the first page"),
        pytest.param(Answers(dropped(), simulate_rest, 1), 0.5, id="dropped in the middle of another page"),
    ],
)
def test_a_temporary_failure_is_retried(plane: ControlPlane, tmp_path: Path, fault: Fault, seconds: float) -> None:
    begun = time.monotonic()
    with FaultyProxy(plane, fault, page=5) as proxy:
        ran = ask(write_kubeconfig(tmp_path, proxy.url), "--strict")
    assert ran == Ran(0, RIGHT, "")
    assert time.monotonic() - begun >= seconds


@pytest.mark.parametrize(
    ("answer", "concerns", "path", "problem"),
    [
        pytest.param(
            busy(1),
            lists(NODES),
            NODES,
            "the API server is too busy (429): too many requests, please try again later",
            id="429 for ever",
        ),
        pytest.param(
            busy(3600),
            lists(PODS),
            PODS,
            "the API server is too busy (429): too many requests, please try again later",
            id="429 that asks for an hour",
        ),
        pytest.param(
            expired(),
            simulate_rest,
            PODS,
            "the list kept expiring while it was read (410): "
            "The provided continue parameter is too old to display a consistent list result.",
            id="410 for ever",
        ),
        pytest.param(dropped(), lists(PODS), "", "the connection keeps breaking", id="dropped each time"),
    ],
)
def test_what_does_not_pass_ends_in_one_message(
    plane: ControlPlane,
    tmp_path: Path,
    answer: Answer,
    concerns: Callable[[ReceivedRequest], bool],
    path: str,
    problem: str,
) -> None:
    with FaultyProxy(plane, Answers(answer, concerns, math.inf), page=5) as proxy:
        ran = ask(write_kubeconfig(tmp_path, proxy.url))
    assert (ran.code, ran.out, ran.message) == (3, "", f"{proxy.url}{path}: {problem}")
    assert sum(map(concerns, proxy.requested)) <= 5


def test_410_during_paging_restarts_and_warns_of_inconsistency(tmp_path: Path, forgetful: ControlPlane) -> None:
    is_first = True

    def fault(requested: ReceivedRequest) -> Answer | None:
        nonlocal is_first
        if not is_first or not simulate_rest(requested):
            return None
        is_first = False
        # The API server's own response, as soon as etcd has dropped the version.
        return until(lambda: (answer := proxy.real(requested)).status == 410 and answer, "etcd is compacted")

    with FaultyProxy(forgetful, fault, page=5) as proxy:
        verdict = tmp_path / "verdict.json"
        ran = ask(write_kubeconfig(tmp_path, proxy.url), "-o", f"json={verdict}", "--strict")
    assert (ran.code, ran.out) == (1, RIGHT)
    assert "not all kinds were read at the same time: " in ran.message
    running = forgetful.request("GET", f"{PODS}?fieldSelector=status.phase%3DRunning")["items"]
    assert json.loads(verdict.read_text(encoding="utf-8"))["cluster"]["pods"] == len(running)
    assert sum(requested.path == PODS and "continue" not in requested.query for requested in proxy.requested) == 2


def test_a_server_that_takes_connections_and_never_answers(tmp_path: Path) -> None:
    needs_kubectl()
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"https://127.0.0.1:{silent.getsockname()[1]}"
        ran = ask(write_kubeconfig(tmp_path, server), "--request-timeout", "1s")
    assert (ran.code, ran.out, ran.message) == (3, "", f"{server}: no answer within 1s")
    assert time.monotonic() - begun < 20


def test_an_api_server_that_stops_answering_in_the_middle(plane: ControlPlane, tmp_path: Path) -> None:
    is_over = Event()

    def fault(requested: ReceivedRequest) -> Answer | None:
        if simulate_rest(requested):
            is_over.wait(PATIENCE_SECONDS)
        return None

    begun = time.monotonic()
    with FaultyProxy(plane, fault, page=5) as proxy:
        ran = ask(write_kubeconfig(tmp_path, proxy.url), "--request-timeout", "1s")
        is_over.set()
    assert (ran.code, ran.out, ran.message) == (3, "", f"{proxy.url}: no answer within 1s")
    assert time.monotonic() - begun < 20


def test_a_watch_survives_what_goes_wrong_for_a_while(plane: ControlPlane, tmp_path: Path) -> None:
    looks = 0

    def fault(requested: ReceivedRequest) -> Answer | None:
        nonlocal looks
        if requested.path != PODS:
            return None
        looks += 1
        return refused(500, "etcdserver: leader changed") if looks == 2 else None

    with FaultyProxy(plane, fault) as proxy:
        ran = interrupted_watch(write_kubeconfig(tmp_path, proxy.url), looks=2)
    assert (ran.code, ran.message) == (
        130,
        f"{proxy.url}{PODS}: API server error (500): etcdserver: leader changed",
    )


def test_an_unmodeled_server_version_is_an_assumption(plane: ControlPlane, tmp_path: Path) -> None:
    body = json.dumps(
        {"major": "1", "minor": LATER_VERSION.removeprefix("1."), "gitVersion": f"v{LATER_VERSION}.0"}
    ).encode()
    assumed = (
        f"v{LATER_VERSION}.0 is not supported; the nearest supported version, {LATEST_VERSION}, is used. "
        f"The differences in {LATER_VERSION} are unknown."
    )
    with FaultyProxy(plane, Answers(Answer(body=body), lists("/version"), math.inf)) as proxy:
        kubeconfig = write_kubeconfig(tmp_path, proxy.url)
        plain, strict = ask(kubeconfig, "-o", "text"), ask(kubeconfig, "--strict")
    assert (plain.code, plain.err) == (0, "")
    assert assumed in " ".join(plain.out.split())
    assert (strict.code, strict.out, strict.message) == (
        1,
        RIGHT,
        f"--strict: the answer depends on an assumption: cluster: version: {assumed}",
    )
