"""Test how streamed text is batched into the log: at once, then evenly, and a long text in larger batches."""

from itertools import pairwise

from fermata.domain.events import RoundStartedEvent, TextEvent
from fermata.turns.round.heartbeat import Heartbeat
from fermata.turns.round.stream_writer import StreamWriter
from fermata.turns.turn_log import TurnLog, fixed_events
from tests.unit.turns.stage import Stage

CHUNK_SECONDS = 1 / 16


def stream_for(stage: Stage, seconds: float) -> list[float]:
    """Stream a chunk sixteen times a second; return the seconds between the entries that they are written in."""
    stage.clock.runs_threads = False
    stage.start_turn()
    log = TurnLog.from_last_entry(stage.resources, stage.turn.partition, stage.entries()[-1])
    log.append(fixed_events(RoundStartedEvent(round=1, epoch="e", owner="o")))
    with StreamWriter(stage.resources, log, Heartbeat(stage.resources, "token"), lambda: None) as writer:
        for _ in range(round(seconds / CHUNK_SECONDS)):
            writer.write(TextEvent(text="word "))
            stage.pass_time(CHUNK_SECONDS)
    times = [entry.at_ms / 1000 for entry in stage.entries()[2:]]
    return [round(after - before, 2) for before, after in pairwise(times)]


def test_a_short_text_is_written_every_quarter_of_a_second(stage: Stage) -> None:
    assert set(stream_for(stage, 2)) == {0.25}


def test_a_long_text_is_written_in_larger_batches(stage: Stage) -> None:
    gaps = stream_for(stage, 10)
    assert set(gaps[:8]) == {0.25}
    assert set(gaps[8:]) == {0.44}  # the first chunk after 400 ms
    assert len(gaps) < 30
