"""US dollars: exact wherever they are computed and stored, rounded only where a client reads them."""

from decimal import ROUND_HALF_UP, Decimal

_PLACES = Decimal("0.000001")


def round_usd(usd: Decimal) -> float:
    """As clients read it: six decimals, half up."""
    return float(usd.quantize(_PLACES, ROUND_HALF_UP))
