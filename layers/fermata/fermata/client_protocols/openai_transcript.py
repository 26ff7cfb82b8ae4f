"""Read the messages of OpenAI's clients as a transcript: what was said before, and what is new (decision 0385)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

from fermata.client_protocols.client_messages import ClientPrompt, defer_downloads, read_agui_prompt
from fermata.domain.errors import InvalidRequest
from fermata.domain.value_dataclass import value_dataclass
from fermata.wire.bodies.chat_clients import ClientToolBody
from fermata.wire.bodies.openai_requests import OpenAIItem
from fermata.wire.renderers.openai_answer import DECISION_TOOL

TranscriptRole = Literal["user", "assistant", "tool"]
_INSTRUCTION_ROLES = ("system", "developer")
_TEXT_TYPES = ("text", "input_text", "output_text")
_MAX_NAMED_CHARS = 40
_DECISION_PREFIX = "mcpr_"
FILE_NOTE = "[Here was a file that is not part of this conversation.]"


@value_dataclass(frozen=True)
class TranscriptCall:
    """A call that the client was shown."""

    call_id: str
    tool_name: str
    arguments: str


@value_dataclass(frozen=True)
class TranscriptMessage:
    """A message as the client has it. `parts` are those of a user's message besides text."""

    role: TranscriptRole
    text: str = ""
    parts: tuple[Mapping[str, Any], ...] = ()
    calls: tuple[TranscriptCall, ...] = ()
    call_id: str = ""

    def identify(self) -> list[Any]:
        """Return what makes the message the same one. Clients write arguments anew, and trim texts."""
        return [self.role, self.text.strip(), [*self.parts], [call.call_id for call in self.calls], self.call_id]

    def without_addresses(self) -> "TranscriptMessage":
        """Return the message with a note in place of recordings, and of files that it only names.

        Earlier messages may name very many.
        """
        kept = tuple(part for part in self.parts if _is_inline_picture(part))
        if len(kept) == len(self.parts):
            return self
        return replace(self, text=f"{self.text}\n\n{FILE_NOTE}".strip(), parts=kept)

    def to_prompt(self) -> ClientPrompt:
        """Return the message of a user as a prompt, whose files are not downloaded yet.

        Raises:
            InvalidRequest, PayloadTooLarge: As `read_agui_prompt`.
        """
        message = {"content": [{"type": "text", "text": self.text}, *self.parts]}
        return defer_downloads(read_agui_prompt, message)


@value_dataclass(frozen=True)
class Transcript:
    """A client's messages. `instructions` are those of its application."""

    messages: tuple[TranscriptMessage, ...]
    instructions: str = ""

    @cached_property
    def results(self) -> tuple[TranscriptMessage, ...]:
        """The results at the end, which the model waits for."""
        return self._take_last("tool")

    @cached_property
    def prompt(self) -> TranscriptMessage:
        """What the user says now: the messages of the user at the end, as one.

        Raises:
            InvalidRequest: The last message is not the user's.
        """
        said = self._take_last("user")
        if not said:
            raise InvalidRequest("The last message must be the user's, or the results of tools.")
        text = "\n\n".join(message.text for message in said if message.text.strip())
        return TranscriptMessage("user", text, tuple(part for message in said for part in message.parts))

    @property
    def earlier(self) -> tuple[TranscriptMessage, ...]:
        """What was said before the prompt."""
        return self.messages[: len(self.messages) - len(self._take_last("user"))]

    def _take_last(self, role: TranscriptRole) -> tuple[TranscriptMessage, ...]:
        start = len(self.messages)
        while start and self.messages[start - 1].role == role:
            start -= 1
        return self.messages[start:]


def compute_transcript_digest(scope: str, messages: Sequence[TranscriptMessage]) -> str:
    """Return what names a transcript with an agent."""
    identity = [scope, *(message.identify() for message in messages)]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def read_chat_transcript(messages: Sequence[OpenAIItem]) -> Transcript:
    """Read the messages of a chat completion.

    Raises:
        InvalidRequest: A message is none, or has a part that cannot be read.
    """
    read = [message for message in messages if message.get("role") not in _INSTRUCTION_ROLES]
    instructions = [_read_text(message) for message in messages if message.get("role") in _INSTRUCTION_ROLES]
    return Transcript(tuple(map(_read_chat_message, read)), "\n\n".join(filter(None, instructions)))


def _read_chat_message(message: OpenAIItem) -> TranscriptMessage:
    match message.get("role"):
        case "user":
            return TranscriptMessage("user", _read_text(message), _read_files(message))
        case "assistant":
            calls = message.get("tool_calls")
            listed = calls if isinstance(calls, list) else []
            return TranscriptMessage("assistant", _read_text(message), calls=tuple(map(_read_call, listed)))
        case "tool":
            return TranscriptMessage("tool", _read_text(message), call_id=_as_text(message.get("tool_call_id")))
    raise InvalidRequest(f"Invalid role: {str(message.get('role'))[:_MAX_NAMED_CHARS]!r}.")


def _read_call(call: Any) -> TranscriptCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise InvalidRequest("A tool call of the messages is no function call.")
    return TranscriptCall(_as_text(call.get("id")), _as_text(function.get("name")), _as_text(function.get("arguments")))


def read_response_transcript(items: str | Sequence[OpenAIItem], instructions: str = "") -> Transcript:
    """Read the input of a response.

    Raises:
        InvalidRequest: An item is of an unknown type, or has a part that cannot be read.
    """
    listed: Sequence[OpenAIItem] = [{"role": "user", "content": items}] if isinstance(items, str) else items
    texts = [instructions]
    messages: list[TranscriptMessage] = []
    for item in listed:
        if item.get("role") in _INSTRUCTION_ROLES:
            texts.append(_read_text(item))
        elif (message := _read_item(item)) is not None:
            messages.append(message)
    messages = _drop_old_decisions(messages)
    return Transcript(tuple(_join_calls(messages)), "\n\n".join(filter(None, texts)))


def _read_item(item: OpenAIItem) -> TranscriptMessage | None:
    match item.get("type", "message"):
        case "message":
            return _read_chat_message(item)
        case "function_call":
            call = TranscriptCall(
                _as_text(item.get("call_id")), _as_text(item.get("name")), _as_text(item.get("arguments"))
            )
            return TranscriptMessage("assistant", calls=(call,))
        case "function_call_output":
            text = _read_text({"content": item.get("output")})
            return TranscriptMessage("tool", text, call_id=_as_text(item.get("call_id")))
        case "mcp_approval_response":
            return _read_approval_response(item)
        case "reasoning" | "item_reference" | "mcp_approval_request":
            return None
    raise InvalidRequest(f"Items of the type {str(item.get('type'))[:_MAX_NAMED_CHARS]!r} are not supported.")


def _read_approval_response(item: OpenAIItem) -> TranscriptMessage:
    decision = {"approved": item.get("approve"), "reason": item.get("reason")}
    return TranscriptMessage("tool", json.dumps(decision), call_id=_as_text(item.get("approval_request_id")))


def _drop_old_decisions(messages: Sequence[TranscriptMessage]) -> list[TranscriptMessage]:
    """Return the messages without decisions that an answer follows: what they were about is no message."""
    last = max((index for index, message in enumerate(messages) if message.role != "tool"), default=-1)
    return [one for index, one in enumerate(messages) if index > last or not one.call_id.startswith(_DECISION_PREFIX)]


def _join_calls(messages: Sequence[TranscriptMessage]) -> list[TranscriptMessage]:
    """Return the messages with those of one answer as one: its text and each of its calls are items of their own."""
    joined: list[TranscriptMessage] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is not None and message.role == before.role == "assistant":
            text = "\n\n".join(filter(None, (before.text, message.text)))
            joined[-1] = TranscriptMessage("assistant", text, calls=(*before.calls, *message.calls))
        else:
            joined.append(message)
    return joined


def _read_text(message: OpenAIItem) -> str:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    texts = [_as_text(part.get("text")) for part in _list_parts(content) if part.get("type") in _TEXT_TYPES]
    return "\n\n".join(filter(None, texts))


def _read_files(message: OpenAIItem) -> tuple[Mapping[str, Any], ...]:
    content = message.get("content")
    parts = () if content is None or isinstance(content, str) else _list_parts(content)
    return tuple(_read_file(part) for part in parts if part.get("type") not in _TEXT_TYPES)


def _is_inline_picture(part: Mapping[str, Any]) -> bool:
    value = str(part["source"].get("value"))
    return value.startswith("data:") and part.get("type") != "audio"


def _list_parts(content: Any) -> list[OpenAIItem]:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise InvalidRequest("The content of a message must be a text or a list of parts.")
    return content


def _read_file(part: OpenAIItem) -> Mapping[str, Any]:
    """Return an image or a file as the messages of other chat clients have it."""
    match part.get("type"):
        case "image_url" | "input_image":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else image
            return {"type": "image", "source": {"type": "url", "value": url}}
        case "file" | "input_file":
            inner = part.get("file")
            file = inner if isinstance(inner, dict) else part
            named = {"filename": file["filename"]} if isinstance(file.get("filename"), str) else {}
            return {"type": "document", "source": {"type": "data", "value": file.get("file_data")}} | named
        case "input_audio":
            audio = part.get("input_audio")
            audio = audio if isinstance(audio, dict) else {}
            value = f"data:audio/{_as_text(audio.get('format'))[:20]};base64,{_as_text(audio.get('data'))}"
            return {"type": "audio", "source": {"type": "data", "value": value}}
    raise InvalidRequest(f"Parts of the type {str(part.get('type'))[:_MAX_NAMED_CHARS]!r} are not supported.")


def read_client_tools(tools: Sequence[OpenAIItem] | None, choice: Any) -> tuple[ClientToolBody, ...]:
    """Return the functions that a client carries out; none if the model may not call them.

    Raises:
        InvalidRequest: A tool is no function, or has no usable name.
    """
    if choice == "none":
        return ()
    read = [_read_client_tool(tool) for tool in tools or ()]
    return tuple(tool for tool in read if tool.name != DECISION_TOOL)


def has_decision_tool(tools: Sequence[OpenAIItem] | None, choice: Any) -> bool:
    """Return whether a client has declared the function that decides about approvals. It is no tool of the model."""
    functions = (tool.get("function") for tool in tools or ())
    return choice != "none" and any(isinstance(one, dict) and one.get("name") == DECISION_TOOL for one in functions)


def _read_client_tool(tool: OpenAIItem) -> ClientToolBody:
    inner = tool.get("function")
    function = inner if isinstance(inner, dict) else tool
    if tool.get("type", "function") != "function":
        raise InvalidRequest(f"Tools of the type {str(tool.get('type'))[:_MAX_NAMED_CHARS]!r} are not supported.")
    parameters = function.get("parameters")
    try:
        return ClientToolBody.model_validate(
            {
                "name": function.get("name"),
                "description": function.get("description") or "",
                "parameters": parameters if isinstance(parameters, dict) else None,
            }
        )
    except ValueError:
        raise InvalidRequest(
            f"The tool {str(function.get('name'))[:_MAX_NAMED_CHARS]!r} has no usable name: at most 64 letters, "
            "digits, _ and -; or its description is too long."
        ) from None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
