"""Define a request of a tool that its provider charges for."""

from collections.abc import Callable

from fermata.domain.model_io import TokenUsage
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class PaidRequest:
    """What a provider has reported of a request that it charges for.

    Attributes:
        is_estimated: Whether it has not answered, so that the tokens are those that such a request takes mostly.
    """

    provider: str
    model: str
    tokens: TokenUsage
    is_estimated: bool = False


ReportPaidRequest = Callable[[PaidRequest], None]
"""Notes a paid request, whatever becomes of its call afterwards."""


def ignore_paid_request(_paid: PaidRequest) -> None:
    """Account for nothing."""
