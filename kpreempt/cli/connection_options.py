"""kubectl's connection options, declared once and given to a command by ``@connects``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, get_type_hints

from typer import Option

Command = Callable[..., int]

_Text = str | None
# Names as in ``ConnectionFlags``; the values are what Typer reads off a parameter, so they are no strings.
_OPTIONS: dict[str, Any] = {
    "kubeconfig": Annotated[_Text, Option("--kubeconfig", metavar="FILE", help="The kubeconfig, not $KUBECONFIG.")],
    "context": Annotated[_Text, Option("--context", metavar="NAME", help="The context of the kubeconfig.")],
    "cluster": Annotated[_Text, Option("--cluster", metavar="NAME", help="The cluster of the kubeconfig.")],
    "user": Annotated[_Text, Option("--user", metavar="NAME", help="The user of the kubeconfig.")],
    "server": Annotated[_Text, Option("-s", "--server", metavar="URL", help="Address of the API server.")],
    "token": Annotated[_Text, Option("--token", metavar="TOKEN", help="Bearer token for the API server.")],
    "certificate_authority": Annotated[
        _Text, Option("--certificate-authority", metavar="FILE", help="Certificate of the server's authority.")
    ],
    "insecure_skip_tls_verify": Annotated[
        bool, Option("--insecure-skip-tls-verify", help="Do not check the server's certificate: insecure.")
    ],
    "tls_server_name": Annotated[
        _Text, Option("--tls-server-name", metavar="NAME", help="The name that the server's certificate is for.")
    ],
    "as_user": Annotated[_Text, Option("--as", metavar="USER", help="User or service account to impersonate.")],
    "as_groups": Annotated[
        list[str] | None, Option("--as-group", metavar="GROUP", help="Group to impersonate. Repeatable.")
    ],
    "as_uid": Annotated[_Text, Option("--as-uid", metavar="UID", help="UID to impersonate.")],
    "request_timeout": Annotated[
        _Text, Option("--request-timeout", metavar="TIME", help="For one request: 30s, 2m; 0 is without end.  [1m]")
    ],
}


def connects(command: Command) -> Command:
    """Give a command kubectl's connection options, after its own.

    The command has a parameter ``connection``, which gets the ``ConnectionFlags``; Typer never sees it.
    """
    own = [each for each in inspect.signature(command).parameters.values() if each.name != "connection"]
    namespace = SimpleNamespace(__annotations__={each.name: each.annotation for each in own})
    hints = get_type_hints(namespace, command.__globals__, include_extras=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_default(name), annotation=option)
        for name, option in _OPTIONS.items()
    ]

    def run(**values: Any) -> int:
        from kpreempt.snapshot.live.flags import ConnectionFlags

        given = {name: value for name in _OPTIONS if (value := values.pop(name))}
        if "as_groups" in given:
            given["as_groups"] = tuple(given["as_groups"])
        return command(**values, connection=ConnectionFlags(**given))

    parameters = [each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    run.__signature__ = inspect.Signature([*parameters, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*parameters, *options)}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _default(name: str) -> bool | None:
    return False if name == "insecure_skip_tls_verify" else None
