"""Replace lone surrogates with U+FFFD. JSON can store them, but UTF-8 cannot encode them, so no request can."""

from typing import Any

from fermata.domain.blocks import Block
from fermata.domain.weak_cache import WeakCache


def replace_surrogates_in_block(block: Block) -> Block | None:
    """Return the same object when the block has no lone surrogate, otherwise a copy without them.

    Returns:
        None for reasoning with a lone surrogate, because a provider accepts reasoning only unchanged.
    """
    if _is_encodable_block(block):
        return block
    match block.kind:
        case "text":
            return block.model_copy(update={"text": replace_surrogates(block.text)})
        case "toolCall":
            return block.model_copy(update={"input": replace_surrogates(block.input)})
        case "toolResult":
            update = {"data": replace_surrogates(block.data), "error": replace_surrogates(block.error)}
            return block.model_copy(update=update)
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
    """Return whether UTF-8 can encode every text in a JSON value."""
    if isinstance(value, str):
        return value.isascii() or _is_encodable_text(value)
    if isinstance(value, dict):
        return all(is_encodable(name) and is_encodable(member) for name, member in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_encodable, value))
    return True


def replace_surrogates(value: Any) -> Any:
    """Return a JSON value with U+FFFD in place of each lone surrogate."""
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
