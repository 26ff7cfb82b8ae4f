"""Judge contents: what the model is told of results and undos, which snapshots are kept, and titles."""

import gzip
from collections.abc import Iterator

from tests.chaos.evidence import ClientTurn, Evidence
from tests.chaos.judge.find_rows import read_log

READING_TOOLS = ("getNodeHtml",)
NOTE_STARTS = ("[The user took edits of yours back.", "[The user redid edits of yours that had been taken back.")


def judge_results_snapshots_titles(evidence: Evidence) -> Iterator[str]:
    for turn in evidence.turns:
        if turn.bridge and turn.kind == "prompt":
            yield from (f"turn {turn.name}: {problem}" for problem in judge_results(evidence, turn))
        if turn.bridge:
            yield from (f"turn {turn.name}: {problem}" for problem in judge_snapshots(evidence, turn))
    yield from judge_notes(evidence)
    for row in evidence.conversations:
        title = evidence.titles.get(row.get("id", ""))
        is_left = row["sk"] == "meta" and row["id"] not in evidence.deleted_conversations
        if is_left and title and row.get("title") != title:
            yield f"conversation {row['id']} was renamed to {title!r}, and is named {row.get('title')!r}"


def judge_results(evidence: Evidence, turn: ClientTurn) -> Iterator[str]:
    """Every request tells the model the data of its turn's earlier results, except of what it has read again since."""
    asked = [event for _, event in turn.received if event["type"] == "toolRequest"]
    asked = [event for event in asked if turn.acknowledged.get(event["requestId"], {}).get("ok")]
    for request in evidence.served:
        bridge, number, _ = request.name.split(".")
        if bridge == turn.bridge and request.body:
            earlier = [event for event in asked if int(event["effectKey"].split("/")[1]) < int(number)]
            newest = {(event["toolName"], str(event["input"])): event for event in earlier}
            for event in earlier:
                is_read_again = event["toolName"] in READING_TOOLS and event not in newest.values()
                if event["effectKey"] not in request.body and not is_read_again:
                    yield f"request {request.name} does not tell the model the data of {event['effectKey']}"


def judge_snapshots(evidence: Evidence, turn: ClientTurn) -> Iterator[str]:
    """A snapshot that came with the prompt or an acknowledged answer is in the bucket."""
    if turn.snapshots:
        stored = b"".join(_read(evidence.blobs[key]) for key in evidence.blobs if f"/{turn.bridge}/" in key)
        missing = [note for note in turn.snapshots if f'"note":"{note}"'.encode() not in stored.replace(b": ", b":")]
        if missing:
            yield f"its snapshots {missing} are not stored"


def _read(blob: bytes) -> bytes:
    return gzip.decompress(blob) if blob.startswith(b"\x1f\x8b") else blob


def judge_notes(evidence: Evidence) -> Iterator[str]:
    """The last prompt of a conversation tells the model of every undo that has taken edits back or redone them."""
    for last in [turn for turn in evidence.turns if turn.must_succeed]:
        bodies = [request.body for request in evidence.served if request.name.startswith(f"{last.bridge}.")]
        undos = [turn for turn in evidence.turns if turn.conversation == last.conversation and turn.kind == "undo"]
        effective = [turn.name for turn in undos if turn.bridge and _has_undone(evidence, turn.bridge)]
        for body in bodies[-1:]:
            count = sum(body.count(start) for start in NOTE_STARTS)
            if body and count < len(effective):
                yield f"the model was told of {count} undos, {effective} have undone edits"


def _has_undone(evidence: Evidence, bridge: str) -> bool:
    return any((logged.event.get("report") or {}).get("undone") for logged in read_log(evidence, bridge))
