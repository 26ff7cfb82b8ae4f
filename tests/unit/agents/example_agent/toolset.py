"""The tools of the example: one that the service runs, and one that the editor runs."""

from typing import Annotated, Any

from pydantic import Field

from fermata.tools.input_types import NonEmptyText, ZeroBasedIndex
from fermata.tools.tool import Risk, ToolContext, ToolFailure, ToolInput
from fermata.tools.tool_factory import EVERYONE, ToolFactory
from fermata.tools.toolset import Toolset

KITCHEN_TOOLS = ToolFactory("kitchen")
CAN_READ_RECIPES = frozenset({"recipes.read"})


class ScaleRecipeInput(ToolInput):
    recipe: NonEmptyText
    portions: Annotated[int, Field(ge=1, le=100)] = 4


def _scale_recipe(tool_input: ScaleRecipeInput, context: ToolContext) -> dict[str, Any]:
    grams_per_portion = context.snapshot["recipes"].get(tool_input.recipe)
    if grams_per_portion is None:
        raise ToolFailure(f"Recipe {tool_input.recipe} not found.")
    return {"portions": tool_input.portions, "flourGrams": grams_per_portion * tool_input.portions}


class HighlightStepInput(ToolInput):
    step: ZeroBasedIndex


KITCHEN_TOOLSET = Toolset(
    "kitchen",
    (
        KITCHEN_TOOLS.instant_read(
            name="scale_recipe",
            aliases=("calculate_recipe",),
            description="Calculates how much flour a recipe needs for a number of portions, 4 by default.",
            input_model=ScaleRecipeInput,
            permissions=CAN_READ_RECIPES,
            handler=_scale_recipe,
        ),
        KITCHEN_TOOLS.browser_write(
            name="highlight_step",
            description="Highlights one step of the open recipe, counted from 0, in the user's editor.",
            input_model=HighlightStepInput,
            permissions=EVERYONE,
            risk=Risk.SAFE,
        ),
    ),
)
