"""The natural logarithm as Go computes it, to the last bit.

C's logarithm, which is Python's, rounds one in a hundred numbers differently. This is the algorithm of FreeBSD's
``e_log.c``, which Go follows: with ``x = 2^exponent * (1 + fraction)``, ``log(1 + fraction)`` is approximated by a
polynomial in ``(fraction / (2 + fraction))^2``. The order of the operations is part of the result.
"""

from __future__ import annotations

import math

# log(2) in two parts, so that an exponent times the first one is exact.
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10

_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
_ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)


def natural_log(number: float) -> float:
    """The logarithm of a positive, finite number."""
    mantissa, exponent = math.frexp(number)
    if mantissa < math.sqrt(2) / 2:
        mantissa, exponent = mantissa * 2, exponent - 1
    fraction = mantissa - 1
    ratio = fraction / (2 + fraction)
    square = ratio * ratio
    fourth = square * square
    remainder = square * _polynomial(_ODD, fourth) + fourth * _polynomial(_EVEN, fourth)
    half = 0.5 * fraction * fraction
    correction = ratio * (half + remainder) + exponent * _LOG2_LOW
    return exponent * _LOG2_HIGH - ((half - correction) - fraction)


def _polynomial(coefficients: tuple[float, ...], argument: float) -> float:
    """The polynomial's value, from the highest power down."""
    value = 0.0
    for coefficient in reversed(coefficients):
        value = coefficient + argument * value
    return value
