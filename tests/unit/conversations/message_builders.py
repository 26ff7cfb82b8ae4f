"""Build messages of a conversation, store them, and summarize them.

thread = ThreadBuilder()
thread.add_prompt("Add a footer")
thread.add_reply(make_call("a", "insertHtml"))
thread.add_result("a", data=1)
"""

from collections.abc import Iterable, Sequence
from typing import Any

from fermata.aws.dynamodb_items_and_writes import serialize_item
from fermata.aws.resources import Resources
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.message_store import build_message_put
from fermata.domain.blocks import Block, ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from tests.images import make_jpeg_header, to_base64

MODEL = "claude-sonnet-4-5"
ANTHROPIC_PROFILE = ModelProfile(provider="anthropic", model=MODEL, max_history_tokens=100_000)


def make_call(call_id: str, name: str = "insertHtml", **arguments: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=call_id, tool_name=name, input=arguments)


def make_image(width: int = 40, height: int = 30) -> ImageBlock:
    return ImageBlock(mime_type="image/jpeg", data=to_base64(make_jpeg_header(width, height)))


def make_reasoning(text: str = "hm", provider: str = "anthropic", model: str = MODEL) -> ReasoningBlock:
    return ReasoningBlock(
        provider=provider, model=model, payload={"type": "thinking", "thinking": text, "signature": "s"}
    )


class ThreadBuilder:
    """Build messages in order. Each prompt begins a turn, each reply begins a round, and results belong to the last."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.turn = 0
        self.round = 0
        self.position = 0

    def add_prompt(self, *content: str | Block) -> Message:
        self.turn += 1
        self.round = 0
        return self.add_message("user", *content)

    def add_reply(self, *content: str | Block) -> Message:
        self.round += 1
        return self.add_message("assistant", *content)

    def add_result(self, call_id: str, name: str = "insertHtml", *, ok: bool = True, **fields: Any) -> Message:
        block = ToolResultBlock(ok=ok, **fields)
        return self.add_message("tool", block, tool_call_id=call_id, tool_name=name)

    def add_message(self, role: Any, *content: str | Block, **fields: Any) -> Message:
        blocks = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in content)
        message = Message(
            position=self.position, role=role, content=blocks, turn=f"turn-{self.turn}", round=self.round, **fields
        )
        self.position += 1
        self.messages.append(message)
        return message


def summarize_messages(messages: Iterable[Message]) -> list[str]:
    """Return a line for each message, such as `user: Hello`, `assistant: call a`, `tool a: ok`."""
    return [_summarize_message(message) for message in messages]


def _summarize_message(message: Message) -> str:
    content = ", ".join(_summarize_block(block) for block in message.content)
    author = f"tool {message.tool_call_id}" if message.role == "tool" else message.role
    return f"{author}: {content}"


def _summarize_block(block: Block) -> str:
    match block.kind:
        case "text":
            return block.text
        case "toolCall":
            return f"call {block.tool_call_id}"
        case "toolResult":
            return "ok" if block.ok else f"failed {block.error}"
        case _:
            return block.kind


def store_messages(resources: Resources, tenant: str, conversation: str, messages: Sequence[Message]) -> None:
    """Store messages as turns do, but in batches."""
    puts = [build_message_put(resources, tenant, conversation, message) for message in messages]
    for start in range(0, len(puts), 25):
        requests: Any = [{"PutRequest": {"Item": serialize_item(put.item)}} for put in puts[start : start + 25]]
        resources.tables._client.batch_write_item(RequestItems={resources.settings.conversations_table: requests})
