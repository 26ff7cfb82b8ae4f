"""Maps an `Ask` to the body of Ollama's /api/chat.

Ollama loads a model with the window a request asks for, and loads it anew for another one; so all requests ask for
the same. What does not fit is refused (`truncate`, `shift`), because otherwise it is cut from the front in silence,
tools and all. Older servers know neither member; the fold then looks at what was counted.
"""

from typing import Any

from fermata.drivers.chat.request import prompt_text, tool
from fermata.drivers.mapping import Turn, arguments_of, base64_of, plain, result_text, turns_of
from fermata.drivers.thinking import room
from fermata.words.model import Ask

LONGEST_CALL_ID = 64

Item = dict[str, Any]


def body_of(ask: Ask, provider: str) -> Item:
    messages: list[Item] = [{"role": "system", "content": ask.system}] if ask.system.strip() else []
    for turn in turns_of(ask, provider, plain(LONGEST_CALL_ID)):
        messages += [_user(turn)] if turn.role == "user" else _assistant(turn)
    body: Item = {"model": ask.model, "messages": messages, "stream": True, "truncate": False, "shift": False}
    limit = ask.max_tokens + room(provider, ask.model, ask.thinking_tokens)
    body["options"] = {"num_ctx": ask.window_tokens, "num_predict": limit}
    if ask.tools and ask.call_tools:  # there is no way to offer tools that may not be called
        body["tools"] = [tool(spec) for spec in ask.tools]
    if ask.thinking_tokens > 0:
        body["think"] = True
    return body


def _user(turn: Turn) -> Item:
    message: Item = {"role": "user", "content": prompt_text(turn)}
    return message | {"images": [base64_of(image) for image in turn.images]} if turn.images else message


def _assistant(turn: Turn) -> list[Item]:
    message: Item = {"role": "assistant", "content": "\n\n".join(turn.texts)}
    if turn.calls:
        message["thinking"] = "".join(str(block.payload.get("thinking") or "") for block in turn.reasoning)
        message["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "function": {"index": at, "name": call.tool_name, "arguments": arguments_of(call)},
            }
            for at, call in enumerate(turn.calls)
        ]
    names = {call.tool_call_id: call.tool_name for call in turn.calls}
    results = [
        {
            "role": "tool",
            "tool_name": names.get(one.call_id, one.tool_name),
            "tool_call_id": one.call_id,
            "content": result_text(one.block),
        }
        for one in turn.results
    ]
    return [message, *results]
