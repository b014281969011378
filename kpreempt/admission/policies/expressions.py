"""CEL expressions of policies and match conditions, with their variables.

Follows ``k8s.io/apiserver`` v0.36.3 ``pkg/admission/plugin/cel``. An expression that cannot be compiled is a gap here:
the API server compiles all expressions when a policy is created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from kpreempt.admission.policies.objects import unknown
from kpreempt.admission.policies.requests import UNKNOWN, Request
from kpreempt.cel import CompileError, EvaluationError
from kpreempt.cel.checker import Environment
from kpreempt.cel.compiler import Program
from kpreempt.cel.types import BOOL, DYN, STRING, Type, parse_type
from kpreempt.cel.values import Document as DocumentValue
from kpreempt.cel.values import Failure, LazyMap, TooLargeError, UnknownValueError, Value

# The longest request; expressions have no separate limit.
_MAX_LENGTH: Final = 3 * 1024 * 1024
_MAX_COST: Final = 10_000_000
_VARIABLES: Final = "kubernetes.variables"
_REQUEST: Final = "kubernetes.AdmissionRequest"
_NAMESPACE: Final = "kubernetes.Namespace"
_AUTHORIZER: Final = "authorizer"
_AUTHORIZER_TYPES: Final = {
    _AUTHORIZER: parse_type("kubernetes.authorization.Authorizer"),
    f"{_AUTHORIZER}.requestResource": parse_type("kubernetes.authorization.ResourceCheck"),
}


def _fields(text: str) -> dict[str, Type]:
    """Parse ``name string, labels map(string,string)``."""
    pairs = (each.split() for each in text.split("; "))
    return {name: parse_type(type_text) for name, type_text in pairs}


_FIELDS: Final[Mapping[str, Mapping[str, Type]]] = {
    "kubernetes.GroupVersionKind": _fields("group string; version string; kind string"),
    "kubernetes.GroupVersionResource": _fields("group string; version string; resource string"),
    "kubernetes.UserInfo": _fields("username string; uid string; groups list(string); extra map(string,list(string))"),
    _REQUEST: _fields(
        "kind kubernetes.GroupVersionKind; resource kubernetes.GroupVersionResource; subResource string; "
        "requestKind kubernetes.GroupVersionKind; requestResource kubernetes.GroupVersionResource; "
        "requestSubResource string; name string; namespace string; operation string; userInfo kubernetes.UserInfo; "
        "dryRun bool; options dyn"
    ),
    "kubernetes.NamespaceSpec": _fields("finalizers list(string)"),
    "kubernetes.NamespaceCondition": _fields(
        "status string; type string; lastTransitionTime timestamp; message string; reason string"
    ),
    "kubernetes.NamespaceStatus": _fields("conditions list(kubernetes.NamespaceCondition); phase string"),
    "kubernetes.NamespaceMetadata": _fields(
        "name string; generateName string; namespace string; labels map(string,string); "
        "annotations map(string,string); UID string; creationTimestamp timestamp; deletionGracePeriodSeconds int; "
        "deletionTimestamp timestamp; generation int; resourceVersion string; finalizers list(string)"
    ),
    _NAMESPACE: _fields(
        "metadata kubernetes.NamespaceMetadata; spec kubernetes.NamespaceSpec; status kubernetes.NamespaceStatus"
    ),
}
# The types of variables of a policy whose type the API server keeps; all others are dynamic.
_KEPT_KINDS: Final = frozenset(
    {"any", "bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint", "list", "map"}
)
BOOLEAN: Final = frozenset({BOOL})
TEXT: Final = frozenset({STRING})


class Result(NamedTuple):
    """The value of an expression, the error of its evaluation, or why either is unknown."""

    value: Value = None
    error: str = ""
    unknown: str = ""


class Expressions:
    """Evaluates the expressions of one policy for one request, with the parameters of one of its bindings.

    ``variables`` are the named expressions of the policy, each of which may use those before it. ``namespace`` is the
    namespace of the object as a value, null for cluster-scoped objects.
    """

    def __init__(
        self,
        request: Value,
        objects: tuple[Value, Value],
        namespace: Value,
        *,
        variables: Sequence[Mapping[str, Any]] = (),
        params: Value | None = None,
        has_params: bool = False,
    ) -> None:
        self._cost = 0
        self._types: dict[str, Type] = {}
        self._has_params = has_params
        computed: dict[str, Callable[[], Value]] = {}
        values = {
            "object": objects[0],
            "oldObject": objects[1],
            "namespaceObject": namespace,
            "request": request,
            "params": params,
            "variables": LazyMap((), computed),
            **dict.fromkeys(_AUTHORIZER_TYPES, unknown(_AUTHORIZER)),
        }
        self._values = values
        for each in variables:
            name, program = str(each.get("name")), self._compiled(each, "expression", None)
            computed[name] = partial(self._variable, name, program)
            known = isinstance(program, Program) and program.tree.type.kind in _KEPT_KINDS
            self._types[name] = program.tree.type if isinstance(program, Program) and known else DYN

    def of(
        self, part: Mapping[str, Any], field: str, results: frozenset[Type], *, has_authorizer: bool = True
    ) -> Result:
        """Evaluate the expression in a field of a part of the policy."""
        program = self._compiled(part, field, results, has_authorizer=has_authorizer)
        if isinstance(program, Result):
            return program
        result = self._run(program)
        if self._cost > _MAX_COST:
            return Result(unknown="its expressions exceed the limit for their total cost")
        if result.error:
            return Result(error=f"expression '{program.expression}' resulted in error: {result.error}")
        return result

    def _compiled(
        self, part: Mapping[str, Any], field: str, results: frozenset[Type] | None, *, has_authorizer: bool = True
    ) -> Program | Result:
        names = [name for name in self._values if self._is_declared(name, has_authorizer=has_authorizer)]
        try:
            return _program(str(part.get(field)), tuple(names), tuple(self._types.items()), results)
        except CompileError as error:
            return Result(unknown=f"an expression cannot be compiled: {' '.join(str(error).split())}")

    def _is_declared(self, name: str, *, has_authorizer: bool) -> bool:
        return (has_authorizer or name not in _AUTHORIZER_TYPES) and (self._has_params or name != "params")

    def _run(self, program: Program) -> Result:
        try:
            value = program.value_for(*(self._values[name] for name in _names(program)))
        except (EvaluationError, UnknownValueError, TooLargeError) as error:
            return Result(unknown=str(error))
        finally:
            self._cost += program.cost
        if type(value) is Failure:
            return Result(unknown=value.message) if value.is_unknown else Result(error=value.message)
        return Result(value)

    def _variable(self, name: str, program: Program | Result) -> Value:
        result = program if isinstance(program, Result) else self._run(program)
        if result.unknown:
            return Failure(result.unknown, is_unknown=True)
        if result.error:
            return Failure(f'composited variable "{name}" fails to evaluate: {result.error}')
        return result.value


class _Expression(Program):
    """A compiled expression with the names of its variables."""

    def __init__(self, text: str, environment: Environment, results: frozenset[Type] | None) -> None:
        """Raises ``CompileError``."""
        super().__init__(text, environment, results, _MAX_LENGTH)
        self.names = tuple(environment.variables)


def _names(program: Program) -> tuple[str, ...]:
    assert isinstance(program, _Expression)
    return program.names


@lru_cache(maxsize=1024)
def _program(
    text: str, names: tuple[str, ...], variables: tuple[tuple[str, Type], ...], results: frozenset[Type] | None
) -> Program:
    types = {
        "namespaceObject": parse_type(_NAMESPACE),
        "request": parse_type(_REQUEST),
        "variables": parse_type(_VARIABLES),
        **_AUTHORIZER_TYPES,
    }
    fields = {**_FIELDS, _VARIABLES: dict(variables)}
    return _Expression(text, Environment({name: types.get(name, DYN) for name in names}, fields), results)


def request_value(request: Request) -> Value:
    """Return the variable ``request``. Who makes the request is unknown, and so are its options."""
    kind = {"group": request.group, "version": request.version, "kind": request.kind}
    resource = {"group": request.group, "version": request.version, "resource": request.resource}
    known = {
        "kind": DocumentValue(kind.items()),
        "resource": DocumentValue(resource.items()),
        "requestKind": DocumentValue(kind.items()),
        "requestResource": DocumentValue(resource.items()),
        **({} if request.name is UNKNOWN else {"name": request.name}),
        **({"namespace": request.namespace} if request.namespace else {}),
        "operation": request.operation,
        "dryRun": False,
    }
    open_keys = ["userInfo", "options", *(["name"] if request.name is UNKNOWN else [])]
    return LazyMap(known.items(), {key: partial(unknown, f"request.{key}") for key in open_keys})
