"""Into the books: what is written together with the log entry that ends a request, or a turn."""

from collections.abc import Sequence

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Write
from fermata.usage.holds import settle
from fermata.usage.ledger import Closed, Spent, end_row, row


def book(desk: Desk, spent: Sequence[Spent]) -> list[Write]:
    """Rows of requests, and where their turn has a budget, the end of what was held for them."""
    writes: list[Write] = [row(desk, told) for told in spent]
    if spent and spent[0].budgeted:
        writes += settle(desk, spent[0].tenant, spent[0].turn, spent)
    return writes


def close(desk: Desk, closed: Closed, spent: Sequence[Spent]) -> list[Write]:
    """The same, and the row that says how the turn ended. A hold that was never used is given back."""
    writes: list[Write] = [*(row(desk, told) for told in spent), end_row(desk, closed)]
    if closed.budgeted:
        writes += settle(desk, closed.tenant, closed.turn, spent)
    return writes
