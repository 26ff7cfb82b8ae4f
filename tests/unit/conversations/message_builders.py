"""Messages of a conversation, written short.

thread = Thread()
thread.user("Add a footer"); thread.model(call("a", "insertHtml")); thread.result("a", data=1)
"""

from collections.abc import Sequence
from typing import Any

from fermata.aws.dynamodb import serialize_item
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.conversations.history.model_profile import ModelProfile
from fermata.domain.blocks import Block, ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from tests.images import make_jpeg_header, to_base64

MODEL = "claude-sonnet-4-5"
ANTHROPIC_PROFILE = ModelProfile(provider="anthropic", model=MODEL, max_history_tokens=100_000)


def make_call(call_id: str, name: str = "insertHtml", **given: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=call_id, tool_name=name, input=given)


def make_image(width: int = 40, height: int = 30) -> ImageBlock:
    return ImageBlock(mime_type="image/jpeg", data=to_base64(make_jpeg_header(width, height)))


def make_reasoning(text: str = "hm", provider: str = "anthropic", model: str = MODEL) -> ReasoningBlock:
    return ReasoningBlock(
        provider=provider, model=model, payload={"type": "thinking", "thinking": text, "signature": "s"}
    )


class ThreadBuilder:
    """Each prompt begins a turn, each reply a round; results belong to the newest round."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.turn, self.round, self.position = 0, 0, 0

    def add_prompt(self, *content: str | Block) -> Message:
        self.turn, self.round = self.turn + 1, 0
        return self.add_message("user", *content)

    def add_reply(self, *content: str | Block) -> Message:
        self.round += 1
        return self.add_message("assistant", *content)

    def add_result(self, call_id: str, name: str = "insertHtml", *, ok: bool = True, **parts: Any) -> Message:
        block = ToolResultBlock(ok=ok, **parts)
        return self.add_message("tool", block, tool_call_id=call_id, tool_name=name)

    def add_message(self, role: Any, *content: str | Block, **parts: Any) -> Message:
        blocks = tuple(TextBlock(text=block) if isinstance(block, str) else block for block in content)
        made = Message(
            position=self.position, role=role, content=blocks, turn=f"turn-{self.turn}", round=self.round, **parts
        )
        self.position += 1
        self.messages.append(made)
        return made


def summarize_messages(messages: Any) -> list[str]:
    """`user: Hello`, `assistant: call a`, `tool a: ok`: what a history comes to, a line each."""
    return [_summarize_message(message) for message in messages]


def _summarize_message(message: Message) -> str:
    said = ", ".join(_summarize_block(block) for block in message.content)
    return f"{message.role} {message.tool_call_id}: {said}" if message.role == "tool" else f"{message.role}: {said}"


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
    """As a turn would, only many at once."""
    puts = [message_store.build_message_put(resources, tenant, conversation, message) for message in messages]
    for start in range(0, len(puts), 25):
        requests: Any = [{"PutRequest": {"Item": serialize_item(put.item)}} for put in puts[start : start + 25]]
        resources.tables._client.batch_write_item(RequestItems={resources.settings.conversations_table: requests})
