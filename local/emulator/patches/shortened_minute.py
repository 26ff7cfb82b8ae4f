"""Patch EventBridge schedules: `SCHEDULE_MINUTE_SECONDS` shortens a minute, so that tests can wait for one."""

import os

from ministack.services import eventbridge, scheduler

from local.emulator.patches.registry import Function, patch_function, patch_line

DEFAULT_TICK_SECONDS = 10.0


def minute_seconds() -> float:
    return float(os.environ.get("SCHEDULE_MINUTE_SECONDS", "60"))


def tick_seconds() -> float:
    return min(DEFAULT_TICK_SECONDS, minute_seconds() / 4)


@patch_function(eventbridge, "_parse_rate_seconds", "0184f31e965e")
def parse_rate_seconds(original: Function, expression: str) -> float | None:
    seconds = original(expression)
    return None if seconds is None else seconds * minute_seconds() / 60


patch_line(eventbridge, "_scheduler_loop", "7795e8e084ff", "_SCHEDULER_TICK_INTERVAL", "_tick()", _tick=tick_seconds)
patch_line(scheduler, "_ticker_loop", "51e1b1334023", "_SCHEDULE_TICK_INTERVAL", "_tick()", _tick=tick_seconds)
