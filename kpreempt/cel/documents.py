"""Rules: CEL expressions on documents in the API's format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from kpreempt.cel import EvaluationError
from kpreempt.cel.checker import Environment
from kpreempt.cel.compiler import Program
from kpreempt.cel.devices import truth
from kpreempt.cel.types import BOOL, DYN
from kpreempt.cel.values import TooLargeError, from_json


class Rule(Program):
    """A compiled rule."""

    def __init__(self, expression: str, variables: Sequence[str]) -> None:
        """Raises ``CompileError``."""
        self.variables = tuple(variables)
        super().__init__(expression, Environment(dict.fromkeys(self.variables, DYN), {}), frozenset({BOOL, DYN}))

    def evaluate(self, values: Mapping[str, Any]) -> bool:
        """Evaluate the rule on JSON documents, one for each variable; missing ones are null.

        Raises ``EvaluationError``.
        """
        try:
            documents = [from_json(values.get(name)) for name in self.variables]
        except TooLargeError as error:
            raise EvaluationError(str(error)) from None
        except RecursionError:
            raise EvaluationError("values are nested too deeply") from None
        return truth(self.value_for(*documents))


@lru_cache(maxsize=1024)
def _rule(expression: str, variables: tuple[str, ...]) -> Rule:
    return Rule(expression, variables)


def compile_rule(expression: str, variables: Sequence[str]) -> Rule:
    """Compile a rule with variables of any type; results are cached. Raises ``CompileError``."""
    return _rule(expression, tuple(variables))
