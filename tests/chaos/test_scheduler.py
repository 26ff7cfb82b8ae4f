"""The scheduler and its primitives: one at a time, the same for the same seed, dead when killed."""

import pytest

from tests.chaos.primitives import SimulatedClock, SimulatedCondition, SimulatedEvent, SimulatedLock
from tests.chaos.scheduler import Process, Scheduler, Stuck


def record_order(seed: int) -> list[str]:
    scheduler, order = Scheduler(seed), list[str]()

    def work(name: str) -> None:
        for step in range(5):
            order.append(f"{name}{step}")
            scheduler.switch("step")

    tasks = [scheduler.start(scheduler.new_process(name), lambda name=name: work(name), name=name) for name in "abc"]
    scheduler.run(lambda: all(task.is_over for task in tasks), 10)
    scheduler.close()
    return order


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    assert record_order(1) == record_order(1)
    assert len({tuple(record_order(seed)) for seed in range(10)}) > 5


def test_time_passes_only_when_everybody_waits() -> None:
    scheduler, moments = Scheduler(1), list[float]()
    start = scheduler.now

    def sleep(seconds: float) -> None:
        scheduler.switch("sleep", seconds)
        moments.append(scheduler.now - start)

    tasks = [scheduler.start(Process("p"), lambda s=s: sleep(s), name=str(s)) for s in (30.0, 10.0, 20.0)]
    scheduler.run(lambda: all(task.is_over for task in tasks), 100)
    assert moments == [10.0, 20.0, 30.0]
    scheduler.close()


def test_a_killed_process_does_nothing_after_its_switch_point() -> None:
    scheduler, done, process = Scheduler(1), list[str](), Process("p")

    def work() -> None:
        done.append("before")
        scheduler.switch("call", 5)
        done.append("after")

    victim = scheduler.start(process, work, name="victim")
    killer = scheduler.start(
        Process("k"), lambda: (scheduler.switch("wait", 1), scheduler.kill(process)), name="killer"
    )
    scheduler.run(lambda: victim.is_over and killer.is_over, 100)
    assert done == ["before"]
    scheduler.close()


def test_a_frozen_process_goes_on_when_it_thaws() -> None:
    scheduler, process, moments = Scheduler(1), Process("p"), list[float]()
    start = scheduler.now
    task = scheduler.start(process, lambda: (scheduler.switch("s", 1), moments.append(scheduler.now - start)), name="t")
    scheduler.freeze(process, 60)
    scheduler.run(lambda: task.is_over, 100)
    assert moments[0] >= 60
    scheduler.close()


def test_a_lock_is_held_by_one_and_freed_by_death() -> None:
    scheduler, held, most = Scheduler(3), list[int](), list[int]()
    lock = SimulatedLock(scheduler)

    def work() -> None:
        with lock:
            held.append(1)
            most.append(len(held))
            scheduler.switch("inside", 1)
            held.pop()

    process = Process("dies")
    victim = scheduler.start(process, work, name="victim")
    scheduler.run(lambda: bool(held), 10)
    scheduler.kill(process)
    scheduler.run(lambda: victim.is_over, 10)
    held.clear()
    others = [scheduler.start(Process("p"), work, name=f"o{n}") for n in range(4)]
    scheduler.run(lambda: all(task.is_over for task in others), 100)
    assert set(most) == {1}
    scheduler.close()


def test_events_and_conditions_wake_those_who_wait_and_time_out_for_the_others() -> None:
    scheduler = Scheduler(5)
    clock = SimulatedClock(scheduler, Process("p"))
    event, condition, seen = SimulatedEvent(scheduler), SimulatedCondition(scheduler), dict[str, bool]()

    def wait() -> None:
        seen["early"] = event.wait(1)
        seen["event"] = event.wait(60)
        with condition:
            seen["condition"] = condition.wait(60)

    def act() -> None:
        clock.sleep(10)
        event.set()
        clock.sleep(10)
        with condition:
            condition.notify_all()

    tasks = [scheduler.start(Process("w"), wait, name="w"), scheduler.start(Process("a"), act, name="a")]
    scheduler.run(lambda: all(task.is_over for task in tasks), 200)
    assert seen == {"early": False, "event": True, "condition": True}
    scheduler.close()


def test_a_deadlock_is_reported_and_not_waited_for() -> None:
    scheduler = Scheduler(1)
    scheduler.start(Process("p"), lambda: SimulatedEvent(scheduler).wait(), name="for ever")
    with pytest.raises(Stuck, match="for ever"):
        scheduler.run(lambda: False, 10)
    scheduler.close()


def test_an_error_in_a_task_is_raised_where_the_simulation_runs() -> None:
    scheduler = Scheduler(1)
    scheduler.start(Process("p"), lambda: 1 / 0, name="broken")
    with pytest.raises(ZeroDivisionError):
        scheduler.run(lambda: False, 10)
    scheduler.close()
