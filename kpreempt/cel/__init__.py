"""CEL, the expression language of Kubernetes: device selectors (``devices``) and rules on documents (``documents``).

This interpreter compiles, evaluates and computes costs as Kubernetes 1.36 does with cel-go 0.26.0 and its own
libraries. It has no side effects, and time and memory are bounded for any expression.
"""

from __future__ import annotations


class CompileError(Exception):
    """An expression that Kubernetes rejects when compiling.

    ``str`` is the message of Kubernetes' cel package (``compilation failed: ERROR: <input>:1:4: ...``).
    """


class EvaluationError(Exception):
    """An expression that compiles, but whose evaluation fails, including by the cost limit.

    ``str`` is cel-go's message, such as ``no such key: model``. The scheduler prefixes the object and ``CEL runtime
    error: `` (``class gpu: selector #0: CEL runtime error: no such key: model``); the caller adds both.
    """
