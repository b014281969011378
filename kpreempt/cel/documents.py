"""Rules: CEL expressions about documents, as written for the API."""

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


class Rule:
    """A compiled rule; ``cost`` is what the last evaluation cost, in Kubernetes' units.

    ``by_chance`` says of it that a list was made in the order of a map, which in cel-go chance decides: another
    evaluation might come out differently.
    """

    def __init__(self, expression: str, variables: Sequence[str]) -> None:
        """Raises ``CompileError``."""
        self.expression = expression
        self.variables = tuple(variables)
        self._program = Program(expression, Environment(dict.fromkeys(self.variables, DYN), {}), frozenset({BOOL, DYN}))

    @property
    def cost(self) -> int:
        return self._program.cost

    @property
    def by_chance(self) -> bool:
        return self._program.by_chance

    def evaluate(self, values: Mapping[str, Any]) -> bool:
        """Whether the rule holds of JSON documents, one for each variable; those that are missing are null.

        Raises ``EvaluationError``.
        """
        try:
            documents = [from_json(values.get(name)) for name in self.variables]
        except TooLargeError as error:
            raise EvaluationError(str(error)) from None
        except RecursionError:
            raise EvaluationError("values are nested too deeply") from None
        return truth(self._program.evaluate(*documents))


@lru_cache(maxsize=1024)
def _rule(expression: str, variables: tuple[str, ...]) -> Rule:
    return Rule(expression, variables)


def compile_rule(expression: str, variables: Sequence[str]) -> Rule:
    """The rule over variables of any type, remembered by its text. Raises ``CompileError``."""
    return _rule(expression, tuple(variables))
