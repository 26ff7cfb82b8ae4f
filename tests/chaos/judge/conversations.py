"""Judge conversations: each prompt, answer and result is stored once, and the totals are those of the ledger."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

from tests.chaos.evidence import ClientTurn, Evidence, Row
from tests.chaos.judge.find_rows import read_log
from tests.chaos.judge.turns import fold_text


def judge_conversations(evidence: Evidence) -> Iterator[str]:
    messages = [row for row in evidence.conversations if row["sk"].startswith("m#")]
    for turn in evidence.turns:
        if turn.bridge and turn.conversation not in evidence.deleted_conversations:
            yield from (f"turn {turn.name}: {problem}" for problem in judge_messages(evidence, turn, messages))
    results = Counter((row["turn"], row["toolCallId"]) for row in messages if row["role"] == "tool")
    yield from (f"the result of {key} is stored {count} times" for key, count in results.items() if count > 1)
    for row in evidence.conversations:
        if row["sk"] == "meta" and row["id"] not in evidence.deleted_conversations:
            yield from judge_totals(evidence, row)


def judge_messages(evidence: Evidence, turn: ClientTurn, messages: list[Row]) -> Iterator[str]:
    own = [row for row in messages if row["turn"] == turn.bridge]
    prompts = [row for row in own if row["role"] == "user"]
    if turn.kind == "prompt" and len(prompts) != 1:
        yield f"its prompt is stored {len(prompts)} times"
    if turn.kind == "undo":
        return
    stored = Counter[int]()
    texts: dict[int, str] = {}
    for row in own:
        if row["role"] == "assistant":
            stored[int(row["round"])] += 1
            texts[int(row["round"])] = texts.get(int(row["round"]), "") + read_text(evidence, row)
    most = 2 if evidence.scopes.get(turn.conversation) == "planner" else 1  # what the model says, and its plan
    yield from (f"round {number} has {count} stored answers" for number, count in stored.items() if count > most)
    shown = fold_text([logged.event for logged in read_log(evidence, turn.bridge)])
    for number, text in shown.items():
        if text.split() != texts.get(number, "").split():
            yield f"round {number} shows {text!r}, and {texts.get(number)!r} is stored"


def read_text(evidence: Evidence, row: Row) -> str:
    """Return the text of a message, whose blocks may be in the bucket."""
    import json

    content = row["content"]
    blocks = json.loads(content) if isinstance(content, str) else content
    return "".join(block.get("text", "") for block in blocks if block.get("kind") == "text")


def judge_totals(evidence: Evidence, meta: Row) -> Iterator[str]:
    """A conversation's totals are the sums of its ledger rows."""
    rows = [row for row in evidence.usage if row.get("conversation") == meta["id"] and row["sk"].startswith("r0")]
    for total, name in (("prompt_tokens_total", "prompt"), ("completion_tokens_total", "completion")):
        counted = sum((row[name] for row in rows), Decimal(0))
        if meta.get(total, Decimal(0)) != counted:
            yield f"conversation {meta['id']} counts {meta.get(total)} {name} tokens, its ledger {counted}"
    cost = sum((row["cost"] for row in rows), Decimal(0))
    if meta.get("cost_usd_total", Decimal(0)) != cost:
        yield f"conversation {meta['id']} counts {meta.get('cost_usd_total')} USD, its ledger {cost}"
