"""Functions that ask an authorizer: they are declared everywhere, and no expression here has an authorizer."""

from __future__ import annotations

from kpreempt.cel.functions import declare, one
from kpreempt.cel.values import NO_SUCH_OVERLOAD, Value


def _nobody(*_args: Value) -> Value:
    return NO_SUCH_OVERLOAD


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
for _name, _signature in _METHODS:
    declare(_name, _signature, _nobody, cost=one)
for _kind in ("PathCheck", "ResourceCheck"):
    declare("check", f"{_OF}{_kind}.(string) -> {_OF}Decision", _nobody, cost=lambda _args, _result: _CHECK_COST)
