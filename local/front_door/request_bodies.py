"""Read request bodies up to the limits of API Gateway and Lambda."""

from local.front_door.api_gateway_routing import MAX_BODY_BYTES, fits_lambda_event
from local.front_door.asgi import Message, Receive, Scope, find_header


class BodyTooLargeError(Exception):
    """The body exceeds a limit. `received`: what has come of it. `is_read`: that is all of it."""

    def __init__(self, received: bytes = b"", *, is_read: bool = False) -> None:
        super().__init__()
        self.received = received
        self.is_read = is_read


async def read_api_body(scope: Scope, receive: Receive) -> bytes | None:
    """Read a body that API Gateway and Lambda accept; None when the caller disconnects meanwhile.

    Raises:
        BodyTooLargeError
    """
    body = await read_limited_body(scope, receive, MAX_BODY_BYTES)
    if body is not None and not fits_lambda_event(scope["headers"], scope["query_string"], body):
        raise BodyTooLargeError(body, is_read=True)
    return body


async def read_limited_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes | None:
    """Read a body of at most `max_bytes`; None when the caller disconnects meanwhile.

    Raises:
        BodyTooLargeError: for a declared length before anything is read, else as soon as the limit is passed.
    """
    declared_length = int(find_header(scope["headers"], b"content-length") or 0)
    if declared_length > max_bytes:
        raise BodyTooLargeError
    body = bytearray()
    more_body = True
    while more_body:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more_body = message.get("more_body", False)
        if len(body) > max_bytes:
            raise BodyTooLargeError(bytes(body), is_read=not more_body)
    return bytes(body)


async def read_rest_of_body(error: BodyTooLargeError, receive: Receive, max_bytes: int) -> bytes | None:
    """Read on after a limit was passed; None when the caller disconnects, or sends more than `max_bytes`."""
    if error.is_read:
        return error.received
    try:
        rest = await read_limited_body({"headers": []}, receive, max_bytes)
    except BodyTooLargeError:
        return None
    return None if rest is None else error.received + rest


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Make a `receive` that delivers a body already read, then what else happens to the connection."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return pending.pop() if pending else await receive()

    return receive_again
