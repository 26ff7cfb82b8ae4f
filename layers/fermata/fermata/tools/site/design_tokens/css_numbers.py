"""Numbers as the editor writes them into CSS: two decimals at most, ties away from zero."""

from decimal import ROUND_HALF_UP, Decimal

_CENT = Decimal("0.01")


def round_like_editor(value: float) -> float:
    """Decided on the exact binary value, as the editor's `toFixed(2)` does: 3.125 is 3.13, 1.005 is 1.

    Raises ArithmeticError for a number that is out of all proportion or none at all.
    """
    return float(Decimal(value).quantize(_CENT, rounding=ROUND_HALF_UP))


def format_css_number(value: float) -> str:
    """Rounded, without trailing zeros and without a minus before zero."""
    number = round_like_editor(value)
    return str(int(number)) if number.is_integer() else repr(number)
