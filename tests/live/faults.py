"""A faulty proxy in front of a real API server, and kubeconfigs for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlencode

from tests.fake_api import TLS, Answer, FakeApi, ReceivedRequest, refused
from tests.live.plane import ControlPlane

# Secrets that must never be shown.
TOKEN = "sesame-4b7e1c90"

# The response to a request, if it is not the real one.
Fault = Callable[[ReceivedRequest], Answer | None]


class FaultyProxy(FakeApi):
    """Terminates TLS and forwards requests as the administrator, except those that ``fault`` answers.

    Lists are forwarded with pages of ``page`` objects.
    """

    def __init__(
        self, plane: ControlPlane, fault: Fault, *, page: int | None = None, certificate: str = "server.pem"
    ) -> None:
        self._plane = plane
        self._fault = fault
        self._page = page
        super().__init__(self._answer, certificate=certificate)

    def _answer(self, request: ReceivedRequest) -> Answer:
        return self._fault(request) or self.real(request)

    def real(self, request: ReceivedRequest) -> Answer:
        """Return the API server's response."""
        query = dict(request.query)
        if self._page is not None and "limit" in query:
            query["limit"] = str(self._page)
        connection = self._plane.connect()
        try:
            connection.request(
                "GET", f"{request.path}?{urlencode(query)}", headers={"Accept": request.headers["accept"][0]}
            )
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            return refused(502, f"the test's proxy: {error}")
        finally:
            connection.close()
        return Answer(response.status, body, {"Content-Type": response.getheader("Content-Type", "")})


def write_kubeconfig(folder: Path, server: str, authority: Path = TLS / "ca.crt") -> Path:
    """Write a kubeconfig for ``server`` with a token that the API server does not accept; return its path."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "prod", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "on-call", "user": {"token": TOKEN}}],
        "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "on-call"}}],
        "current-context": "prod",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


class Answers:
    """A fault that answers the first ``times`` requests that it ``concerns``."""

    def __init__(self, answer: Answer, concerns: Callable[[ReceivedRequest], bool], times: float) -> None:
        self._answer = answer
        self._concerns = concerns
        self._left = times

    def __call__(self, request: ReceivedRequest) -> Answer | None:
        if self._left <= 0 or not self._concerns(request):
            return None
        self._left -= 1
        return self._answer
