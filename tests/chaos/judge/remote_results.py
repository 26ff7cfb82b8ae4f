"""Judge results of remote tools: one that was accepted is in the conversation, once; one that was refused is not."""

import json
from collections.abc import Iterator, Sequence

from tests.chaos.evidence import Evidence, Row
from tests.chaos.remote_tool_server import TOOL_ALIAS, TOOL_NAME, PostedResult


def judge_remote_results(evidence: Evidence, posted: Sequence[PostedResult]) -> Iterator[str]:
    rows = [row for row in evidence.conversations if row["sk"].startswith("m#") and row["role"] == "tool"]
    tools = [row for row in rows if row.get("toolName") in (TOOL_ALIAS, TOOL_NAME)]
    stored = {(row["turn"], row["toolCallId"]): _read_token(row) for row in tools}
    deleted = {turn.bridge for turn in evidence.turns if turn.conversation in evidence.deleted_conversations}
    for bridge in sorted({result.bridge for result in posted} - deleted):
        tokens = [token for (turn, _), token in stored.items() if turn == bridge and token]
        own = [result for result in posted if result.bridge == bridge]
        accepted = {result.token for result in own if result.status == 200}
        refused = {result.token for result in own if result.status == 409}
        missing = accepted - {*tokens}
        if missing:
            yield f"turn {bridge}: {missing} were accepted, and are in no message"
        yield from (f"turn {bridge}: {token} was accepted, and then refused" for token in find_refused_later(own))
        yield from (f"turn {bridge}: {token} was refused, and is in a message" for token in refused & {*tokens})
        yield from (f"turn {bridge}: {token} is stored twice" for token in {*tokens} if tokens.count(token) > 1)
    unexpected = {result.status for result in posted} - {200, 404, 409, 429, 500, 502, 503}
    yield from (f"a result was answered {status}" for status in unexpected)


def find_refused_later(posted: Sequence[PostedResult]) -> Iterator[str]:
    """Yield the results that were accepted, and refused when the same was sent again."""
    accepted = set[str]()
    for result in posted:
        if result.status == 200:
            accepted.add(result.token)
        elif result.status in (404, 409) and result.token in accepted:
            yield result.token


def _read_token(row: Row) -> str:
    content = row["content"]
    (block,) = json.loads(content) if isinstance(content, str) else content
    data = block.get("data")
    return str(data["token"]) if isinstance(data, dict) and "token" in data else ""
