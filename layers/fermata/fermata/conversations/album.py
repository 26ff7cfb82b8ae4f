"""Which of a history's pictures are sent: those the model can see, and no more than a request may carry.

The oldest go first. They go in steps, so that the beginning of a request stays the same for a while (prompt caching).
Where results are read as text, their pictures stay in the bucket, and the driver tells how many there were.
"""

from collections.abc import Callable, Sequence

from fermata.conversations.pictures import measured_image
from fermata.conversations.recipient import Recipient
from fermata.conversations.rows import has_pictures, pictures_of
from fermata.conversations.stale import stub
from fermata.words.blocks import Block, ImageBlock, TextBlock
from fermata.words.messages import Message

STEPS = 2
"""So many at once that half of them stay."""
MOST_EDGE = 8000
MOST_BYTES = 3_750_000
"""Of one picture: 5 MB as base64."""

NOT_SEEN = "[Attached image omitted because the selected model does not support image input.]"
EARLIER = "[Attached image of an earlier message omitted to make room. Ask for it again if you need to see it.]"
LEFT_OUT = "[Attached image omitted because it was too large, or too many images followed it.]"
NOT_SEEN_RESULT = "Images of this result were omitted because the selected model does not support image input."


def pick(messages: Sequence[Message], recipient: Recipient) -> list[Message]:
    """The messages with the pictures that may be sent, and a note where others were."""
    if not any(map(has_pictures, messages)):
        return list(messages)
    if not recipient.sees:
        return [_unseen(message) for message in messages]
    if not recipient.sees_earlier:
        messages = [_of_now(message, messages[-1].turn) for message in messages]
    known = [_measured(message) if _is_shown(message, recipient) else _untouched(message) for message in messages]
    shown = [message for message in known if _is_shown(message, recipient)]
    pictures = [image for message in shown for block in message.content for image in pictures_of(block)]
    chosen = {id(image) for image in _newest([image for image in pictures if _can_be_sent(image)], recipient)}
    return [_with_only(message, chosen) if _is_shown(message, recipient) else message for message in known]


def count_pictures(message: Message) -> int:
    return sum(len(pictures_of(block)) for block in message.content)


def earlier(messages: Sequence[Message]) -> list[Message]:
    """Those of other turns than the newest."""
    return [message for message in messages if message.turn != messages[-1].turn]


def _is_shown(message: Message, recipient: Recipient) -> bool:
    return message.role != "tool" or recipient.sees_results


def _untouched(message: Message) -> Message:
    """Its pictures are only counted, so nobody fetches them."""
    return _changed(message, lambda image: image.model_copy(update={"blob": None, "data": None}))


def _of_now(message: Message, turn: str) -> Message:
    """The provider refused so many: what earlier prompts showed is only told of, results of theirs are stubs anyway."""
    return message if message.turn == turn or message.role == "tool" else _noted(message, lambda _: False, EARLIER)


def _newest(pictures: list[ImageBlock], recipient: Recipient) -> list[ImageBlock]:
    step = max(1, recipient.most_pictures // STEPS)
    while (
        len(pictures) > recipient.most_pictures or sum(image.size or 0 for image in pictures) > recipient.picture_bytes
    ):
        pictures = pictures[step:]
    return pictures


def _can_be_sent(image: ImageBlock) -> bool:
    if image.width is None or image.height is None:  # nothing we know how to read
        return False
    return max(image.width, image.height) <= MOST_EDGE and (image.size or 0) <= MOST_BYTES


def _measured(message: Message) -> Message:
    if all(image.width is not None for block in message.content for image in pictures_of(block)):
        return message
    return _changed(message, lambda image: measured_image(image) or image)


def _with_only(message: Message, chosen: set[int]) -> Message:
    if all(id(image) in chosen for block in message.content for image in pictures_of(block)):
        return message
    if message.role == "tool":
        return message.model_copy(update={"content": (stub(message.tool_name or ""),)})
    return _noted(message, lambda image: id(image) in chosen, LEFT_OUT)


def _unseen(message: Message) -> Message:
    """For a model without eyes: a prompt says what is missing, a result keeps its data."""
    if not any(map(pictures_of, message.content)):
        return message
    if message.role != "tool":
        return _noted(message, lambda _: False, NOT_SEEN)
    return message.model_copy(update={"content": tuple(_blind(block) for block in message.content)})


def _blind(block: Block) -> Block:
    if block.kind == "toolResult" and block.images:
        data = block.data if isinstance(block.data, dict) else {"data": block.data}
        return block.model_copy(update={"images": None, "data": data | {"note": NOT_SEEN_RESULT}})
    return block.model_copy(update={"images": None}) if block.kind == "blob" else block


def _noted(message: Message, is_sent: Callable[[ImageBlock], bool], note: str) -> Message:
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


def _changed(message: Message, change: Callable[[ImageBlock], ImageBlock]) -> Message:
    content: list[Block] = []
    for block in message.content:
        if block.kind == "image":
            content.append(change(block))
        elif pictures_of(block):
            content.append(block.model_copy(update={"images": tuple(map(change, pictures_of(block)))}))
        else:
            content.append(block)
    return message.model_copy(update={"content": tuple(content)})
