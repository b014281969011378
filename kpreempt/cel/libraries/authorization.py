"""Functions that ask an authorizer: they are declared everywhere, and no expression here has an authorizer."""

from __future__ import annotations

from kpreempt.cel.functions import Overload, declare, one
from kpreempt.cel.values import NO_SUCH_OVERLOAD

_CHECK_COST = 350_000
_OF = "kubernetes.authorization."
_METHODS = (
    ("path", f"{_OF}Authorizer.(string) -> {_OF}PathCheck"),
    ("group", f"{_OF}Authorizer.(string) -> {_OF}GroupCheck"),
    ("serviceAccount", f"{_OF}Authorizer.(string, string) -> {_OF}Authorizer"),
    ("resource", f"{_OF}GroupCheck.(string) -> {_OF}ResourceCheck"),
    ("subresource", f"{_OF}ResourceCheck.(string) -> {_OF}ResourceCheck"),
    ("namespace", f"{_OF}ResourceCheck.(string) -> {_OF}ResourceCheck"),
    ("name", f"{_OF}ResourceCheck.(string) -> {_OF}ResourceCheck"),
    ("fieldSelector", f"{_OF}ResourceCheck.(string) -> {_OF}ResourceCheck"),
    ("labelSelector", f"{_OF}ResourceCheck.(string) -> {_OF}ResourceCheck"),
    ("allowed", f"{_OF}Decision.() -> bool"),
    ("errored", f"{_OF}Decision.() -> bool"),
    ("error", f"{_OF}Decision.() -> string"),
    ("reason", f"{_OF}Decision.() -> string"),
)
declare(
    *(Overload(_name, _signature, lambda *_args: NO_SUCH_OVERLOAD, one) for _name, _signature in _METHODS),
    *(
        Overload(
            "check",
            f"{_OF}{_kind}.(string) -> {_OF}Decision",
            lambda *_args: NO_SUCH_OVERLOAD,
            lambda _args, _result: _CHECK_COST,
        )
        for _kind in ("PathCheck", "ResourceCheck")
    ),
)
