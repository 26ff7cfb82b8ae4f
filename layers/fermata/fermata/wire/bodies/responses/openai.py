"""Define responses to OpenAI's clients: completions, responses and models. Their other members are those of OpenAI."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from fermata.wire.bodies.responses.common import ResponseModel


class OpenAIObject(ResponseModel):
    """An object of OpenAI's, with further members."""

    model_config = ConfigDict(extra="allow")

    id: str
    model: str


class ChatCompletionResponse(OpenAIObject):
    object: Literal["chat.completion"]
    created: int
    choices: list[dict[str, Any]]
    usage: dict[str, Any]


class OpenAIResponse(OpenAIObject):
    object: Literal["response"]
    created_at: Annotated[int, Field(alias="created_at")]
    status: str
    output: list[dict[str, Any]]
    error: dict[str, Any] | None
    incomplete_details: Annotated[dict[str, Any] | None, Field(alias="incomplete_details")]
    instructions: str | None
    metadata: dict[str, Any]
    parallel_tool_calls: Annotated[bool, Field(alias="parallel_tool_calls")]
    temperature: float | None
    tool_choice: Annotated[str, Field(alias="tool_choice")]
    tools: list[dict[str, Any]]
    top_p: Annotated[float | None, Field(alias="top_p")]
    usage: dict[str, Any] | None


class DeletedOpenAIResponse(ResponseModel):
    id: str
    object: Literal["response"]
    deleted: Literal[True]


class OpenAIInputItemListResponse(ResponseModel):
    """Items that a request brought. Their other members are those of OpenAI."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: Annotated[str | None, Field(alias="first_id")]
    last_id: Annotated[str | None, Field(alias="last_id")]
    has_more: Annotated[bool, Field(alias="has_more")]


class AgentModelResponse(ResponseModel):
    """An agent as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: Annotated[Literal["fermata", "tenant"], Field(alias="owned_by")]


class AgentModelListResponse(ResponseModel):
    object: Literal["list"]
    data: list[AgentModelResponse]


class OpenAIError(ResponseModel):
    """What is wrong. `code` is for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorResponse(ResponseModel):
    error: OpenAIError
