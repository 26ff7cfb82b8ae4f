"""A reader that leaves and returns at once has not departed, whichever of the two is written first."""

from collections.abc import Callable
from typing import Any

import pytest

from fermata.turns.read.abandonment import AbandonmentWatcher
from fermata.turns.read.departed_reader import has_reader_departed
from tests.unit.turns.stage import Stage


def test_a_departure_that_is_written_after_the_return_is_not_the_last_word(
    staged: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = staged(fermata_stage="local", abandoned_seconds=3600)
    late_threads: list[Callable[[], Any]] = []
    monkeypatch.setattr(stage.resources.clock, "start_thread", lambda target, name: late_threads.append(target))
    turn = stage.start_turn(dialect="instatic")
    watcher = AbandonmentWatcher(stage.resources)
    watcher.add_reader(turn)
    watcher.remove_reader(turn, is_broken_off=True)
    stage.pass_time(0.1)
    watcher.add_reader(turn, is_returning=True)
    stage.pass_time(0.1)
    for write_departure in late_threads:
        write_departure()
    assert not has_reader_departed(stage.resources, turn)
    watcher.remove_reader(turn, is_broken_off=True)
    late_threads[-1]()
    assert has_reader_departed(stage.resources, turn)
    watcher.add_reader(turn)
