"""Round US dollars for clients. Amounts are exact Decimals wherever they are computed and stored."""

from decimal import ROUND_HALF_UP, Decimal

_PLACES = Decimal("0.000001")


def round_usd(usd: Decimal) -> float:
    """Return the amount with six decimals, rounded half up."""
    return float(usd.quantize(_PLACES, ROUND_HALF_UP))
