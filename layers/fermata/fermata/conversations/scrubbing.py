"""Half a character (a surrogate without its other half) can be stored as JSON and sent by nobody: it becomes U+FFFD."""

from typing import Any

from fermata.words.blocks import Block
from fermata.words.once import Once


def scrubbed(block: Block) -> Block | None:
    """The block itself when nothing is wrong with it. Thinking that is not as it came is worth nothing: None."""
    if _is_sound_block(block):
        return block
    match block.kind:
        case "text":
            return block.model_copy(update={"text": mended(block.text)})
        case "toolCall":
            return block.model_copy(update={"input": mended(block.input)})
        case "toolResult":
            return block.model_copy(update={"data": mended(block.data), "error": mended(block.error)})
    return None


@Once
def _is_sound_block(block: Block) -> bool:
    match block.kind:
        case "text":
            return is_sound(block.text)
        case "toolCall":
            return is_sound(block.input)
        case "toolResult":
            return is_sound(block.data) and is_sound(block.error)
        case "reasoning":
            return is_sound(block.payload)
    return True


def is_sound(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or _can_be_sent(value)
    if isinstance(value, dict):
        return all(is_sound(name) and is_sound(member) for name, member in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_sound, value))
    return True


def mended(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_sound(value) else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [mended(member) for member in value]
    if isinstance(value, dict):
        return {mended(name): mended(member) for name, member in value.items()}
    return value


def _can_be_sent(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
