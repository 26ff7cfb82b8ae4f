"""Format numbers as the editor writes them into CSS: at most two decimals, halves rounded away from zero."""

from decimal import ROUND_HALF_UP, Decimal

_HUNDREDTH = Decimal("0.01")


def round_like_editor(value: float) -> float:
    """Round to two decimals by the exact binary value, like JavaScript's `toFixed(2)`: 3.125 is 3.13, 1.005 is 1.

    Raises:
        ArithmeticError: The number is too large, infinite or not a number.
    """
    return float(Decimal(value).quantize(_HUNDREDTH, rounding=ROUND_HALF_UP))


def format_css_number(value: float) -> str:
    """Round and format a number without trailing zeros and without a minus before zero."""
    number = round_like_editor(value)
    return str(int(number)) if number.is_integer() else repr(number)
