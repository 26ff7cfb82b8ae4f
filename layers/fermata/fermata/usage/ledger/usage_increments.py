"""Describe what a ledger row adds to the sums of one quarter of an hour."""

from dataclasses import dataclass

from fermata.usage.usage_totals import UsageDimension, UsageTotals

MAX_INCREMENTS_PER_TRANSACTION = 24
"""A transaction has at most 100 writes, and an increment may need four: a mark, a conversation and two rollups."""


@dataclass(frozen=True, slots=True)
class UsageIncrement:
    """Totals to add under one user, scope and model (`provider/model`) in one quarter."""

    quarter: int
    user: str
    scope: str
    model: str
    totals: UsageTotals

    @property
    def names(self) -> tuple[tuple[UsageDimension, str], ...]:
        """The dimension and the name of each rollup total that the increment adds to."""
        return (("users", self.user), ("scopes", self.scope), ("models", self.model))


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """Parsed ledger row, or a part of one that fits into a transaction.

    Attributes:
        key: Unique in the tenant; rollups count each key once.
        conversation: The conversation that was active with the row; empty when the row is no activity.
    """

    key: str
    increments: tuple[UsageIncrement, ...]
    conversation: str = ""
