"""Turn calls, results and reasoning of a history into plain text, which every provider accepts (decision 0198).

Images of results become images of the user, so that the model still sees what it has asked for.
"""

from collections.abc import Iterator, Sequence

from fermata.domain.blocks import Block, TextBlock
from fermata.domain.messages import Message
from fermata.domain.untrusted_text import escape_frames_in_json, escape_frames_in_text, frame_text
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.adjustments import FLATTEN_EARLIER_TURNS, FLATTEN_HISTORY, AppliedAdjustments
from fermata.drivers.protocols.shared_encoding import encode_call_arguments, format_result_text

FLATTENED_NOTE = "[Calls and results above this line are a record of what was done. Go on calling tools as usual.]"


def flatten_messages(messages: Sequence[Message], applied: AppliedAdjustments) -> Sequence[Message]:
    """Return the messages with as many of them as plain text as the adjustments ask for.

    The same object is returned if nothing of that part is a call, a result or reasoning. A message becomes the same
    object each time (decision 0204).
    """
    if FLATTEN_HISTORY.name in applied:
        end = len(messages)
    elif FLATTEN_EARLIER_TURNS.name in applied:
        prompts = [index for index, message in enumerate(messages) if message.role == "user"]
        end = prompts[-1] if prompts else 0
    else:
        return messages
    earlier, current = messages[:end], messages[end:]
    if not any(_needs_flattening(message) for message in earlier):
        return messages
    return (*_iter_flattened(earlier), *current)


def _needs_flattening(message: Message) -> bool:
    return message.role == "tool" or any(block.kind in ("toolCall", "reasoning") for block in message.content)


def _iter_flattened(messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        flat = _flatten_message(message) if _needs_flattening(message) else message
        if flat.content:
            yield flat
    if messages and messages[-1].role == "tool":
        yield _make_note(messages[-1])


@WeakCache
def _flatten_message(message: Message) -> Message:
    content = tuple(flat for block in message.content for flat in _flatten_block(block, message))
    return _to_plain_message(message, content)


@WeakCache
def _make_note(last_message: Message) -> Message:
    return _to_plain_message(last_message, (TextBlock(text=FLATTENED_NOTE),))


def _to_plain_message(message: Message, content: tuple[Block, ...]) -> Message:
    role = "user" if message.role == "tool" else message.role
    return message.model_copy(
        update={"role": role, "content": content, "tool_call_id": None, "tool_name": None},
    )


def _flatten_block(block: Block, message: Message) -> Iterator[Block]:
    match block.kind:
        case "toolCall":
            yield TextBlock(text=f"[Called {block.tool_name} with {encode_call_arguments(block)}]")
        case "toolResult":
            outcome = "Result" if block.ok else "Failure"
            shown = [image for image in block.images or () if image.data is not None]
            unshown = [image for image in block.images or () if image.data is None]
            text = format_result_text(block.model_copy(update={"images": unshown or None}))
            escape = escape_frames_in_json if block.ok else escape_frames_in_text
            framed = frame_text("result", escape(text))
            yield TextBlock(text=f"[{outcome} of {message.tool_name or 'the call'}: {framed}]")
            yield from shown
        case "reasoning":
            pass
        case _:
            yield block
