"""Credentials that the ``kubernetes`` package gets: from credential plugins, and from a pod's service account.

The one module that imports the package, and only where it is needed: that takes 0.4 s, as long as ``kubectl get``
takes at all. Plain certificates and tokens go without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.live.kubeconfig import ClusterEntry, ExecEntry

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST = "KUBERNETES_SERVICE_HOST"


class PluginAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a credential plugin gives: a token, or a certificate and its key as PEM."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class ServiceAccount(msgspec.Struct, frozen=True, kw_only=True):
    """How a pod reaches its own cluster. ``token`` is a secret."""

    server: str
    token: str
    certificate_authority: str
    namespace: str


def run_plugin(plugin: ExecEntry, cluster: ClusterEntry, user_name: str, authority: str) -> PluginAnswer:
    """What the credential plugin answers; ``authority`` is the cluster's CA in base64, for plugins that ask for it.

    Raises ``InputError`` where it fails.
    """
    from kubernetes.config import ConfigException  # noqa: PLC0415 - takes 0.4 s
    from kubernetes.config.exec_provider import ExecProvider  # noqa: PLC0415
    from kubernetes.config.kube_config import ConfigNode  # noqa: PLC0415

    source = f"user {user_name}: the credential plugin {plugin.command}"
    about = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority,
        "proxy-url": cluster.proxy_url,
        "extensions": cluster.extensions,
    }
    entry = ConfigNode("exec", msgspec.to_builtins(plugin))
    node = ConfigNode("cluster", {key: value for key, value in about.items() if value})
    try:
        status: Any = ExecProvider(entry, "", node).run()
        answer = msgspec.convert(status, PluginAnswer)
    except ConfigException as error:
        words = " ".join(str(error).removeprefix("exec: ").split())
        raise InputError(f"fails: {words}", source=source, hint=_first_line(plugin.install_hint)) from None
    except OSError as error:
        words = (error.strerror or str(error)).lower()
        hint = _first_line(plugin.install_hint) or "install it, or check command in the kubeconfig"
        raise InputError(f"cannot be run: {words}", source=source, hint=hint) from None
    except (msgspec.ValidationError, TypeError):
        raise InputError("answers with something else than an ExecCredential", source=source) from None
    if not answer.token and not (answer.client_certificate_data and answer.client_key_data):
        raise InputError("gives neither a token nor a certificate with its key", source=source)
    return answer


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def service_account(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ServiceAccount | None:
    """The service account of the pod that this process is in, or ``None`` outside of pods. Raises ``InputError``."""
    if not environment.get(_HOST) or not (folder / "token").exists():
        return None
    from kubernetes.client import Configuration  # noqa: PLC0415 - takes 0.4 s
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    configuration = Configuration()
    try:
        InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt"), False, environment).load_and_set(
            configuration
        )
        namespace = environment.get("POD_NAMESPACE") or (folder / "namespace").read_text(encoding="utf-8").strip()
    except (ConfigException, OSError) as error:
        raise InputError(f"the pod's service account cannot be used: {error}", source=str(folder)) from None
    return ServiceAccount(
        server=configuration.host,
        token=configuration.api_key["BearerToken"].partition(" ")[2].strip(),
        certificate_authority=configuration.ssl_ca_cert or "",
        namespace=namespace,
    )
