"""Read what a proxy promises: to cancel a turn whose client has left, which no function sees (decision 0216)."""

from fermata.domain.errors import InvalidRequest
from fermata.wire.http.routing import RequestContext

DISCONNECTS_HEADER = "Fermata-Disconnects"
BRIDGE_HEADER = "Fermata-Bridge"
"""In the response to a prompt with that promise: the turn's bridge id, so that a proxy need not read the stream to
cancel it. An undo has no such header, because it goes on when its client has left."""
_CANCEL = "cancel"


def is_cancelled_on_disconnect(context: RequestContext) -> bool:
    """Return whether the sender promises to cancel the turn when its client has left.

    Raises:
        InvalidRequest: The header has another value.
    """
    promise = context.request.headers.get(DISCONNECTS_HEADER.lower(), "").strip().lower()
    if promise not in ("", _CANCEL):
        raise InvalidRequest(f"The header {DISCONNECTS_HEADER} may only say {_CANCEL!r}.")
    return promise == _CANCEL
