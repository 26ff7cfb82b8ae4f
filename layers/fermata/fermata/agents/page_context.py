"""Describe to a model the page and the user of a turn, as the client has sent them (decision 0364)."""

import json
from typing import Any

from fermata.domain.page_context import AgentContext
from fermata.domain.untrusted_text import escape_frames_in_text


def build_page_context(context: AgentContext) -> str:
    """Return a line for each member that is not empty. Its text cannot close the frame in which it is sent."""
    members: dict[str, Any] = {
        "pageId": context.page_id,
        "userId": context.user_id,
        "conversationId": context.conversation_id,
        "urlQuery": context.url_query,
        "sharedState": context.shared_state,
    }
    lines = [f"{name}: {_format_value(value)}" for name, value in members.items() if value]
    return escape_frames_in_text("\n".join(lines))


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
