"""Half a character (a surrogate without its other half) can be stored as JSON and sent by nobody: it becomes U+FFFD."""

from typing import Any

from fermata.domain.blocks import Block
from fermata.domain.weak_cache import WeakCache


def replace_surrogates_in_block(block: Block) -> Block | None:
    """The block itself when nothing is wrong with it. Thinking that is not as it came is worth nothing: None."""
    if _is_encodable_block(block):
        return block
    match block.kind:
        case "text":
            return block.model_copy(update={"text": replace_surrogates(block.text)})
        case "toolCall":
            return block.model_copy(update={"input": replace_surrogates(block.input)})
        case "toolResult":
            return block.model_copy(
                update={"data": replace_surrogates(block.data), "error": replace_surrogates(block.error)}
            )
    return None


@WeakCache
def _is_encodable_block(block: Block) -> bool:
    match block.kind:
        case "text":
            return is_encodable(block.text)
        case "toolCall":
            return is_encodable(block.input)
        case "toolResult":
            return is_encodable(block.data) and is_encodable(block.error)
        case "reasoning":
            return is_encodable(block.payload)
    return True


def is_encodable(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or _is_encodable_text(value)
    if isinstance(value, dict):
        return all(is_encodable(name) and is_encodable(member) for name, member in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_encodable, value))
    return True


def replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_encodable(value) else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [replace_surrogates(member) for member in value]
    if isinstance(value, dict):
        return {replace_surrogates(name): replace_surrogates(member) for name, member in value.items()}
    return value


def _is_encodable_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
