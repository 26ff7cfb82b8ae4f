"""Assemble the toolset of the planner."""

from typing import Any

from pydantic import ConfigDict, Field

from fermata.tools.input_types import NonEmptyText
from fermata.tools.planner.handlers import build_plan_events
from fermata.tools.tool import Access, Execution, NoInput, ResultPolicy, Risk, Tool, ToolInput
from fermata.tools.tool_factory import EVERYONE, SNAPSHOT_EFFECTS, DeferredHandler
from fermata.tools.toolset import Toolset

SUBMIT_PLAN_TOOL = "submit_edit_plan"
_PLANNER = frozenset({"planner"})
_OPERATIONS = """\
The operations in their order. Each has `op` and the members of that operation: create_page(page{slug,title,blocks}), \
add_block(pageSlug,block{type,props},afterBlockId?), update_props(pageSlug,blockId,patch), remove_block(pageSlug,\
blockId), move_block(pageSlug,blockId,afterBlockId?), duplicate_block(pageSlug,blockId,toPageSlug?), add_item(pageSlug,\
blockId,listKey,item,afterIndex?), update_item(pageSlug,blockId,listKey,index,patch), remove_item(pageSlug,blockId,\
listKey,index), move_item(pageSlug,blockId,listKey,index,afterIndex?), rename_page(pageSlug,newPageSlug?,newTitle?), \
remove_page(pageSlug), move_page(pageSlug,afterPageSlug?), duplicate_page(pageSlug,newPageSlug?,newTitle?), \
update_page_meta(pageSlug,patch{title?,description?,ogImage?}), update_site_config(patch{name?,logo?,navLabels?})."""


class PageInput(ToolInput):
    """Which page to read."""

    slug: NonEmptyText = Field(description="The slug of the page, such as `/` or `/pricing`.")


class PlanInput(ToolInput):
    """A plan in whatever form a model writes it: the normaliser reads it, and the schema of plans refuses it."""

    model_config = ConfigDict(alias_generator=None, extra="allow", defer_build=True)

    intent: Any = Field(default=None, description="edit_plan, needs_clarification or content_answer.")
    summary_for_user: Any = Field(default=None, description="One or two sentences for the user.")
    change_log: Any = Field(default=None, description="One short line for each change.")
    ops: Any = Field(default=None, description=_OPERATIONS)
    suggested_next_actions: Any = Field(default=None, description="Up to five short prompts that may come next.")
    next_steps: Any = Field(
        default=None,
        description="Only if the request is too large for one plan: what each later plan is to do, a sentence each.",
    )


PLANNER_TOOLSET = Toolset(
    "plans",
    (
        Tool(
            name="list_pages",
            toolset="plans",
            description="Lists the pages of the site with the ids and types of their blocks.",
            execution=Execution.SERVER,
            access=Access.READ,
            input_model=NoInput,
            handler=DeferredHandler("fermata.tools.planner.handlers:list_pages"),
            permissions=EVERYONE,
            scopes=_PLANNER,
            idempotent=True,
        ),
        Tool(
            name="get_page",
            toolset="plans",
            description="Returns a page with all of its blocks and their props. Read a page before you change it.",
            execution=Execution.SERVER,
            access=Access.READ,
            input_model=PageInput,
            handler=DeferredHandler("fermata.tools.planner.handlers:get_page"),
            permissions=EVERYONE,
            scopes=_PLANNER,
            idempotent=True,
        ),
        Tool(
            name=SUBMIT_PLAN_TOOL,
            toolset="plans",
            description="Submits the plan of all changes, or the answer if nothing is to be changed. It ends your "
            "work: call it once, alone, and last. A plan is applied as a whole or not at all.",
            execution=Execution.SERVER,
            access=Access.WRITE,
            input_model=PlanInput,
            handler=DeferredHandler("fermata.tools.planner.handlers:submit_edit_plan"),
            permissions=EVERYONE,
            scopes=_PLANNER,
            risk=Risk.MODERATE,
            idempotent=True,
            ends_turn=True,
            build_events=build_plan_events,
            affects=SNAPSHOT_EFFECTS,
            result_policy=ResultPolicy(persist=False),
        ),
    ),
)
