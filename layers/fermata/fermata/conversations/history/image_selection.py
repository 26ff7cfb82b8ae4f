"""Select the images of a history that are sent: those that the model reads, within the limits of a request.

The oldest are omitted first, several at once, so that the beginning of a request stays the same for a while: providers
cache a prefix that does not change. Images of results that a model reads as text are only counted, so they are not
fetched from S3; the driver reports to the model how many there were (decision 0112).
"""

from collections.abc import Callable, Iterable, Sequence

from fermata.conversations.block_predicates import block_images, has_images
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.result_cutting import add_result_note
from fermata.conversations.history.stale_results import make_elided_result
from fermata.conversations.image_store import measure_image_block
from fermata.domain.blocks import Block, ImageBlock, TextBlock
from fermata.domain.messages import Message

_OMITTED_AT_ONCE_DIVISOR = 2
"""Half of the limit is omitted at once."""
_MAX_SENT_EDGE_PIXELS = 8000
_MAX_SENT_IMAGE_BYTES = 3_750_000
"""One image; it has 5 MB as base64."""

IMAGES_UNSUPPORTED_NOTE = "[Attached image omitted because the selected model does not support image input.]"
REFUSED_IMAGE_NOTE = (
    "[Attached image omitted, because the provider refused a request with the images up to here. If you need to see "
    "it, ask for a smaller one, or one in another format.]"
)
OMITTED_IMAGE_NOTE = "[Attached image omitted because it was too large, or too many images followed it.]"
OMITTED_RESULT_IMAGES_NOTE = (
    "Images of this result were omitted because they are too large or too many. Asking again brings the same images."
)
REFUSED_RESULT_IMAGES_NOTE = (
    "Images of this result were omitted, because the provider refused a request with the images up to here."
)
RESULT_IMAGES_UNSUPPORTED_NOTE = (
    "Images of this result were omitted because the selected model does not support image input."
)


def select_images(
    messages: Sequence[Message], profile: ModelProfile, fetch: Callable[[Sequence[Message]], Sequence[Message]] = list
) -> list[Message]:
    """Return the messages with the images that are sent. A note says which ones a prompt or a result has lost.

    Args:
        fetch: Fetches results from S3 that get a note.
    """
    if not any(map(has_images, messages)):
        return list(messages)
    if not profile.reads_images:
        remaining = [_without_images(message) for message in messages]
        return _add_notes_to_results(messages, remaining, RESULT_IMAGES_UNSUPPORTED_NOTE, fetch)
    accepted = [_without_refused_images(message, profile) for message in messages]
    messages = _add_notes_to_results(messages, accepted, REFUSED_RESULT_IMAGES_NOTE, fetch)
    measured = [
        _with_measured_images(message) if _shows_images(message, profile) else _without_image_sources(message)
        for message in messages
    ]
    sendable = [
        image
        for message in measured
        if _shows_images(message, profile)
        for image in _message_images(message)
        if _is_sendable(image)
    ]
    selected_ids = {id(image) for image in _newest_within_limits(sendable, profile)}
    last_reply = max((index for index, message in enumerate(measured) if message.role == "assistant"), default=-1)
    selected = [
        _with_selected_images(message, selected_ids, is_unread=index > last_reply)
        if _shows_images(message, profile)
        else message
        for index, message in enumerate(measured)
    ]
    return _add_notes_to_results(measured, selected, OMITTED_RESULT_IMAGES_NOTE, fetch)


def _add_notes_to_results(
    before: Sequence[Message],
    after: list[Message],
    note: str,
    fetch: Callable[[Sequence[Message]], Sequence[Message]],
) -> list[Message]:
    """Add a note to the results that have lost an image, and are not elided."""
    noted = list(after)
    losers = [
        index
        for index, message in enumerate(after)
        if message.role == "tool" and message is not before[index] and not _is_elided(message)
    ]
    for index, message in zip(losers, fetch([after[index] for index in losers]), strict=True):
        content = tuple(
            add_result_note(block, note) if block.kind == "toolResult" else block for block in message.content
        )
        noted[index] = message.model_copy(update={"content": content})
    return noted


def _is_elided(message: Message) -> bool:
    return message.content == (make_elided_result(message.tool_name or ""),)


def count_images(message: Message) -> int:
    """Count the images of a message, those of its tool results included."""
    return sum(len(block_images(block)) for block in message.content)


def filter_earlier_turns(messages: Sequence[Message]) -> list[Message]:
    """Return the messages of all turns but the newest."""
    return [message for message in messages if message.turn != messages[-1].turn]


def _message_images(message: Message) -> Iterable[ImageBlock]:
    return (image for block in message.content for image in block_images(block))


def _shows_images(message: Message, profile: ModelProfile) -> bool:
    return message.role != "tool" or profile.reads_result_images


def _without_image_sources(message: Message) -> Message:
    """Remove the references to S3, so that images that are only counted are not fetched."""
    return _map_images(message, lambda image: image.model_copy(update={"blob": None, "data": None}))


def _without_refused_images(message: Message, profile: ModelProfile) -> Message:
    """Remove the images that the provider has refused: a prompt gets a note, and a result keeps its data."""
    if message.position > profile.images_after or not _shows_images(message, profile):
        return message
    return _without_images(message, REFUSED_IMAGE_NOTE)


def _newest_within_limits(images: list[ImageBlock], profile: ModelProfile) -> list[ImageBlock]:
    omitted_at_once = max(1, profile.max_images // _OMITTED_AT_ONCE_DIVISOR)
    total_bytes = sum(image.size or 0 for image in images)
    start = 0
    while len(images) - start > profile.max_images or total_bytes > profile.max_image_bytes:
        total_bytes -= sum(image.size or 0 for image in images[start : start + omitted_at_once])
        start += omitted_at_once
    return images[start:]


def _is_sendable(image: ImageBlock) -> bool:
    if image.width is None or image.height is None:  # of an unknown kind
        return False
    return max(image.width, image.height) <= _MAX_SENT_EDGE_PIXELS and (image.size or 0) <= _MAX_SENT_IMAGE_BYTES


def _with_measured_images(message: Message) -> Message:
    if all(image.width is not None for image in _message_images(message)):
        return message
    return _map_images(message, lambda image: measure_image_block(image) or image)


def _with_selected_images(message: Message, selected_ids: set[int], *, is_unread: bool) -> Message:
    """Omit the other images.

    An older result that loses one is elided as a whole, so that the model can ask for it again. One that the model has
    just asked for keeps the rest, because asking again would lose the same image (decision 0200).
    """
    if all(id(image) in selected_ids for image in _message_images(message)):
        return message
    if message.role != "tool":
        return _replace_images_by_note(message, lambda image: id(image) in selected_ids, OMITTED_IMAGE_NOTE)
    if not is_unread:
        return message.model_copy(update={"content": (make_elided_result(message.tool_name or ""),)})
    content = tuple(_with_selected_result_images(block, selected_ids) for block in message.content)
    return message.model_copy(update={"content": content})


def _with_selected_result_images(block: Block, selected_ids: set[int]) -> Block:
    if block.kind != "toolResult" and block.kind != "blob":
        return block
    images = tuple(image for image in block_images(block) if id(image) in selected_ids)
    return block.model_copy(update={"images": images or None})


def _without_images(message: Message, note: str = IMAGES_UNSUPPORTED_NOTE) -> Message:
    """Remove images: a prompt gets a note, and a result keeps its data."""
    if not any(map(block_images, message.content)):
        return message
    if message.role != "tool":
        return _replace_images_by_note(message, lambda _: False, note)
    return message.model_copy(update={"content": tuple(_without_result_images(block) for block in message.content)})


def _without_result_images(block: Block) -> Block:
    return block.model_copy(update={"images": None}) if block.kind == "toolResult" or block.kind == "blob" else block


def _replace_images_by_note(message: Message, is_sent: Callable[[ImageBlock], bool], note: str) -> Message:
    """Replace the images that are not sent by one note, in the place of the first of them."""
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
        elif images := block_images(block):
            content.append(block.model_copy(update={"images": tuple(map(change, images))}))
        else:
            content.append(block)
    return message.model_copy(update={"content": tuple(content)})
