"""Define the bodies of OpenAI's requests: chat completions, and responses (docs/clients.md).

Members that say nothing to an agent are ignored: it has its own model, sampling and limits. Those that a client cannot
do without are refused where they cannot be kept.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fermata.wire.bodies.chat_clients import MAX_CLIENT_TOOLS
from fermata.wire.bodies.fields import LenientBody

OpenAIItem = dict[str, Any]
AgentName = Annotated[str, StringConstraints(min_length=1, max_length=100)]
ConversationName = Annotated[str, StringConstraints(max_length=200)]


class StreamOptionsBody(LenientBody):
    """What a stream contains besides the answer."""

    include_usage: Annotated[bool | None, Field(alias="include_usage")] = False


class OpenAIMetadata(LenientBody):
    """The metadata of a request. `conversation` names the conversation that it belongs to."""

    conversation: ConversationName | None = None


class ConversationReference(LenientBody):
    """A conversation, as the Responses API names it."""

    id: ConversationName


class OpenAIRequestBody(LenientBody):
    """What both kinds of requests have. `model` is the id of an agent.

    `conversation`, or the same member of `metadata`, names the conversation: its id, or any name of the client's.
    """

    model: AgentName
    stream: bool | None = False
    tools: Annotated[list[OpenAIItem] | None, Field(max_length=MAX_CLIENT_TOOLS)] = None
    tool_choice: Annotated[Any, Field(alias="tool_choice")] = None
    metadata: OpenAIMetadata | None = None
    conversation: ConversationName | ConversationReference | None = None

    @property
    def conversation_name(self) -> str:
        """The conversation that the client names; empty if it names none."""
        named = self.conversation.id if isinstance(self.conversation, ConversationReference) else self.conversation
        return named or (self.metadata.conversation if self.metadata else None) or ""


class ChatCompletionBody(OpenAIRequestBody):
    """A request for a chat completion, with all messages of the chat.

    What would be missing from the answer without a word is refused: more answers, probabilities, calls of `functions`
    in place of `tools`, audio.
    """

    messages: Annotated[list[OpenAIItem], Field(min_length=1)]
    stream_options: Annotated[StreamOptionsBody | None, Field(alias="stream_options")] = None
    response_format: Annotated[OpenAIItem | None, Field(alias="response_format")] = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    functions: Annotated[list[Any] | None, Field(max_length=0)] = None
    modalities: list[Literal["text"]] | None = None


class ResponseTextBody(LenientBody):
    """The form of a response's text."""

    format: OpenAIItem | None = None


class ResponseBody(OpenAIRequestBody):
    """A request for a response: a text, or items, of which only those after `previous_response_id` are new."""

    input: str | Annotated[list[OpenAIItem], Field(min_length=1)]
    instructions: str | None = None
    previous_response_id: Annotated[str | None, Field(alias="previous_response_id", max_length=120)] = None
    text: ResponseTextBody | None = None
    background: bool | None = False
    top_logprobs: Annotated[Literal[0] | None, Field(alias="top_logprobs")] = None
