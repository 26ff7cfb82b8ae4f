"""Whole turns on simulated AWS: every promise is kept, and a seed repeats a simulation exactly."""

import pytest

from tests.chaos.campaign import make_world
from tests.chaos.judge import judge
from tests.chaos.world import World


@pytest.mark.parametrize("seed", range(8))
def test_on_a_good_day_every_promise_is_kept(seed: int) -> None:
    world = World(seed)
    world.run()
    assert judge(world) == []
    assert all(turn.received[-1][1]["type"] in ("done", "cancelled") for turn in world.turns)


def test_the_same_seed_repeats_switches_faults_and_events() -> None:
    first, second = make_world(7), make_world(7)
    first.run()
    second.run()
    assert first.scheduler.switches == second.scheduler.switches
    assert first.faults.counts == second.faults.counts
    assert [turn.received for turn in first.turns] == [turn.received for turn in second.turns]


def test_faults_are_injected_and_stop_before_the_end() -> None:
    worlds = [make_world(seed) for seed in range(6)]
    for world in worlds:
        world.run()
    assert sum(world.faults.injected for world in worlds) > 10
    assert all(world.quiet_after >= 0 for world in worlds)
