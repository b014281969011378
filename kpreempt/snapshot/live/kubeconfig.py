"""Kubeconfig files: found, merged and reduced to one cluster and one user like kubectl does.

After client-go's ``tools/clientcmd`` (v0.36): ``loader.go`` (the first file with a name wins, also for
``current-context``; paths are relative to their file), ``client_config.go`` (overrides by flags). The ``kubernetes``
package merges differently: the last ``current-context`` wins, and there is no ``--cluster``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.files import read_text
from kpreempt.snapshot.documents import parse_document
from kpreempt.snapshot.live.flags import ConnectionFlags


class _Entry(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ClusterEntry(_Entry, frozen=True, kw_only=True, rename="kebab"):
    """The address of an API server, and how it is verified."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] = []


class ExecVariable(_Entry, frozen=True, kw_only=True):
    """An environment variable of a credential plugin."""

    name: str
    value: str = ""


class ExecEntry(_Entry, frozen=True, kw_only=True, rename="camel"):
    """A program that provides credentials."""

    command: str = ""
    args: list[str] = []
    env: list[ExecVariable] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProviderEntry(_Entry, frozen=True, kw_only=True):
    """An authentication provider built into kubectl."""

    name: str = ""
    config: dict[str, str] = {}


class UserEntry(_Entry, frozen=True, kw_only=True, rename="kebab"):
    """A user and its credentials."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    as_user: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    exec: ExecEntry | None = None
    auth_provider: AuthProviderEntry | None = None


class ContextEntry(_Entry, frozen=True, kw_only=True):
    """A named combination of cluster, user and namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Entry, frozen=True, kw_only=True):
    name: str
    cluster: ClusterEntry = ClusterEntry()


class _NamedUser(_Entry, frozen=True, kw_only=True):
    name: str
    user: UserEntry = UserEntry()


class _NamedContext(_Entry, frozen=True, kw_only=True):
    name: str
    context: ContextEntry = ContextEntry()


class _File(_Entry, frozen=True, kw_only=True, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """All files merged; paths in it are absolute or relative to the working directory."""

    current_context: str = ""
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, UserEntry] = {}
    contexts: dict[str, ContextEntry] = {}

    @property
    def is_empty(self) -> bool:
        """Whether it is completely empty."""
        return not (self.current_context or self.clusters or self.users or self.contexts)


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster and one user after applying flags; ``context`` and ``namespace`` may be empty."""

    context: str = ""
    namespace: str = ""
    cluster: ClusterEntry
    user_name: str = ""
    user: UserEntry


def read_kubeconfig(flags: ConnectionFlags, environment: Mapping[str, str]) -> Kubeconfig:
    """Read the files that ``--kubeconfig`` or ``KUBECONFIG`` names, or ``~/.kube/config``.

    Missing files are ignored. Raises ``InputError`` for an unreadable or invalid file, and for a missing
    ``--kubeconfig``.
    """
    if flags.kubeconfig:
        return _merged([Path(flags.kubeconfig).expanduser()])
    if environment.get("KUBECONFIG"):
        paths = [Path(each) for each in environment["KUBECONFIG"].split(os.pathsep) if each]
    else:
        paths = [Path(environment["HOME"], ".kube", "config")] if environment.get("HOME") else []
    return _merged([path for path in dict.fromkeys(paths) if path.exists()])


def _merged(paths: list[Path]) -> Kubeconfig:
    current = ""
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, UserEntry] = {}
    contexts: dict[str, ContextEntry] = {}
    for path in paths:
        file = _read(path)
        current = current or file.current_context
        for cluster in file.clusters:
            clusters.setdefault(cluster.name, _resolved(cluster.cluster, path, "certificate_authority"))
        for user in file.users:
            entry = _resolved(user.user, path, "client_certificate", "client_key", "token_file")
            if entry.exec is not None and os.sep in entry.exec.command:
                entry = msgspec.structs.replace(entry, exec=_resolved(entry.exec, path, "command"))
            users.setdefault(user.name, entry)
        for context in file.contexts:
            contexts.setdefault(context.name, context.context)
    return Kubeconfig(current_context=current, clusters=clusters, users=users, contexts=contexts)


def _read(path: Path) -> _File:
    text = read_text(str(path))
    document = parse_document(text, str(path)) if text.strip() else {}
    try:
        return msgspec.convert(_without_nulls(document), _File)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        raise InputError(
            problem.replace("Expected", "expected").replace("Object", "the entry"),
            source=str(path),
            path=where.rstrip("`"),
            hint="kubectl config view",
        ) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _resolved(entry: Any, file: Path, *fields: str) -> Any:
    """Return the entry with the paths in ``fields`` resolved relative to the file's directory."""
    given = {field: getattr(entry, field) for field in fields}
    return msgspec.structs.replace(entry, **{field: str(file.parent / path) for field, path in given.items() if path})


def choose(config: Kubeconfig, flags: ConnectionFlags) -> Chosen:
    """Select the cluster and user by flags and the current context.

    Raises ``UsageError`` for an unknown name.
    """
    name = flags.context or config.current_context
    context = config.contexts.get(name)
    if context is None:
        if name:
            raise _unknown("context", "--context" if flags.context else "current-context", name, config.contexts)
        context = ContextEntry()
    cluster_name, user_name = flags.cluster or context.cluster, flags.user or context.user
    cluster = config.clusters.get(cluster_name, ClusterEntry())
    if flags.cluster and flags.cluster not in config.clusters:
        raise _unknown("cluster", "--cluster", flags.cluster, config.clusters)
    user = config.users.get(user_name, UserEntry())
    if flags.user and flags.user not in config.users:
        raise _unknown("user", "--user", flags.user, config.users)
    changes: dict[str, Any] = {}
    if flags.insecure_skip_tls_verify and flags.certificate_authority:
        raise UsageError("--insecure-skip-tls-verify and --certificate-authority cannot be used together")
    if flags.server:
        changes["server"] = flags.server
        # A separate TLS server name does not belong to the new server.
        changes["tls_server_name"] = ""
    if flags.tls_server_name:
        changes["tls_server_name"] = flags.tls_server_name
    if flags.insecure_skip_tls_verify or flags.certificate_authority:
        changes["insecure_skip_tls_verify"] = flags.insecure_skip_tls_verify
        changes["certificate_authority"] = flags.certificate_authority
        changes["certificate_authority_data"] = ""
    given: dict[str, Any] = {"as_user": flags.as_user, "as_uid": flags.as_uid, "as_groups": list(flags.as_groups)}
    user = msgspec.structs.replace(
        user,
        **{field: value for field, value in given.items() if value},
        **({"token": flags.token, "token_file": ""} if flags.token else {}),
    )
    if not user.as_user and (user.as_uid or user.as_groups or user.as_user_extra):
        raise UsageError("impersonating a group, UID or extra requires a user", hint="--as USER")
    return Chosen(
        context=name,
        namespace=context.namespace,
        cluster=msgspec.structs.replace(cluster, **changes),
        user_name=user_name,
        user=user,
    )


def _unknown(what: str, option: str, name: str, known: Mapping[str, object]) -> UsageError:
    names = sorted(known)
    some = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return UsageError(f'{option}: the kubeconfig has no {what} "{name}"', hint=some or f"it has no {what}s")
