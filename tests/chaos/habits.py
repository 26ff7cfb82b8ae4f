"""Say how users, browsers and providers of a simulation behave, as rates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.dialect import Dialect
from tests.chaos.fault_rules import FaultRule


@dataclass(frozen=True)
class Habits:
    """Each is how often something happens, where it can.

    Attributes:
        slow_browser: A browser needs long to carry out a call.
        slow_seconds: How long then, at least and at most.
        lost_answer: A browser whose answer met an error gives it up.
        leaving_reader: A tab is closed, and opened again later.
        slow_provider: A provider needs minutes for a response. Only on days without faults.
        cancel: A user cancels a turn.
        rival: Another prompt comes in the same conversation meanwhile.
        rebuild: An operator rebuilds the rollups, while another one does.
        rebuilds: How often the operator does that.
        rush: Several prompts begin at once; None for what the limits and the budget of the workspace suggest.
    """

    slow_browser: float = 0.03
    slow_seconds: tuple[float, float] = (30.0, 130.0)
    lost_answer: float = 0.2
    leaving_reader: float = 0.4
    slow_provider: float = 0.06
    cancel: float = 0.3
    rival: float = 0.25
    rebuild: float = 0.35
    rush: float | None = None
    rebuilds: int = 1


USUAL_HABITS = Habits()
GOOD_DAY_HABITS = Habits(slow_browser=0.3, slow_provider=0.4, cancel=0.5)
"""On a day without faults everything is late only because somebody is slow."""


@dataclass(frozen=True)
class DayKind:
    """What kind of day a simulation has: how the service is set, which editors are used, and how.

    With `rules`, `focus`, `rate` and `budget`, which faults strike the function of that name alone, how often, and how
    many at most. `has_small_budget` says whether the workspace may spend little.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    dialect: Dialect = "fermata"
    habits: Habits = USUAL_HABITS
    rules: tuple[FaultRule, ...] = ()
    focus: str = ""
    rate: float = 0.0
    budget: int = 25
    has_small_budget: bool = False


HELD_SETTINGS = {"browser_wait_seconds": 600}
RARE_DAYS = (
    # An answer to a held turn is stored by a function that dies, and its browser gives up.
    DayKind(
        HELD_SETTINGS,
        habits=Habits(slow_browser=1.0, slow_seconds=(95.0, 130.0), lost_answer=1.0, cancel=0.0),
        rules=(FaultRule("kill after", ("dynamodb.TransactWriteItems",)),),
        focus="tool_result",
        rate=1.0,
    ),
    # Many rows are counted at the same time, by functions that stand still between their reads and their writes.
    DayKind(
        habits=Habits(rush=1.0, rebuild=0.0),
        rules=tuple(FaultRule(kind, ("aws",)) for kind in ("response late", "freeze after")),
        focus="rollup",
        rate=0.2,
    ),
    # Rollups are rebuilt from an index that lags behind, while rows are added.
    DayKind(
        habits=Habits(rush=1.0, rival=1.0, rebuild=1.0, rebuilds=8),
        rules=(FaultRule("stale index", ("index",)),),
        focus="rebuild",
        budget=1000,
        rate=0.5,
    ),
    # Users cancel while a function waits for the answer to what it has announced.
    DayKind(
        habits=Habits(cancel=1.0),
        rules=tuple(FaultRule("response late", (f"dynamodb.{call}",)) for call in ("TransactWriteItems", "PutItem")),
        focus="round",
        rate=1.0,
    ),
    # Tabs are closed and opened again, while others prompt in the same conversation.
    DayKind(
        {"fermata_stage": "local"},
        "instatic",
        Habits(leaving_reader=0.2, rival=1.0, cancel=0.0, slow_browser=1.0),
    ),
    # Several prompts reach a small budget at once, and each learns late what the others have taken.
    DayKind(
        habits=Habits(rush=1.0, rebuild=0.0, cancel=0.0),
        rules=(FaultRule("response late", ("dynamodb.BatchGetItem",)),),
        rate=1.0,
        has_small_budget=True,
    ),
)
"""Days on which rules matter that hardly ever do (decision 0290)."""
RARE_DAY_EVERY = 8
"""One seed in so many has such a day, each kind in turn."""
