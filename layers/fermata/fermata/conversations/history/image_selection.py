"""Which of a history's pictures are sent: those the model can see, and no more than a request may carry.

The oldest go first. They go in steps, so that the beginning of a request stays the same for a while (prompt caching).
Where results are read as text, their pictures stay in the bucket, and the driver tells how many there were.
"""

from collections.abc import Callable, Sequence

from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.stale_results import make_elided_result
from fermata.conversations.image_store import measure_image_block
from fermata.conversations.message_store import block_images, has_images
from fermata.domain.blocks import Block, ImageBlock, TextBlock
from fermata.domain.messages import Message

_IMAGE_CUT_STEPS = 2
"""So many at once that half of them stay."""
_MAX_SENT_EDGE_PIXELS = 8000
_MAX_SENT_IMAGE_BYTES = 3_750_000
"""Of one picture: 5 MB as base64."""

IMAGES_UNSUPPORTED_NOTE = "[Attached image omitted because the selected model does not support image input.]"
EARLIER_IMAGE_NOTE = (
    "[Attached image of an earlier message omitted to make room. Ask for it again if you need to see it.]"
)
OMITTED_IMAGE_NOTE = "[Attached image omitted because it was too large, or too many images followed it.]"
RESULT_IMAGES_UNSUPPORTED_NOTE = (
    "Images of this result were omitted because the selected model does not support image input."
)


def select_images(messages: Sequence[Message], profile: ModelProfile) -> list[Message]:
    """The messages with the pictures that may be sent, and a note where others were."""
    if not any(map(has_images, messages)):
        return list(messages)
    if not profile.reads_images:
        return [_without_images(message) for message in messages]
    if not profile.reads_earlier_images:
        messages = [_without_earlier_images(message, messages[-1].turn) for message in messages]
    known = [
        _with_measured_images(message) if _is_shown(message, profile) else _without_image_sources(message)
        for message in messages
    ]
    shown = [message for message in known if _is_shown(message, profile)]
    pictures = [image for message in shown for block in message.content for image in block_images(block)]
    chosen = {
        id(image) for image in _newest_within_limits([image for image in pictures if _is_sendable(image)], profile)
    }
    return [_with_chosen_images(message, chosen) if _is_shown(message, profile) else message for message in known]


def count_images(message: Message) -> int:
    return sum(len(block_images(block)) for block in message.content)


def filter_earlier_turns(messages: Sequence[Message]) -> list[Message]:
    """Those of other turns than the newest."""
    return [message for message in messages if message.turn != messages[-1].turn]


def _is_shown(message: Message, profile: ModelProfile) -> bool:
    return message.role != "tool" or profile.reads_result_images


def _without_image_sources(message: Message) -> Message:
    """Its pictures are only counted, so nobody fetches them."""
    return _map_images(message, lambda image: image.model_copy(update={"blob": None, "data": None}))


def _without_earlier_images(message: Message, turn: str) -> Message:
    """The provider refused so many: what earlier prompts showed is only told of, results of theirs are stubs anyway."""
    return (
        message
        if message.turn == turn or message.role == "tool"
        else _replace_images_by_note(message, lambda _: False, EARLIER_IMAGE_NOTE)
    )


def _newest_within_limits(images: list[ImageBlock], profile: ModelProfile) -> list[ImageBlock]:
    step = max(1, profile.max_images // _IMAGE_CUT_STEPS)
    while len(images) > profile.max_images or sum(image.size or 0 for image in images) > profile.max_image_bytes:
        images = images[step:]
    return images


def _is_sendable(image: ImageBlock) -> bool:
    if image.width is None or image.height is None:  # nothing we know how to read
        return False
    return max(image.width, image.height) <= _MAX_SENT_EDGE_PIXELS and (image.size or 0) <= _MAX_SENT_IMAGE_BYTES


def _with_measured_images(message: Message) -> Message:
    if all(image.width is not None for block in message.content for image in block_images(block)):
        return message
    return _map_images(message, lambda image: measure_image_block(image) or image)


def _with_chosen_images(message: Message, chosen: set[int]) -> Message:
    if all(id(image) in chosen for block in message.content for image in block_images(block)):
        return message
    if message.role == "tool":
        return message.model_copy(update={"content": (make_elided_result(message.tool_name or ""),)})
    return _replace_images_by_note(message, lambda image: id(image) in chosen, OMITTED_IMAGE_NOTE)


def _without_images(message: Message) -> Message:
    """For a model without eyes: a prompt says what is missing, a result keeps its data."""
    if not any(map(block_images, message.content)):
        return message
    if message.role != "tool":
        return _replace_images_by_note(message, lambda _: False, IMAGES_UNSUPPORTED_NOTE)
    return message.model_copy(update={"content": tuple(_without_result_images(block) for block in message.content)})


def _without_result_images(block: Block) -> Block:
    if block.kind == "toolResult" and block.images:
        data = block.data if isinstance(block.data, dict) else {"data": block.data}
        return block.model_copy(update={"images": None, "data": data | {"note": RESULT_IMAGES_UNSUPPORTED_NOTE}})
    return block.model_copy(update={"images": None}) if block.kind == "blob" else block


def _replace_images_by_note(message: Message, is_sent: Callable[[ImageBlock], bool], note: str) -> Message:
    """One note for all that a prompt loses, where the first of them was."""
    content: list[Block] = []
    is_noted = False
    for block in message.content:
        if block.kind != "image" or is_sent(block):
            content.append(block)
        elif not is_noted:
            content.append(TextBlock(text=note))
            is_noted = True
    return message.model_copy(update={"content": tuple(content)})


def _map_images(message: Message, change: Callable[[ImageBlock], ImageBlock]) -> Message:
    content: list[Block] = []
    for block in message.content:
        if block.kind == "image":
            content.append(change(block))
        elif block_images(block):
            content.append(block.model_copy(update={"images": tuple(map(change, block_images(block)))}))
        else:
            content.append(block)
    return message.model_copy(update={"content": tuple(content)})
