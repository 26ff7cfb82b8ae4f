"""Define the response bodies of operations on remote tools."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class RemoteToolView(ResponseModel):
    """A remote tool without the values of its headers. `definition` is the id of its current version."""

    manifest: dict[str, Any]
    source: Literal["remote", "deployment", "builtin"]
    endpoint: str
    scopes: list[str]
    header_names: list[str]
    forward_authorization: bool
    options: dict[str, str] | None = None
    definition: str
    registered_at: InstantField
    updated_at: InstantField


class RemoteToolListResponse(ResponseModel):
    tools: list[RemoteToolView]


class NewRemoteToolResponse(ResponseModel):
    """A tool. `signingSecret` is there when it is new, and never shown again."""

    tool: RemoteToolView
    signing_secret: str | None = None
