"""Judge tools of MCP servers, and agents that are defined in YAML: what a result says is what the server has done."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.chaos.evidence import Evidence, Row
from tests.chaos.judge.find_rows import turn_of
from tests.chaos.mcp_server import LOST_SESSION_TEXT, READING_TOOL, WRITING_TOOL, CarriedOut
from tests.chaos.tool_source_users import CHILD_SCOPE, SCOPE, ToolSourceUsers

UNKNOWN_WORDS = "unknown"
"""A result that says this leaves open whether the call took effect."""
STOPPED_WORDS = ("The call was stopped.", "The turn ended before this call was answered.")
"""What nobody reads any more, as the turn has ended."""


def judge_tool_sources(evidence: Evidence, users: ToolSourceUsers) -> Iterator[str]:
    done = {one.token: one for one in users.server.carried_out}
    times = Counter(one.effect_key for one in users.server.carried_out if one.tool == WRITING_TOOL)
    yield from (f"{key} was carried out {count} times" for key, count in times.items() if count > 1)
    tokens = Counter[str]()
    for row in _iter_results(evidence):
        block = _read_block(evidence, row)
        tokens.update([_read_token(block)])
        yield from (f"turn {row['turn']}: {problem}" for problem in judge_result(evidence, row, block, done))
    yield from (f"{token} is the result of {count} calls" for token, count in tokens.items() if token and count > 1)
    yield from judge_agents(evidence, users.releases)
    if evidence.is_undisturbed and users.server.sessions:
        yield f"the sessions {sorted(users.server.sessions)} were never ended"


def _iter_results(evidence: Evidence) -> Iterator[Row]:
    for row in evidence.conversations:
        is_result = row["sk"][:2] in ("m#", "s#") and row.get("role") == "tool"
        if is_result and row.get("toolName") in (READING_TOOL, WRITING_TOOL):
            yield row


def _read_block(evidence: Evidence, row: Row) -> Mapping[str, Any]:
    content = row["content"]
    (block,) = json.loads(content) if isinstance(content, str) else content
    return dict(block)


def _read_token(block: Mapping[str, Any]) -> str:
    data = block.get("data")
    structured = data.get("structuredContent", data) if isinstance(data, dict) else None
    return str(structured["token"]) if isinstance(structured, dict) and "token" in structured else ""


def judge_result(
    evidence: Evidence, row: Row, block: Mapping[str, Any], done: Mapping[str, CarriedOut]
) -> Iterator[str]:
    """A success is what the server has answered to this call; a failure does not deny what was done."""
    key, token, text = _build_effect_key(row), _read_token(block), json.dumps(block)
    if block["ok"]:
        if token not in done or done[token].effect_key != key:
            yield f"{row['toolCallId']} has the result {token}, which the server has not answered to it"
        return
    if LOST_SESSION_TEXT in text:
        yield f"{row['toolCallId']} has failed because a session was lost"
    if f"{WRITING_TOOL}:{key}" in done and not any(words in text for words in (UNKNOWN_WORDS, *STOPPED_WORDS)):
        yield f"{row['toolCallId']} says that it failed, and the server has done it: {text}"
    if evidence.is_undisturbed and not any(words in text for words in STOPPED_WORDS):
        yield f"{row['toolCallId']} has failed, and nothing was disturbed: {text}"


def _build_effect_key(row: Row) -> str:
    """Return the key of a call: its turn, and what the model has named it after: its round and its place there."""
    number, place = row["toolCallId"].split("_")[-2:]
    return f"{row['turn']}/{number}/{place}"


def judge_agents(evidence: Evidence, releases: Mapping[str, str]) -> Iterator[str]:
    """A turn asks the agent in the version with which its own one was compiled, whatever was pushed meanwhile."""
    turns = {turn_of(row): json.loads(row["data"]) for row in evidence.bridges if row["sk"] == "turn"}
    for name, turn in turns.items():
        parent = turns.get((turn.get("parent") or {}).get("turn", ""))
        if turn["scope"] == SCOPE and turn["agent"] not in releases:
            yield f"turn {name} has the agent {turn['agent']}, which nobody has pushed"
        if parent and (turn["scope"], turn["agent"]) != (CHILD_SCOPE, releases.get(parent["agent"])):
            yield f"sub-agent {name} is {turn['agent']}, asked by {parent['agent']}"
