"""Round and format numbers in CSS values that are derived."""

from decimal import ROUND_HALF_UP, Decimal


def round_css_number(value: float) -> float:
    """Round to two decimals, half up."""
    return float(Decimal(value).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


def format_css_number(value: float) -> str:
    """Format with at most two decimals, without trailing zeros."""
    rounded = round_css_number(value)
    return str(int(rounded)) if rounded.is_integer() else repr(rounded)
