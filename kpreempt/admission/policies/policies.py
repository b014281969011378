"""What ValidatingAdmissionPolicies reject, and which policies and webhooks apply without being evaluated.

Follows ``k8s.io/apiserver`` v0.36.3 ``pkg/admission/plugin/policy/validating/{dispatcher,validator}.go`` and
``webhook/matchconditions``. Audit annotations are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kpreempt.admission.custom_resources import is_custom
from kpreempt.admission.policies.expressions import BOOLEAN, TEXT, Expressions, Result, request_value
from kpreempt.admission.policies.matching import matches
from kpreempt.admission.policies.objects import unknown, value_of
from kpreempt.admission.policies.params import ConfigurationError, NotEvaluatedError, params_of
from kpreempt.admission.policies.requests import ADMISSION_GROUP, Request, name_of
from kpreempt.admission.policies.state import PolicyState
from kpreempt.admission.validation import KINDS
from kpreempt.admission.validation.problems import Document
from kpreempt.cel.values import TooLargeError, Value
from kpreempt.model.documents import mapping_in

POLICY: Final = "ValidatingAdmissionPolicy"
_MUTATING_POLICY: Final = "MutatingAdmissionPolicy"
_MUTATING: Final = "MutatingWebhookConfiguration"
_VALIDATING: Final = "ValidatingWebhookConfiguration"
_MAX_MESSAGE: Final = 5 * 1024


class Unevaluated(NamedTuple):
    """A policy or a webhook that applies, or may apply, and its possible effect, as the start of a list of objects.

    Without a ``subject``, it is about the object of the request: ``rejected unless ...``.
    """

    subject: str
    effect: str


class Outcome(NamedTuple):
    """What policies do with a request: ``denials`` and ``warnings`` are in the API server's words."""

    denials: list[str]
    warnings: list[str]
    unevaluated: list[Unevaluated]


class _Decision(NamedTuple):
    """A policy denies a request with a message, or it is unknown whether it does, for a reason."""

    message: str
    is_unknown: bool = False


def review(request: Request, state: PolicyState) -> Outcome:
    """Return what policies and webhooks do with a request."""
    outcome = Outcome([], [], [])
    # Neither policies nor webhooks apply to their own kinds.
    if state.is_empty or request.group == ADMISSION_GROUP:
        return outcome
    this = _Review(request, state)
    changes = [*this.webhooks(_MUTATING, "may change or reject"), *this.mutating_policies()]
    for policy in state.of_kind(POLICY):
        this.validate(policy, outcome)
    if changes and outcome.denials:
        # The object may be another one when policies see it.
        effect = f"rejected unless {changes[0].subject} changes it: "
        outcome.unevaluated.extend(Unevaluated("", f"{effect}{each}") for each in outcome.denials)
        outcome.denials.clear()
    outcome.unevaluated.extend([*changes, *this.webhooks(_VALIDATING, "may reject")])
    return outcome


class _Review:
    """Reviews one request."""

    def __init__(self, request: Request, state: PolicyState) -> None:
        self._request = request
        self._state = state
        # Of other kinds, not all defaults are known, so that fields may be missing.
        is_known = (request.group, request.kind) in KINDS or is_custom(request.document)
        self._trusts_errors = is_known
        self._objects: tuple[Value, Value] | None = None

    def webhooks(self, kind: str, effect: str) -> Iterator[Unevaluated]:
        """Yield the configurations with webhooks that apply."""
        for document in self._state.of_kind(kind):
            hooks = document.get("webhooks") or []
            names = [str(each.get("name")) for each in hooks if isinstance(each, dict) and self._is_called(each)]
            if names:
                yield Unevaluated(f"{kind} {name_of(document)}", f"is not called, and {effect}")

    def _is_called(self, hook: Mapping[str, Any]) -> bool:
        """Whether a webhook applies, or may apply."""
        if not self._applies(hook, "rules"):
            return False
        conditions = hook.get("matchConditions") or []
        return not conditions or self._meets(conditions, self._expressions({})) is not False

    def mutating_policies(self) -> Iterator[Unevaluated]:
        """Yield the MutatingAdmissionPolicies that apply."""
        for policy in self._state.of_kind(_MUTATING_POLICY):
            if self._applies(mapping_in(policy, "spec", "matchConstraints")):
                yield Unevaluated(f"{_MUTATING_POLICY} {name_of(policy)}", "is not evaluated, and may change")

    def _applies(self, constraints: Mapping[str, Any], rules: str = "resourceRules") -> bool:
        return matches(constraints, self._request, self._state.labels_of, rules) is not False

    def validate(self, policy: Document, outcome: Outcome) -> None:
        """Evaluate a policy with each of its bindings."""
        constraints = mapping_in(policy, "spec", "matchConstraints")
        applies = matches(constraints, self._request, self._state.labels_of)
        if applies is False:
            return
        subject = f"{POLICY} {name_of(policy)}"
        if self._state.lacks_bindings:
            outcome.unevaluated.append(Unevaluated(subject, _effect("its bindings were not read")))
        for binding in self._state.bindings_of(policy):
            is_bound = matches(mapping_in(binding, "spec", "matchResources"), self._request, self._state.labels_of)
            if is_bound is not False:
                is_certain = applies is True and is_bound is True
                self._add(policy, binding, outcome, is_certain=is_certain)

    def _add(self, policy: Document, binding: Document, outcome: Outcome, *, is_certain: bool) -> None:
        actions = mapping_in(binding, "spec").get("validationActions") or []
        names = f"{POLICY} '{name_of(policy)}' with binding '{name_of(binding)}'"
        try:
            decisions = [*self._decisions(policy, binding)]
        except ConfigurationError as error:
            fails = not _ignores_failures(policy)
            # It is denied whatever the actions are.
            decisions, actions = [_Decision(f"failed to configure binding: {error}")] if fails else [], ["Deny"]
        except (NotEvaluatedError, TooLargeError) as error:
            decisions = [_Decision(str(error), is_unknown=True)]
        for each in decisions:
            if "Deny" in actions and (each.is_unknown or not is_certain):
                effect = _effect(each.message) if each.is_unknown else f"may apply, and then rejects ({each.message})"
                outcome.unevaluated.append(Unevaluated(f"{POLICY} {name_of(policy)}", effect))
            elif "Deny" in actions:
                outcome.denials.append(f"{names} denied request: {each.message}")
            if "Warn" in actions and is_certain and not each.is_unknown:
                outcome.warnings.append(f"Validation failed for {names}: {each.message}")

    def _decisions(self, policy: Document, binding: Document) -> Iterator[_Decision]:
        """Raises ``ConfigurationError``, ``NotEvaluatedError`` and ``TooLargeError``."""
        spec = mapping_in(policy, "spec")
        for params in params_of(policy, binding, self._request, self._state):
            conditions = spec.get("matchConditions") or []
            # Match conditions do not see the namespace.
            meets = self._meets(conditions, self._expressions(spec, params)) if conditions else True
            if meets is False:
                continue
            if isinstance(meets, _Decision) and not meets.is_unknown:
                yield from self._failed(meets.message, policy)
                continue
            expressions = self._expressions(spec, params, has_namespace=True)
            for each in spec.get("validations") or []:
                for decision in self._validated(each, expressions, policy):
                    yield decision if meets is True else meets

    def _meets(self, conditions: Iterable[Mapping[str, Any]], expressions: Expressions) -> bool | _Decision:
        """Whether all conditions are met; otherwise, unless one is false, the error or why that is unknown."""
        results = [expressions.of(each, "expression", BOOLEAN) for each in conditions]
        if any(each.value is False for each in results):
            return False
        unknowns = (_Decision(each.unknown, is_unknown=True) for each in results if each.unknown)
        errors = ", ".join(each.error for each in results if each.error)
        return next(unknowns, _Decision(errors) if errors else True)

    def _validated(
        self, validation: Mapping[str, Any], expressions: Expressions, policy: Document
    ) -> Iterator[_Decision]:
        result = expressions.of(validation, "expression", BOOLEAN)
        if result.unknown:
            yield _Decision(result.unknown, is_unknown=True)
        elif result.error:
            yield from self._failed(result.error, policy)
        elif result.value is not True:
            yield _Decision(_message(validation, expressions))

    def _failed(self, error: str, policy: Document) -> Iterator[_Decision]:
        """The decision after an error."""
        if not _ignores_failures(policy):
            yield _Decision(error, is_unknown=not self._trusts_errors)

    def _expressions(
        self, spec: Mapping[str, Any], params: Document | None = None, *, has_namespace: bool = False
    ) -> Expressions:
        if self._objects is None:
            self._objects = value_of(self._request.document), value_of(self._request.old)
        return Expressions(
            request_value(self._request),
            self._objects,
            self._namespace() if has_namespace else None,
            variables=spec.get("variables") or [],
            params=value_of(params),
            has_params=bool(spec.get("paramKind")),
        )

    def _namespace(self) -> Value:
        """The namespace of the object; a namespace has none."""
        name = self._request.namespace
        if not name or self._request.is_namespace:
            return None
        document = self._state.namespace(name)
        return unknown(f"namespace {name}") if document is None else value_of(document)


def _effect(reason: str) -> str:
    return f"is not evaluated ({reason}), and may reject"


def _ignores_failures(policy: Document) -> bool:
    return mapping_in(policy, "spec").get("failurePolicy") == "Ignore"


def _message(validation: Mapping[str, Any], expressions: Expressions) -> str:
    """The message of a failed validation: that of its expression if it is one line, or the fixed one."""
    if validation.get("messageExpression"):
        result: Result = expressions.of(validation, "messageExpression", TEXT, has_authorizer=False)
        text = result.value.strip() if isinstance(result.value, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE:
            return text
    own = str(validation.get("message") or "").strip()
    return own or f"failed expression: {str(validation.get('expression')).strip()}"
