"""Compute the settings of one step: those of the agent, with what its first matching rule changes (decision 0364)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fermata.domain.run_settings import NamedToolChoice, RunSettings, StepRule, ToolChoice
from fermata.domain.tools import ToolSpec
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class StepSettings:
    """What a round is asked with.

    Attributes:
        active_tools: The names of the tools that are offered; None for all.
        max_output_tokens: The limit of the response; None for the deployment's.
        temperature: None for the provider's own.
    """

    active_tools: tuple[str, ...] | None = None
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int | None = None
    temperature: float | None = None

    @property
    def requires_call(self) -> bool:
        """Whether the model has to call a tool."""
        return self.tool_choice not in ("auto", "none")

    def select_tools(self, specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
        """Return the tools that are offered, in their order."""
        return tuple(spec for spec in specs if self.active_tools is None or spec.name in self.active_tools)

    def choose_tool(self, specs: Sequence[ToolSpec]) -> ToolChoice:
        """Return the choice that is possible among the offered tools: none of them can be required if none is offered.

        A tool that is not offered cannot be named either, so the model may choose.
        """
        if not specs:
            return "auto"
        is_missing = isinstance(self.tool_choice, NamedToolChoice) and self.tool_choice.tool_name not in {
            spec.name for spec in specs
        }
        return "auto" if is_missing else self.tool_choice


def find_step_rule(rules: Sequence[StepRule], step: int) -> StepRule | None:
    """Return the first rule that matches a step, counted from 1; rules are not merged."""
    return next((rule for rule in rules if _is_matching(rule, step)), None)


def _is_matching(rule: StepRule, step: int) -> bool:
    if rule.steps is not None:
        return step in rule.steps
    return rule.first is not None and rule.first <= step and (rule.last is None or step <= rule.last)


def list_step_overrides(rules: Sequence[StepRule], step: int) -> dict[str, Any]:
    """Return what differs in a step, by the names of `StepSettings`.

    A temperature of 0 counts; an empty value of any other member does not.
    """
    rule = find_step_rule(rules, step)
    if rule is None:
        return {}
    overrides: dict[str, Any] = {
        name: value for name in ("active_tools", "tool_choice", "max_output_tokens") if (value := getattr(rule, name))
    }
    return overrides if rule.temperature is None else overrides | {"temperature": rule.temperature}


def build_step_settings(settings: RunSettings, step: int) -> StepSettings:
    """Return the settings of a step, counted from 1."""
    own = StepSettings(
        active_tools=settings.active_tools,
        tool_choice=settings.tool_choice,
        max_output_tokens=settings.max_output_tokens,
        temperature=settings.temperature,
    )
    return replace(own, **list_step_overrides(settings.prepare_step, step))
