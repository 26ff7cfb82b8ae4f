"""Define the bodies of requests on remote tools."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from fermata.wire.bodies.fields import ApiKey, NonBlankUrl, StrictBody

_HeaderValue = Annotated[str, StringConstraints(max_length=4096)]
_OptionValue = Annotated[str, StringConstraints(max_length=1000)]
_Headers = Annotated[dict[Annotated[str, StringConstraints(max_length=100)], _HeaderValue], Field(max_length=20)]


class NewRemoteTool(StrictBody):
    """A tool to register. `manifest` is described in docs/remote-tools.md."""

    manifest: dict[str, Any]
    endpoint: NonBlankUrl
    static_headers: _Headers | None = None
    scopes: Annotated[list[str], Field(max_length=20)] | None = None
    forward_authorization: bool = False
    """Whether its endpoint is sent the Authorization header of the user whose turn calls it."""
    replace: bool = False


class BuiltInToolSettings(StrictBody):
    """The key of the service behind a built-in tool, and what else the tool needs."""

    api_key: ApiKey | None = None
    options: Annotated[dict[str, Annotated[str, StringConstraints(max_length=1000)]], Field(max_length=10)] | None = (
        None
    )


class RemoteToolChange(StrictBody):
    """The changes of a tool. Members that are left out keep their value."""

    enabled: bool | None = None
    static_headers: _Headers | None = None
    rotate_signing_secret: bool = False
