"""Credentials that the ``kubernetes`` package gets: from a pod's service account.

The one module that imports the package, and only where it is needed: that takes 0.4 s, as long as ``kubectl get``
takes at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import read_file, read_text

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST = "KUBERNETES_SERVICE_HOST"


class ServiceAccount(msgspec.Struct, frozen=True, kw_only=True):
    """How a pod reaches its own cluster. ``token`` is a secret."""

    server: str
    token: str
    certificate_authority: str
    namespace: str


def service_account(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> ServiceAccount | None:
    """The service account of the pod that this process is in, or ``None`` outside of pods. Raises ``InputError``."""
    if not environment.get(_HOST) or not (folder / "token").exists():
        return None
    from kubernetes.client import Configuration  # noqa: PLC0415 - takes 0.4 s
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    # The package reads them whole, however large they are.
    for name in ("token", "ca.crt"):
        read_file(str(folder / name))
    configuration = Configuration()
    try:
        InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt"), False, environment).load_and_set(
            configuration
        )
        namespace = environment.get("POD_NAMESPACE") or read_text(str(folder / "namespace")).strip()
    except (ConfigException, OSError) as error:
        raise InputError(f"the pod's service account cannot be used: {error}", source=str(folder)) from None
    return ServiceAccount(
        server=configuration.host,
        token=configuration.api_key["BearerToken"].partition(" ")[2].strip(),
        certificate_authority=configuration.ssl_ca_cert or "",
        namespace=namespace,
    )
