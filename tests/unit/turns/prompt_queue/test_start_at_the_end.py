"""Whoever streams the end of a turn starts the prompt that waits for it, before the response is over."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fermata.client_protocols.log_response import _start_next_at_end
from fermata.turns.read.follow_log import LogPoller, read_entries_after
from fermata.turns.read.log_stream import LogStream
from tests.unit.turns.prompt_queue.test_double_prompts import busy, end_turn, enqueue, list_queue
from tests.unit.turns.stage import Stage

__all__ = ["busy"]


def stream_turn(stage: Stage) -> list[str]:
    """Read the turn's log as a reader does, and return the types of its events."""
    entries = read_entries_after(stage.resources, stage.turn, 0)

    def render(_number: int, event: Any) -> bytes:
        return json.dumps({"type": event.type}).encode() + b"\n"

    log_stream = LogStream(stage.resources, stage.turn, LogPoller(stage.resources), render, b"\n", after=0)

    async def read() -> list[str]:
        lines: AsyncIterator[bytes] = log_stream.send(entries)
        stream = _start_next_at_end(stage.resources, stage.turn, log_stream, lines)
        chunks = [chunk async for chunk in stream]
        return [json.loads(line)["type"] for line in b"".join(chunks).splitlines() if line.strip()]

    return asyncio.run(read())


def test_the_next_prompt_starts_after_the_reader_has_the_end(busy: Stage) -> None:
    enqueue(busy, "Second")
    end_turn(busy)
    assert stream_turn(busy)[-1] == "done"
    assert list_queue(busy) == [("Second", "started")]
    assert len(busy.workflow.started) == 2


def test_a_turn_without_a_queue_starts_nothing(busy: Stage) -> None:
    end_turn(busy)
    assert stream_turn(busy)[-1] == "done"
    assert len(busy.workflow.started) == 1
