"""A log twice as long takes twice the time to render, in every protocol (decision 0234)."""

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules

import pytest

from fermata.domain.events import (
    DataPartEvent,
    DoneEvent,
    Event,
    ReasoningEvent,
    RoundRetractedEvent,
    RoundStartedEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolResultEvent,
)
from fermata.drivers.protocols.response_stream import MAX_TOOL_CALLS_PER_RESPONSE
from fermata.wire import renderers
from fermata.wire.renderers.agui import AguiRenderer, AguiRun
from fermata.wire.renderers.cms_agent_stream import CmsAgentRenderer, CmsAnswerHead
from fermata.wire.renderers.openai_answer import OpenAIAnswer
from fermata.wire.renderers.openai_chat import ChatCompletionRenderer
from fermata.wire.renderers.openai_response import ResponseRenderer
from fermata.wire.renderers.planner_sse import PlannerJsonRenderer, PlannerSseRenderer
from fermata.wire.renderers.studio_stream import StudioRenderer
from fermata.wire.renderers.turn_fold import TurnFold
from fermata.wire.renderers.ui_stream import PlainTextRenderer, UiStreamRenderer
from tests.growth.measure_growth import MAX_GROWTH, measure_growth

Render = Callable[[int, Sequence[Event]], bytes]
CLOSING = (DoneEvent(),)


def make_fold() -> TurnFold:
    return TurnFold(lambda name: name.startswith("browser"))


def _render_ui(logs: Sequence[Sequence[Event]]) -> object:
    renderer = UiStreamRenderer(make_fold())
    return [renderer.render_events(events) for events in logs], renderer.render_end()


def _render_text(logs: Sequence[Sequence[Event]]) -> object:
    renderer = PlainTextRenderer(make_fold())
    return [renderer.render_events(events) for events in logs]


def _render_agui(logs: Sequence[Sequence[Event]]) -> object:
    renderer = AguiRenderer(make_fold(), AguiRun("thread", "run", None))
    return [renderer.render_events(events) for events in logs], renderer.render_end()


def _render_cms(logs: Sequence[Sequence[Event]]) -> object:
    renderer = CmsAgentRenderer(make_fold(), CmsAnswerHead("turn", "session", "model"), lambda: "now")
    return [renderer.render_events(events) for events in logs], renderer.render_end()


def _render_studio(logs: Sequence[Sequence[Event]]) -> object:
    renderer = StudioRenderer(make_fold(), "conversation", lambda calls: {"calls": len(calls)})
    return [renderer.render_events(events) for events in logs], renderer.render_end()


def _render_chat_completion(logs: Sequence[Sequence[Event]]) -> object:
    renderer = ChatCompletionRenderer(OpenAIAnswer(make_fold()), completion_id="c", model="site", created=1)
    return [renderer.render_events(events) or renderer.is_response_over() for events in logs]


def _render_response(logs: Sequence[Sequence[Event]]) -> object:
    renderer = ResponseRenderer(OpenAIAnswer(make_fold()), response_id="r", model="site", created=1)
    return [renderer.render_events(events) or renderer.is_response_over() for events in logs]


def _render_planner(logs: Sequence[Sequence[Event]]) -> object:
    renderer = PlannerSseRenderer("model", 0, 0)
    return [renderer.render(number, event) for number, events in enumerate(logs) for event in events]


def _render_planner_result(logs: Sequence[Sequence[Event]]) -> object:
    renderer = PlannerJsonRenderer("model", {})
    return [renderer.render(number, event) for number, events in enumerate(logs) for event in events]


RENDERERS: dict[type, Callable[[Sequence[Sequence[Event]]], object]] = {
    UiStreamRenderer: _render_ui,
    PlainTextRenderer: _render_text,
    AguiRenderer: _render_agui,
    CmsAgentRenderer: _render_cms,
    StudioRenderer: _render_studio,
    ChatCompletionRenderer: _render_chat_completion,
    ResponseRenderer: _render_response,
    PlannerSseRenderer: _render_planner,
    PlannerJsonRenderer: _render_planner_result,
}


def _repeat_text(size: int) -> list[Sequence[Event]]:
    return [(TextEvent(text="word " * 200),) for _ in range(size)]


def _repeat_reasoning(size: int) -> list[Sequence[Event]]:
    return [(ReasoningEvent(text="word " * 200),) for _ in range(size)]


def _alternate(size: int) -> list[Sequence[Event]]:
    return [(ReasoningEvent(text="a"), TextEvent(text="b")) for _ in range(size)]


def _repeat_data_parts(size: int) -> list[Sequence[Event]]:
    return [(DataPartEvent(name="data-a", data=number, part_id="p"),) for number in range(size)]


def _repeat_retractions(size: int) -> list[Sequence[Event]]:
    return [(TextEvent(text="a"), RoundRetractedEvent(round=1)) for _ in range(size)]


def _request(number: int, name: str) -> Event:
    """Return the request of a client's call, or of a server's nothing that anybody sees."""
    if name == "server":
        return TextEvent(text="")
    return ToolRequestEvent(
        request_id=f"r{number}", tool_call_id=f"c{number}", tool_name=name, effect_key="k", deadline="2026-01-01"
    )


def _make_calls(size: int, name: str, *, is_one_round: bool) -> list[Sequence[Event]]:
    """Return the log of calls that are asked for together, or in rounds of one call each."""
    started = [(RoundStartedEvent(round=number + 1, epoch="1", owner="o"),) for number in range(size)]
    asked = [
        (ToolCallEvent(tool_call_id=f"c{number}", tool_name=name, input={}), _request(number, name))
        for number in range(size)
    ]
    results = [(ToolResultEvent(tool_call_id=f"c{number}", tool_name=name, ok=True),) for number in range(size)]
    if is_one_round:
        return [started[0], [event for events in asked for event in events], *results]
    return [part for three in zip(started, asked, results, strict=True) for part in three]


LOGS: dict[str, Callable[[int], list[Sequence[Event]]]] = {
    "text": _repeat_text,
    "reasoning": _repeat_reasoning,
    "text and reasoning": _alternate,
    "data parts": _repeat_data_parts,
    "retracted rounds": _repeat_retractions,
    "calls in one round": lambda size: _make_calls(size, "server", is_one_round=True),
    "calls of the client in one round": lambda size: _make_calls(size, "browser", is_one_round=True),
    "calls of many rounds": lambda size: _make_calls(size, "server", is_one_round=False),
    "calls of the client in many rounds": lambda size: _make_calls(size, "browser", is_one_round=False),
}


def test_every_renderer_is_measured() -> None:
    modules = [import_module(f"{renderers.__name__}.{module.name}") for module in iter_modules(renderers.__path__)]
    found = {
        member
        for module in modules
        for name, member in inspect.getmembers(module, inspect.isclass)
        if name.endswith("Renderer")
    }
    assert found == set(RENDERERS)


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda renderer: renderer.__name__)
def test_a_log_twice_as_long_takes_twice_the_time(renderer: type, log: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        size = min(size, MAX_TOOL_CALLS_PER_RESPONSE) if "one round" in log else size
        events = [(RoundStartedEvent(round=1, epoch="1", owner="o"),), *LOGS[log](size), CLOSING]
        return lambda: RENDERERS[renderer](events)

    assert measure_growth(prepare, 256, 4096, noticeable_seconds=0.02, max_seconds=8) <= MAX_GROWTH
