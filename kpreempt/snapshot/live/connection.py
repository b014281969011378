"""From kubectl's flags and kubeconfigs to a connection: the server, the user, trust, and proxy.

Only this module imports the ``kubernetes`` package, and only in a pod. ``docs/live.md`` has measurements, and explains
why kubeconfigs and credential plugins are read here instead.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.files import read_file, read_text
from kpreempt.model.durations import SECOND, parse_duration
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.network.proxies import proxy_for
from kpreempt.network.tls import ClientCertificate, Trust, tls_context
from kpreempt.snapshot.live.exec_plugins import run_plugin
from kpreempt.snapshot.live.flags import ConnectionFlags, NoClusterError
from kpreempt.snapshot.live.kubeconfig import Chosen, ClusterEntry, UserEntry, choose, read_kubeconfig

if TYPE_CHECKING:
    from kpreempt.snapshot.live.failures import ClusterError

# The default of --request-timeout: the API server's own timeout is a minute.
DEFAULT_TIMEOUT_SECONDS = 60.0
# The default for credential plugins: some wait for the user to log in with a browser.
PLUGIN_SECONDS = 180.0
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

Headers = list[tuple[str, str]]


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach an API server. ``headers`` and ``proxy`` contain secrets; ``secrets`` lists all of them as strings.

    ``server`` is its URL without a trailing slash; ``user`` is the user's name for messages. ``timeout`` is in seconds
    per request, ``None`` for none. ``denied`` has the lists that may not be read, by path; a watch of the cluster does
    not request them again.
    """

    server: str
    context: str = ""
    namespace: str = DEFAULT_NAMESPACE
    user: str = ""
    headers: Headers = []
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    proxy: str = ""
    secrets: Sequence[str] = ()
    timeout: float | None = DEFAULT_TIMEOUT_SECONDS
    denied: dict[str, ClusterError] = {}

    @property
    def label(self) -> str:
        """A short name of the cluster."""
        return self.context or self.server

    def __repr__(self) -> str:
        return f"Connection({self.server}, context={self.context})"


def connect(flags: ConnectionFlags, environment: Mapping[str, str]) -> Connection:
    """Build the connection from the flags, the kubeconfigs of ``environment`` or the pod's service account.

    Nothing is sent yet, but credential plugins are run. Raises ``NoClusterError`` if there is none of these,
    ``UsageError`` for invalid flags, and ``InputError`` for an unusable kubeconfig or credentials.
    """
    timeout = timeout_seconds(flags.request_timeout)
    config = read_kubeconfig(flags, environment)
    if config.is_empty and not flags.server:
        chosen, who = _in_cluster(flags, environment), "the pod's service account"
    else:
        chosen = choose(config, flags)
        who = f"user {chosen.user_name}" if chosen.user_name else ""
    cluster, user = chosen.cluster, chosen.user
    if not cluster.server:
        hint = "--context " + "|".join(sorted(config.contexts)[:5]) if config.contexts else "--server https://HOST:6443"
        if not chosen.context:
            raise UsageError("the kubeconfig has no current context", hint=hint)
        problem = f'the cluster of context "{chosen.context}" is not in the kubeconfig, or has no server'
        raise UsageError(problem, hint=hint)
    authority, trust = _trust(cluster)
    # The server's URL; without a scheme, it is https if TLS is configured, else http, as in client-go.
    is_tls = bool(authority or cluster.insecure_skip_tls_verify)
    url = cluster.server if "://" in cluster.server else f"{'https' if is_tls else 'http'}://{cluster.server}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError("--server or the kubeconfig's server is not a URL", hint="https://HOST:6443")
    host = f"[{host}]" if ":" in host else host
    server = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    headers: Headers = []
    certificate = tls = None
    if server.startswith("https:"):
        # Like kubectl, send no secrets over an unencrypted connection.
        seconds = timeout if flags.request_timeout else PLUGIN_SECONDS
        headers, certificate = _credentials(user, chosen.user_name, cluster, authority, seconds)
        tls = tls_context(trust, certificate)
    proxy = proxy_for(server, cluster.proxy_url, environment)
    return Connection(
        server=server,
        context=chosen.context,
        namespace=chosen.namespace or DEFAULT_NAMESPACE,
        user=who,
        headers=[*headers, *_impersonation(user)],
        tls=tls,
        tls_server_name=cluster.tls_server_name,
        proxy=proxy,
        secrets=_secrets(user, headers, certificate, proxy),
        timeout=timeout,
    )


def timeout_seconds(text: str) -> float | None:
    """Parse ``--request-timeout`` like kubectl: ``30s``, ``1m``, plain seconds; ``0`` is no timeout.

    Raises ``UsageError``.
    """
    if not text:
        return DEFAULT_TIMEOUT_SECONDS
    nanoseconds = int(text) * SECOND if text.isascii() and text.isdecimal() and len(text) < 10 else parse_duration(text)
    if nanoseconds is None or nanoseconds < 0:
        raise UsageError(f'--request-timeout: "{text[:40]}" is not a duration', hint="30s, 2m; 0 for no timeout")
    return nanoseconds / SECOND or None


def _in_cluster(flags: ConnectionFlags, environment: Mapping[str, str]) -> Chosen:
    chosen = service_account(environment)
    if chosen is None or flags.context or flags.cluster or flags.user:
        raise NoClusterError(
            "no cluster given: there is neither --snapshot nor a kubeconfig",
            hint="--snapshot cluster.yaml, or --kubeconfig FILE, or KUBECONFIG=FILE in the environment",
        )
    user = UserEntry(
        token=flags.token or chosen.user.token,
        as_user=flags.as_user,
        as_uid=flags.as_uid,
        as_groups=list(flags.as_groups),
    )
    return msgspec.structs.replace(chosen, user=user)


def service_account(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Chosen | None:
    """Return the cluster and service account of the pod that this process runs in; ``None`` outside of pods.

    Raises ``InputError``.
    """
    if not environment.get("KUBERNETES_SERVICE_HOST") or not (folder / "token").exists():
        return None
    # This takes as long as everything else for a small cluster.
    from kubernetes.client import Configuration  # noqa: PLC0415
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    token, authority = str(folder / "token"), str(folder / "ca.crt")
    # The package reads them completely, however large they are.
    read_file(token)
    read_file(authority)
    configuration = Configuration()
    try:
        InClusterConfigLoader(token, authority, False, environment).load_and_set(configuration)
        namespace = environment.get("POD_NAMESPACE") or read_text(str(folder / "namespace")).strip()
    except (ConfigException, OSError) as error:
        raise InputError(f"the pod's service account cannot be used: {error}", source=str(folder)) from None
    return Chosen(
        namespace=namespace,
        cluster=ClusterEntry(server=configuration.host, certificate_authority=configuration.ssl_ca_cert or ""),
        user=UserEntry(token=configuration.api_key["BearerToken"].partition(" ")[2].strip()),
    )


def _secrets(user: UserEntry, headers: Headers, certificate: ClientCertificate | None, proxy: str) -> list[str]:
    """List everything that no message may show, in each form in which the server or the proxy gets it."""
    proxy_user, proxy_password = urlsplit(proxy).username or "", urlsplit(proxy).password or ""
    pair = base64.b64encode(f"{unquote(proxy_user)}:{unquote(proxy_password)}".encode()).decode() if proxy_user else ""
    given = [value.partition(" ")[2] for _, value in headers]
    given += [user.token, user.password, user.client_key_data, proxy_password, unquote(proxy_password), pair]
    if certificate is not None:
        given += [line for line in certificate.key.decode(errors="replace").split("\n") if "-----" not in line]
    return [each.strip() for each in given if each.strip()]


def _trust(cluster: ClusterEntry) -> tuple[str, Trust]:
    """Return the certificate authority as PEM, and the resulting trust."""
    source = cluster.certificate_authority or "certificate-authority-data"
    authority = ""
    if not cluster.insecure_skip_tls_verify:
        authority = _content(
            cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority"
        ).decode(errors="replace")
    return authority, Trust(authority=authority, is_insecure=cluster.insecure_skip_tls_verify, source=source)


def _content(data: str, path: str, field: str) -> bytes:
    """Return the content of ``data`` (base64) or of the file; ``data`` takes precedence. Raises ``InputError``."""
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except ValueError:
            # Also for non-ASCII text.
            raise InputError("is not base64", source="kubeconfig", path=f"{field}-data") from None
    if not path:
        return b""
    try:
        return read_file(path)
    except InputError as error:
        raise InputError(
            error.problem, source=error.source, hint=f"set by {field} in the kubeconfig or by its flag"
        ) from None


def _credentials(
    user: UserEntry, name: str, cluster: ClusterEntry, authority: str, seconds: float | None
) -> tuple[Headers, ClientCertificate | None]:
    source = f"user {name}" if name else "the user"
    key_source = user.client_key or f"{source}: client-key-data"
    certificate = _content(user.client_certificate_data, user.client_certificate, "client-certificate")
    key = _content(user.client_key_data, user.client_key, "client-key")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise InputError(f"{missing} is missing, although its counterpart is set", source=source)
    token = user.token or _content("", user.token_file, "tokenFile").decode(errors="replace").strip()
    if user.username and not token:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        headers = [("Authorization", f"Basic {pair}")]
    else:
        headers = _bearer(token)
    provider = user.auth_provider
    if not headers and provider is not None:
        # The token of an OpenID provider, as stored. It is not renewed, because that would have to be saved.
        if provider.name != "oidc":
            raise InputError(
                f'the auth provider "{provider.name}" is no longer supported, by kubectl either',
                source=source,
                hint="use a credential plugin (exec) instead",
            )
        headers = _bearer(provider.config.get("id-token", ""))
    if not headers and user.exec is not None:
        answer = run_plugin(user.exec, cluster, name, base64.b64encode(authority.encode()).decode(), seconds)
        headers = _bearer(answer.token)
        if answer.client_certificate_data:
            certificate, key = answer.client_certificate_data.encode(), answer.client_key_data.encode()
            key_source = f"{source}: the credential plugin {user.exec.command}"
    client = ClientCertificate(certificate=certificate, key=key, source=key_source) if certificate else None
    return headers, client


def _bearer(token: str) -> Headers:
    if any(not 32 < ord(character) < 127 for character in token):
        raise InputError("the token contains an invalid character", source="kubeconfig or --token")
    return [("Authorization", f"Bearer {token}")] if token else []


def _impersonation(user: UserEntry) -> Headers:
    """Return the headers for impersonation, after client-go's ``transport/round_trippers.go``."""
    if not user.as_user:
        return []
    headers = [("Impersonate-User", user.as_user)]
    headers += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    for key, values in user.as_user_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    for name, value in headers:
        if not value.isprintable() or not value.isascii():
            raise UsageError(f"{name.lower()}: a header cannot hold that name", hint="names in ASCII")
    return headers
