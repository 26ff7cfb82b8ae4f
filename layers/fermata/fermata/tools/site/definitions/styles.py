"""Define the tools for style rules, and for the classes of nodes."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from fermata.tools.input_types import NonEmptyText
from fermata.tools.site.permissions import CAN_EDIT_STYLE
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.tool import ToolInput


class ApplyCssInput(ToolInput):
    css: NonEmptyText


CssSelectors = Annotated[
    tuple[NonEmptyText, ...], Field(min_length=1, max_length=100, json_schema_extra={"uniqueItems": True})
]
CssPropertyName = Annotated[str, Field(min_length=1, pattern=r"^-{0,2}[a-zA-Z][a-zA-Z0-9-]*$")]
CssPropertyNames = Annotated[
    tuple[CssPropertyName, ...], Field(min_length=1, max_length=100, json_schema_extra={"uniqueItems": True})
]
_MEMBERS_BY_OPERATION = {
    "merge": ("css",),
    "replace": ("css",),
    "delete": ("selectors",),
    "remove-properties": ("selectors", "properties"),
}


class ApplyCssOperationInput(ToolInput):
    model_config = ConfigDict(extra="forbid")

    operation: Literal["merge", "replace", "delete", "remove-properties"]
    css: NonEmptyText | None = None
    selectors: CssSelectors | None = None
    properties: CssPropertyNames | None = None

    @model_validator(mode="after")
    def _check_operation(self) -> Self:
        """Check what a flat schema cannot say: not every provider accepts alternatives at its root."""
        needed = _MEMBERS_BY_OPERATION[self.operation]
        if missing := [name for name in needed if getattr(self, name) is None]:
            raise ValueError(f"Operation {self.operation} needs {' and '.join(missing)}")
        return self


class NodeClassInput(ToolInput):
    node_id: NonEmptyText
    class_id: NonEmptyText


_MERGE_OPERATION = {"operation": "merge"}
"""A client of the newest release that asks for the older tools refuses a call without an operation (decision 0102)."""

APPLY_CSS_WITH_OPERATIONS = SITE_TOOL_FACTORY.browser_write(
    name="applyCss",
    description="Changes style rules. `operation` merge creates the rules of `css` (plain CSS text with any selectors, "
    "@media and @keyframes included) or merges them, property by property, with those of the same selector; replace "
    "gives existing rules exactly the properties in `css`; delete removes the rules of `selectors`; remove-properties "
    "removes `properties` from the rules of `selectors`. Returns how many rules were created, updated and deleted.",
    input_model=ApplyCssOperationInput,
    permissions=CAN_EDIT_STYLE,
)

STYLE_TOOLS = (
    SITE_TOOL_FACTORY.browser_write(
        name="applyCss",
        description="Creates or changes style rules from plain CSS text with any selectors, @media and @keyframes "
        "included. A rule whose selector exists already is merged with it, property by property. Returns how many "
        "rules were created and updated.",
        input_model=ApplyCssInput,
        permissions=CAN_EDIT_STYLE,
        extra_browser_input=_MERGE_OPERATION,
        members_of_other_generations=frozenset({"operation", "selectors", "properties"}),
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="assignClass",
        description="Gives a node a class that exists already; `classId` is its id or its name.",
        input_model=NodeClassInput,
        permissions=CAN_EDIT_STYLE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="removeClass",
        description="Takes a class (id or name) off a node; the class itself stays for the others that have it.",
        input_model=NodeClassInput,
        permissions=CAN_EDIT_STYLE,
    ),
)
