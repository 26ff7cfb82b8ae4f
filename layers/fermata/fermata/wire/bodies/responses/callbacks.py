"""Define the response bodies of operations on callbacks."""

from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class CallbackTokenResponse(ResponseModel):
    """A callback token, which is never shown again."""

    token: str
    expires_at: InstantField
