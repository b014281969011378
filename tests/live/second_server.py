"""Another kube-apiserver on the store of a control plane, which the test can kill and restart."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.live.patience import until
from tests.live.plane import ControlPlane

_PORT = re.compile(r"--secure-port=\d+")


class SecondServer:
    """A server with the arguments of the control plane's own, except for its port."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        """``folder`` gets the kubeconfig for this server, and its log."""
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        own = _arguments_of("kube-apiserver", str(plane.authority))
        self._command = [_PORT.sub(f"--secure-port={port}", each) for each in own]
        self._plane = plane
        self._log = folder / "kube-apiserver.log"
        self._url = f"https://127.0.0.1:{port}"
        self.kubeconfig = folder / "second.kubeconfig"
        text = plane.kubeconfig.read_text(encoding="utf-8").replace(plane.server, self._url)
        self.kubeconfig.write_text(text, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and return once it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until(self._is_ready, "a second API server")

    def kill(self) -> None:
        """Terminate at once, like a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self._url}/readyz", context=self._plane.trust, timeout=2) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False


def _arguments_of(component: str, authority: str) -> list[str]:
    """The command line of a component of the control plane with that authority."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text(encoding="utf-8").split("\0")[:-1]
        except OSError:
            continue
        if words[1:3] == ["component", component] and any(authority in word for word in words):
            return words
    raise AssertionError(f"no {component} runs")
