"""Look at a turn that a panel has run, and hold one in its middle."""

import threading

from fermata.turns.turn import find_turn
from tests.unit.instatic.browser import PanelRun
from tests.unit.turns.invariants import check_invariants
from tests.unit.turns.stage import (
    ADA,
    MAX_THREAD_WAIT_SECONDS,
    Stage,
)
from tests.waiting import wait_until


def check_ended_turn(stage: Stage, run: PanelRun) -> None:
    """Wait until the turn has ended, and check the invariants of ended turns."""
    stage._turn = find_turn(stage.resources, ADA.tenant, run.bridge)
    wait_until(lambda: stage.event_types()[-1] in ("done", "error", "cancelled"), "the turn ends")
    check_invariants(stage, next_prompt=False)


class Gate:
    """A step of a provider's script that waits until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(MAX_THREAD_WAIT_SECONDS), "the gate was not opened"
