"""How long the minute of a schedule lasts. `SCHEDULE_MINUTE_SECONDS` shortens it, so that tests see one go by."""

import os

from ministack.services import eventbridge, scheduler

from local.emulator.upstream import Function, corrects, edits

STOCK_TICK = 10.0


def minute() -> float:
    return float(os.environ.get("SCHEDULE_MINUTE_SECONDS", "60"))


def tick() -> float:
    return min(STOCK_TICK, minute() / 4)


@corrects(eventbridge, "_parse_rate_seconds", "0184f31e965e")
def rate_seconds(stock: Function, expression: str) -> float | None:
    seconds = stock(expression)
    return None if seconds is None else seconds * minute() / 60


edits(eventbridge, "_scheduler_loop", "7795e8e084ff", "_SCHEDULER_TICK_INTERVAL", "_tick()", _tick=tick)
edits(scheduler, "_ticker_loop", "51e1b1334023", "_SCHEDULE_TICK_INTERVAL", "_tick()", _tick=tick)
