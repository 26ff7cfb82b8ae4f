"""Profile of the model that reads a history: what it accepts, and what the tools of its turn keep."""

from collections.abc import Callable, Sequence

from fermata.domain.messages import Message
from fermata.domain.value_dataclass import value_dataclass


def _never(_tool_name: str) -> bool:
    return False


def _keep_all(messages: Sequence[Message]) -> Sequence[Message]:
    return messages


@value_dataclass(frozen=True)
class ModelProfile:
    """Limits and abilities that decide what a history contains.

    Attributes:
        max_history_tokens: Part of the context window that the history may fill.
        max_sent_tokens: Not more is sent, because the server would cut it in silence. None where it refuses.
        reads_images: Whether the model accepts images at all.
        reads_result_images: Whether images of tool results reach the model, not only those of prompts.
        images_after: Images of messages up to this position are not sent, because the provider has refused them.
        max_images: Limit for all images of one request.
        max_image_bytes: Limit for the sum of all images of one request.
        display_name: Maps any name of a tool to the one that the model knows.
        is_heavy_tool: Whether only the newest result of a tool is worth sending.
        is_forgotten_tool: Whether later turns see that a tool succeeded, but not its data.
        prune: Leaves out what the agent's rules do not send again.
    """

    provider: str
    model: str
    max_history_tokens: int
    max_sent_tokens: int | None = None
    reads_images: bool = True
    reads_result_images: bool = True
    images_after: int = -1
    max_images: int = 20
    max_image_bytes: int = 15_000_000
    display_name: Callable[[str], str] = str
    is_heavy_tool: Callable[[str], bool] = _never
    is_forgotten_tool: Callable[[str], bool] = _never
    prune: Callable[[Sequence[Message]], Sequence[Message]] = _keep_all
