"""Read what a chat client wants of its prompt while another turn of the conversation runs (decision 0437)."""

from fermata.domain.errors import InvalidRequest
from fermata.wire.http.routing import RequestContext

WHEN_BUSY_HEADER = "Fermata-When-Busy"
WHEN_BUSY_CHOICES = ("interrupt", "reject")
"""The first is what happens without the header. No client of these protocols could show a prompt that waits."""


def is_interrupting(context: RequestContext) -> bool:
    """Return whether the prompt ends the turn that runs; if not, it is refused.

    Raises:
        InvalidRequest: The header has another value.
    """
    choice = context.request.headers.get(WHEN_BUSY_HEADER.lower(), "").strip().lower() or WHEN_BUSY_CHOICES[0]
    if choice not in WHEN_BUSY_CHOICES:
        raise InvalidRequest(f"The header {WHEN_BUSY_HEADER} says {' or '.join(map(repr, WHEN_BUSY_CHOICES))}.")
    return choice == "interrupt"
