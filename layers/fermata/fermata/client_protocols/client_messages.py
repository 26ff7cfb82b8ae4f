"""Read the messages of chat clients: prompts as blocks, and what was answered about calls."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fermata.client_protocols.message_files import (
    DownloadFile,
    MessageContent,
    MessageFileReader,
    open_message_file,
)
from fermata.domain.blocks import AudioBlock, Block, ImageBlock, TextBlock
from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.domain.lenient_json import UnreadableJson
from fermata.domain.run_settings import FileDownloadLimits
from fermata.domain.tools import ClientTool
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.protocols.tool_arguments import parse_strict_json
from fermata.drivers.transport.file_download import DownloadedFile, download_file
from fermata.wire.bodies.chat_clients import ClientToolBody
from fermata.wire.bodies.prompt_parts import MAX_PROMPT_CHARACTERS, MAX_PROMPT_IMAGES, FilePart
from fermata.wire.bodies.turn_requests import ChatBody

MAX_CLIENT_TOOLS_CHARS = 100_000
"""Of the JSON of all tools that a client declares, which are part of the turn's row."""


@value_dataclass(frozen=True)
class ClientPrompt:
    """A prompt: its blocks, and for each image where it is in the message.

    Attributes:
        download: Returns the prompt with its files, which may have these limits, where `content` has their addresses;
            None if it has none.
    """

    content: tuple[Block, ...]
    image_paths: tuple[str, ...] = ()
    download: "Callable[[FileDownloadLimits], ClientPrompt] | None" = None


@value_dataclass(frozen=True)
class ClientAnswer:
    """What a client has sent about a call: a result, or a decision about it.

    Attributes:
        call_id: As the client knows it; empty for a decision that names its approval only.
        approval_id: Set for a decision.
        input: The input that the client believes the call to have; None if it does not say.
        changed_input: The input that the person has put in its place.
    """

    call_id: str = ""
    output: Any = None
    error: str | None = None
    approval_id: str = ""
    is_approved: bool = False
    reason: str = ""
    input: Any = None
    changed_input: dict[str, Any] | None = None


def find_last_message(messages: Sequence[Mapping[str, Any]], role: str) -> int:
    """Return the index of the last message of a role; -1 if there is none."""
    return max((index for index, message in enumerate(messages) if message.get("role") == role), default=-1)


def defer_downloads(
    read_prompt: Callable[[Mapping[str, Any], DownloadFile], ClientPrompt], message: Mapping[str, Any]
) -> ClientPrompt:
    """Return the prompt in a message with the addresses of its files in place of the files.

    So a message that is sent again is the same one, though what it names is gone or has changed (decision 0411).

    Args:
        read_prompt: `read_ui_prompt` or `read_agui_prompt`.
        message: The message.

    Raises:
        InvalidRequest, PayloadTooLarge: As `read_prompt`.
    """
    addresses: list[str] = []

    def note_address(url: str, _limits: FileDownloadLimits) -> DownloadedFile:
        addresses.append(url)
        return DownloadedFile(url.encode(errors="replace"), "text/plain")

    prompt = read_prompt(message, note_address)

    def download_all(limits: FileDownloadLimits) -> ClientPrompt:
        return read_prompt(message, lambda url, left: download_file(url, _join_limits(limits, left)))

    return replace(prompt, download=download_all) if addresses else prompt


def _join_limits(limits: FileDownloadLimits, left: FileDownloadLimits) -> FileDownloadLimits:
    """Return the limits of an agent, as far as what is left of a message allows."""
    return FileDownloadLimits(max_bytes=min(limits.max_bytes, left.max_bytes), timeout=limits.timeout)


def read_ui_prompt(message: Mapping[str, Any], download: DownloadFile) -> ClientPrompt:
    """Return the prompt in a user's message of the AI SDK.

    Args:
        message: The message.
        download: Downloads a file that the message names by its address.

    Raises:
        InvalidRequest: It is empty, or has a file that cannot be read.
        PayloadTooLarge: It is too long.
    """
    parts = message.get("parts")
    if not isinstance(parts, list):
        parts = [{"type": "text", "text": message.get("content")}]
    files = MessageFileReader(download)
    contents: list[MessageContent] = []
    for part in parts:
        if not isinstance(part, dict):
            raise InvalidRequest("A part of the message is no object.")
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            contents.append(part["text"])
        elif part.get("type") == "file":
            contents.append(open_message_file(files.read_ui_part(part)))
    return _build_prompt(contents)


def read_native_prompt(body: ChatBody) -> ClientPrompt:
    """Return the prompt of a body of our own protocol, whose files are not downloaded yet.

    Args:
        body: The body.

    Raises:
        InvalidRequest, PayloadTooLarge: As `read_ui_prompt`, for a message of its files.
    """
    own = ClientPrompt(body.to_blocks(), body.image_places())
    named = [part for part in body.content or () if isinstance(part, FilePart)]
    if not named:
        return own
    parts = [{"type": "file", "url": part.url, "filename": part.name, "mediaType": part.mime_type} for part in named]
    files = defer_downloads(read_ui_prompt, {"parts": parts})
    assert files.download is not None
    download = files.download
    return replace(_join_prompts(own, files), download=lambda limits: _join_prompts(own, download(limits)))


def _join_prompts(own: ClientPrompt, files: ClientPrompt) -> ClientPrompt:
    blocks = (*own.content, *files.content)
    contents: list[MessageContent] = [block.text for block in blocks if isinstance(block, TextBlock)]
    contents += [block for block in blocks if isinstance(block, ImageBlock | AudioBlock)]
    return replace(_build_prompt(contents), image_paths=(*own.image_paths, *files.image_paths))


def read_agui_prompt(message: Mapping[str, Any], download: DownloadFile) -> ClientPrompt:
    """Return the prompt in a user's message of AG-UI.

    Args:
        message: The message.
        download: Downloads a file that the message names by its address.

    Raises:
        InvalidRequest: It is empty, or has a part that cannot be read.
        PayloadTooLarge: It is too long.
    """
    content = message.get("content")
    files = MessageFileReader(download)
    contents: list[MessageContent] = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if not isinstance(part, dict):
            raise InvalidRequest("A part of the message is no object.")
        if part.get("type") == "text":
            contents.append(str(part.get("text", "")))
        else:
            contents.append(open_message_file(files.read_agui_part(part)))
    return _build_prompt(contents)


def _build_prompt(contents: Sequence[MessageContent]) -> ClientPrompt:
    texts = [part for part in contents if isinstance(part, str)]
    images = [part for part in contents if isinstance(part, ImageBlock)]
    audio = [part for part in contents if isinstance(part, AudioBlock)]
    text = "\n\n".join(part.strip() for part in texts if part.strip())
    if not text and not images and not audio:
        raise InvalidRequest("message must contain text or an image")
    if len(images) > MAX_PROMPT_IMAGES:
        raise InvalidRequest(f"A message may have {MAX_PROMPT_IMAGES} images at most.")
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise PayloadTooLarge(f"A message may have {MAX_PROMPT_CHARACTERS:,} characters, with its text files.")
    blocks = (TextBlock(text=text),) if text else ()
    return ClientPrompt((*blocks, *images, *audio), tuple(f"image {number + 1}" for number in range(len(images))))


def read_ui_answers(message: Mapping[str, Any]) -> list[ClientAnswer]:
    """Return what an assistant's message says about its calls: results of the client, and decisions.

    Args:
        message: As the client has it, which may say anything.
    """
    parts = message.get("parts")
    return [answer for part in (parts if isinstance(parts, list) else ()) for answer in _read_ui_part(part)]


def _read_ui_part(part: Any) -> Iterator[ClientAnswer]:
    if not isinstance(part, dict) or not isinstance(part.get("toolCallId"), str):
        return
    call_id, sent_input = part["toolCallId"], part.get("input")
    match part.get("state"):
        case "output-available" if part.get("preliminary") is not True:
            yield ClientAnswer(call_id, output=part.get("output"), input=sent_input)
        case "output-error":
            error = part.get("errorText")
            yield ClientAnswer(call_id, error=error if isinstance(error, str) else "The call failed.", input=sent_input)
        case "approval-responded":
            approval = part.get("approval")
            approval = approval if isinstance(approval, dict) else {}
            reason = approval.get("reason")
            yield ClientAnswer(
                call_id,
                approval_id=str(approval.get("id", "")) or "none",
                is_approved=approval.get("approved") is True,
                reason=reason if isinstance(reason, str) else "",
                input=sent_input,
            )


def build_client_tools(bodies: Sequence[ClientToolBody]) -> tuple[ClientTool, ...]:
    """Return the tools that a client declares.

    Raises:
        PayloadTooLarge: They have too much text.
    """
    tools = tuple(
        ClientTool(name=body.name, description=body.description, input_schema=body.parameters or {}) for body in bodies
    )
    if sum(len(tool.model_dump_json()) for tool in tools) > MAX_CLIENT_TOOLS_CHARS:
        raise PayloadTooLarge(f"The tools of a request may have {MAX_CLIENT_TOOLS_CHARS:,} characters together.")
    return tools


def parse_tool_content(content: Any) -> Any:
    """Return the value of a tool message's content: JSON, or else its text."""
    if not isinstance(content, str):
        return content
    try:
        return parse_strict_json(content)
    except UnreadableJson:
        return content
