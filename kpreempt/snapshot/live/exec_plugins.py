"""Credential plugins: programs that provide a token or a certificate, with limits on time and output.

After client-go's ``plugin/pkg/client/auth/exec/exec.go`` (v0.36). The ``kubernetes`` package runs them without limits.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from threading import Thread
from typing import IO, Any

import msgspec

from kpreempt.errors import InputError
from kpreempt.network.secrets import scrubbed
from kpreempt.snapshot.live.kubeconfig import ClusterEntry, ExecEntry

_MAX_BYTES = 2**20
_LONGEST_MESSAGE = 500
# Values that may be secrets, by their names or their form.
_SECRET_NAME = re.compile(r"token|secret|passw|credential|key", re.IGNORECASE)
_TOKEN = re.compile(r"[\w.~+/=-]{16,}")
_CONFIG_EXTENSION = "client.authentication.k8s.io/exec"


class PluginAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a credential plugin: a token, or a certificate and its key as PEM."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""

    def __repr__(self) -> str:
        return "PluginAnswer()"


class _Credential(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    status: PluginAnswer


def run_plugin(
    plugin: ExecEntry, cluster: ClusterEntry, user_name: str, authority: str, seconds: float | None
) -> PluginAnswer:
    """Run the credential plugin for at most ``seconds`` (``None``: unlimited) and return its result.

    ``authority`` is the cluster's CA in base64, for plugins that request it. Raises ``InputError`` if it fails.
    """
    source = f"user {user_name}: the credential plugin {plugin.command}"
    for name, value in (("command", plugin.command), ("apiVersion", plugin.api_version)):
        if not value:
            raise InputError(f"fails: malformed request. missing key '{name}'", source=source)
    hint = next((line.strip() for line in plugin.install_hint.splitlines() if line.strip()), "")
    about = None
    if plugin.provide_cluster_info:
        extensions = (each.get("extension") for each in cluster.extensions if each.get("name") == _CONFIG_EXTENSION)
        about = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": authority,
            "proxy-url": cluster.proxy_url,
            "config": next(extensions, None),
        }
    try:
        code, output, errors = _run(plugin, about, seconds)
    except OSError as error:
        words = (error.strerror or str(error)).lower()
        hint = hint or "install it, or check command in the kubeconfig"
        raise InputError(f"cannot run: {words}", source=source, hint=hint) from None
    except subprocess.TimeoutExpired:
        problem = f"timed out after {seconds:g}s"
        raise InputError(problem, source=source, hint="--request-timeout 5m") from None
    if code != 0:
        # Values that the kubeconfig passes to the plugin in variables and flags with names of secrets.
        named = [(each.name, each.value) for each in plugin.env]
        named += [(name, value) for name, _, value in (each.partition("=") for each in plugin.args)]
        named += pairwise(plugin.args)
        secrets = [value for name, value in named if _SECRET_NAME.search(name)]
        secrets += _TOKEN.findall(output.decode(errors="replace"))
        words = " ".join(scrubbed(errors.decode(errors="replace"), secrets).split())[:_LONGEST_MESSAGE]
        raise InputError(f"fails: process returned {code}{f'. {words}' if words else ''}", source=source, hint=hint)
    if len(output) > _MAX_BYTES:
        raise InputError(f"returned more than {_MAX_BYTES // 2**20} MiB", source=source)
    try:
        credential = msgspec.json.decode(output, type=_Credential)
    except msgspec.ValidationError:
        raise InputError("returned something other than an ExecCredential", source=source) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError("fails: failed to decode process output", source=source) from None
    if credential.api_version != plugin.api_version:
        problem = f"fails: plugin api version {credential.api_version[:80]} does not match {plugin.api_version[:80]}"
        raise InputError(problem, source=source)
    answer = credential.status
    if not answer.token and not (answer.client_certificate_data and answer.client_key_data):
        raise InputError("returned neither a token nor a certificate with its key", source=source)
    return answer


def _run(plugin: ExecEntry, about: Mapping[str, Any] | None, seconds: float | None) -> tuple[int, bytes, bytes]:
    """Return the exit code, standard output and standard error; the plugin gets ``about``."""
    is_interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    spec: dict[str, Any] = {"interactive": is_interactive}
    if about is not None:
        spec["cluster"] = {key: value for key, value in about.items() if value}
    info = json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})
    process = subprocess.Popen(  # noqa: S603 - the user's kubeconfig names it
        [plugin.command, *plugin.args],
        stdin=None if is_interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if is_interactive else subprocess.PIPE,
        env={**os.environ, **{each.name: each.value for each in plugin.env}, "KUBERNETES_EXEC_INFO": info},
        # A plugin that prompts the user must keep the terminal.
        start_new_session=not is_interactive,
    )
    heard = [_Output(stream) for stream in (process.stdout, process.stderr) if stream is not None]
    try:
        end = None if seconds is None else time.monotonic() + seconds
        for each in heard:
            each.thread.join(None if end is None else max(0.0, end - time.monotonic()))
            if each.thread.is_alive():
                raise subprocess.TimeoutExpired(plugin.command, seconds or 0.0)
            if len(each.content) > _MAX_BYTES:
                return 0, each.content, b""
        code = process.wait(None if end is None else max(0.0, end - time.monotonic()))
        return code, heard[0].content, heard[1].content if len(heard) > 1 else b""
    finally:
        # Kill every process of the plugin that has not detached itself.
        if process.poll() is None:
            with suppress(OSError):
                if is_interactive:
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class _Output:
    """A program's output, up to slightly more than the limit, read by a thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.content = b""
        self._stream = stream
        self.thread = Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with self._stream:
            self.content = self._stream.read(_MAX_BYTES + 1)
