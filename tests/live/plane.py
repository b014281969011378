"""A test control plane, and requests to its API server."""

from __future__ import annotations

import http.client
import json
import os
import selectors
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

from kpreempt.scheduler_table import DEFAULT_VERSION
from tests.parity.reference import program_for_tests

Object = dict[str, Any]

# The minor version of Kubernetes of the control plane.
VERSION = os.environ.get("KPREEMPT_LIVE_VERSION") or DEFAULT_VERSION
READY_SECONDS = 120
ANSWER_SECONDS = 30
IDLE_SECONDS = 20
# No controller may change a scenario's statuses, taints and conditions, which the test writes.
STILL = (
    "-kwok=false",
    "-controller-manager-arg=--controllers=ttl-controller",
    "-apiserver-arg=--disable-admission-plugins=TaintNodesByCondition,DefaultTolerationSeconds",
)
# Kubelets are simulated, and controllers create and delete pods; the pods of Jobs keep running, as in a simulation.
# Nothing taints nodes, which would sometimes count as unreachable before their kubelet's first heartbeat.
MOVING = (
    "-end-jobs=false",
    "-apiserver-arg=--disable-admission-plugins=TaintNodesByCondition",
    "-controller-manager-arg=--controllers=deployment-controller,replicaset-controller,statefulset-controller,"
    "daemonset-controller,job-controller,disruption-controller,garbage-collector-controller,"
    "pod-garbage-collector-controller",
)


def program() -> Path:
    """The control plane's program, of ``VERSION``; the test is skipped if it cannot be built."""
    return program_for_tests("controlplane", VERSION)


class RefusedError(Exception):
    """The API server rejects an object; the text is its reason."""


class ControlPlane:
    """etcd, kube-apiserver and kube-scheduler on loopback, stopped at the end; ``moving`` adds controllers and
    kubelets.
    """

    def __init__(self, program: Path, arguments: Sequence[str] = (), *, moving: bool = False) -> None:
        self._process = subprocess.Popen(
            [program, *(MOVING if moving else STILL), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._connection: http.client.HTTPSConnection
        try:
            ready = json.loads(self._line("the control plane did not become ready"))
        except BaseException:
            self._stop()
            raise
        folder = Path(ready["dir"])
        self.kubeconfig = Path(ready["kubeconfig"])
        self.authority = folder / "ca.crt"
        self.server = str(ready["server"])
        self._server = urlsplit(self.server)
        self._metrics: dict[str, str] = ready["metrics"]
        self.trust = ssl.create_default_context(cafile=str(self.authority))
        self.trust.load_cert_chain(folder / "client.crt", folder / "client.key")
        self._connection = self._connect()
        self._used_at = time.monotonic()

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._connection.close()
        self._stop()

    def _stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _line(self, otherwise: str) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if selector.select(READY_SECONDS) else b""
        if not line:
            raise RuntimeError(otherwise)
        return line

    def control(self, verb: Literal["stop", "start"], component: str) -> None:
        """Stop ``kube-scheduler``, or start it again and wait until it is ready."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{verb} {component}\n".encode())
        self._process.stdin.flush()
        answer = self._line(f"{component} did not {verb}")
        assert answer.decode().strip() == component, answer

    def metrics(self, component: str) -> dict[str, float]:
        """The current metrics of ``kube-scheduler`` or ``kube-controller-manager``, by name and labels."""
        with urllib.request.urlopen(self._metrics[component], context=self.trust, timeout=ANSWER_SECONDS) as answer:
            text = answer.read().decode()
        samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def _connect(self) -> http.client.HTTPSConnection:
        assert self._server.hostname is not None
        return http.client.HTTPSConnection(
            self._server.hostname, self._server.port, context=self.trust, timeout=ANSWER_SECONDS
        )

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        patch: str = "merge",
        headers: Mapping[str, str] = {},
    ) -> Object:
        """Send a request. Raises ``RefusedError`` if the API server rejects it."""
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            # The connection reopens by itself; the API server closes idle ones.
            self._connection.close()
        self._used_at = time.monotonic()
        return send(self._connection, method, path, body, patch=patch, headers=headers)

    def connect(self) -> http.client.HTTPSConnection:
        """Open another connection, for ``send`` in another thread."""
        return self._connect()

    def watch(self, path: str, resource_version: str) -> Watch:
        """Watch the objects under ``path`` from that version on."""
        connection = self._connect()
        connection.request("GET", f"{path}?watch=1&resourceVersion={resource_version}")
        return Watch(connection)


def send(
    connection: http.client.HTTPSConnection,
    method: str,
    path: str,
    body: Object | None = None,
    *,
    patch: str = "merge",
    headers: Mapping[str, str] = {},
) -> Object:
    """Send a request on a connection. Raises ``RefusedError`` if the API server rejects it."""
    kind = f"application/{patch}-patch+json" if method == "PATCH" else "application/json"
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"Content-Type": kind, "Accept": "application/json", **headers})
    response = connection.getresponse()
    answer: Object = json.loads(response.read())
    if response.status >= 400:
        raise RefusedError(f"{method} {path}: {response.status} {answer.get('message')}")
    return answer


class Watch:
    """Changes of objects as they happen."""

    def __init__(self, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()

    def objects(self, seconds: float) -> Iterator[Object]:
        """Yield objects as they change; end when nothing has changed for a while."""
        assert self._connection.sock is not None
        self._connection.sock.settimeout(seconds)
        try:
            while line := self._response.readline():
                yield json.loads(line)["object"]
        except TimeoutError:
            return

    def close(self) -> None:
        """Stop watching."""
        self._response.close()
        self._connection.close()

    def break_off(self) -> None:
        """Stop waiting for objects in another thread."""
        assert self._connection.sock is not None
        self._connection.sock.shutdown(socket.SHUT_RDWR)
