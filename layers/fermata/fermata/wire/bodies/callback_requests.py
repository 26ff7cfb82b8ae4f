"""Define the bodies of requests of servers that answer without a session."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from fermata.wire.bodies.fields import JSON_INTEGER, LenientBody, ResourceId, StrictBody


class NewCallbackToken(StrictBody):
    """A token for a turn: for which of its requests, and for how long."""

    request_ids: Annotated[list[ResourceId], Field(max_length=50)] | None = None
    expires_in_seconds: Annotated[int, Field(ge=1, le=604_800), JSON_INTEGER] | None = None


class RemoteError(LenientBody):
    """Why a remote tool has failed."""

    message: Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
    retryable: bool = False


class RemoteResultBody(LenientBody):
    """The result of a remote tool: `data`, which may be null, or an `error`."""

    tenant: ResourceId
    bridge_id: ResourceId
    request_id: ResourceId
    data: Any = None
    error: RemoteError | None = None

    @model_validator(mode="after")
    def _check_outcome(self) -> "RemoteResultBody":
        has_data = self.data is not None if self.error else "data" in self.model_fields_set
        if has_data == bool(self.error):
            raise ValueError("the result has either 'data' or an 'error'")
        return self
