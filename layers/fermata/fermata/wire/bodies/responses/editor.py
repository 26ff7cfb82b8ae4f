"""Define the response bodies of operations on tools and uploads."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from fermata.domain.agent_ids import ScopeName
from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class UploadHeaders(ResponseModel):
    model_config = ConfigDict(alias_generator=None)

    content_type: str = Field(alias="content-type")
    if_none_match: str = Field(alias="if-none-match")
    x_amz_checksum_sha256: str = Field(alias="x-amz-checksum-sha256")


class UploadResponse(ResponseModel):
    """Where to PUT exactly the announced bytes, with `headers`. `ref` names the upload in request bodies."""

    ref: str
    method: Literal["PUT"]
    url: str
    headers: UploadHeaders
    url_expires_at: InstantField
    ref_expires_at: InstantField


class ScopeView(ResponseModel):
    """A scope: what other operations call `scope`."""

    name: ScopeName


class ScopeListResponse(ResponseModel):
    scopes: list[ScopeView]


class ToolView(ResponseModel):
    """A tool. `inputSchema` is JSON Schema without references.

    The caller needs one of `permissions`, if there are any. A tool that writes needs `ai.tools.write` as well. The
    editor executes a tool whose execution is `browser`; its `toolRequest` may have members besides those of the schema.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    execution: Literal["server", "browser", "remote", "mcp", "agent"]
    capability: Literal["read", "write"]
    permissions: list[str]


class ToolListResponse(ResponseModel):
    """The tools, in the order in which a model gets them."""

    tools: list[ToolView]
