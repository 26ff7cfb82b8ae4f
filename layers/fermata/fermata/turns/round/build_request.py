"""Build the model request of a round: the turn, its history and tools, and the settings of its step."""

from fermata.domain.events import WarningEvent
from fermata.domain.model_io import ModelRequest, SamplingSettings
from fermata.domain.run_settings import OutputFormat, RunSettings
from fermata.domain.untrusted_text import escape_frames_in_text
from fermata.drivers.registry import get_model_traits
from fermata.drivers.sampling_fields import list_unsupported_sampling
from fermata.turns.round.forced_answer import ForcedAnswer
from fermata.turns.round.step_settings import StepSettings
from fermata.turns.round.structured_answer import build_output_instruction
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.turn import Turn


def build_model_request(context: TurnContext) -> tuple[ModelRequest, ForcedAnswer | None]:
    """Return the request of the current round, and why it is without tools, if it is."""
    turn = context.turn
    state = context.log.state
    settings, own, step = context.resources.settings, context.agent.settings, context.step_settings
    messages = context.load_history()
    forced_answer = context.find_forced_answer()
    tools = step.select_tools(context.list_request_tools())
    choice = step.choose_tool(tools)
    request = ModelRequest(
        name=f"{turn.id}.{state.round}.{state.request_attempts}",
        model=turn.model,
        system=context.system_prompt,
        volatile=_build_volatile(context),
        instruction=_build_instruction(context.output, forced_answer),
        messages=messages,
        tools=tools,
        max_tokens=step.max_output_tokens or settings.max_answer_tokens,
        thinking_tokens=turn.thinking_tokens,
        call_tools=forced_answer is None and choice != "none",
        tool_choice=choice,
        sampling=build_sampling(own, step),
        output=context.output,
        provider_options=context.open_provider_options(),
        scope=turn.scope,
        window_tokens=settings.ollama_window_tokens,
        message_prefix_cache=context.message_prefix_cache,
    )
    return request, forced_answer


def _build_volatile(context: TurnContext) -> str:
    """Return the situation of the turn, and what the turns before it were about."""
    situation = context.turn.situation
    if not context.agent.has_memory or context.history is None:
        return situation
    from fermata.turns.round.remembered_entities import build_memory_lines  # few agents remember

    lines = build_memory_lines(context.toolset, context.history.stored_messages, context.turn.id)
    return "\n".join(part for part in (situation, escape_frames_in_text(lines)) if part)


def build_sampling(settings: RunSettings, step: StepSettings) -> SamplingSettings:
    """Return what an agent sets of sampling, with the temperature of the step."""
    names = SamplingSettings.model_fields.keys() - {"temperature"}
    return SamplingSettings(temperature=step.temperature, **{name: getattr(settings, name) for name in names})


def _build_instruction(output: OutputFormat | None, forced_answer: ForcedAnswer | None) -> str:
    parts = (
        forced_answer.instruction if forced_answer else "",
        build_output_instruction(output) if output else "",
    )
    return "\n\n".join(part for part in parts if part)


def list_first_warnings(request: ModelRequest, turn: Turn) -> tuple[WarningEvent, ...]:
    """Return what the first round of a turn warns of: tools that are missing, and settings that were not taken."""
    missing_tools = tuple(WarningEvent(message=message) for message in turn.mcp_warnings)
    return (*missing_tools, *list_setting_warnings(request, turn.provider))


def list_setting_warnings(request: ModelRequest, provider: str) -> tuple[WarningEvent, ...]:
    """Return the warning about settings that the provider does not take; none if it takes all of them."""
    traits = get_model_traits(provider)
    names = list_unsupported_sampling(request, traits.get_sampling_fields(request))
    if request.forced_tool and not traits.are_calls_forceable:
        names.append("toolChoice")
    if not names:
        return ()
    message = f"{request.model} does not take {', '.join(names)}: the answer was made without."
    return (WarningEvent(message=message),)
