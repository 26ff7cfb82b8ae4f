"""Assemble the tools of the studio (decision 0423). What governs each of them is in tool_rules.py."""

from fermata.domain.caller import Capability
from fermata.tools.studio import (
    branch_tools,
    content_analysis,
    content_tools,
    media_tools,
    project_tools,
    read_tools,
    submission_tools,
    validate_project,
)
from fermata.tools.studio.input_schemas import STUDIO_INPUT_SCHEMAS
from fermata.tools.studio.studio_handler import StudioHandler, answer_in_studio
from fermata.tools.studio.tool_rules import TOOL_RULES
from fermata.tools.tool import Access, Execution, JsonInput, ResultPolicy, Risk, Tool
from fermata.tools.toolset import Toolset

_READERS = frozenset({Capability.READ_CONTENT, Capability.WRITE_CONTENT, Capability.CONTENT})
_TIMEOUT_SECONDS = 25.0
MAX_STUDIO_RESULT_CHARS = 2000
"""What the model reads of a result. Clients are shown all of it."""


def _make_tool(name: str, description: str, handler: StudioHandler, risk: Risk = Risk.SAFE) -> Tool:
    rule = TOOL_RULES[name]
    return Tool(
        name=name,
        toolset="studio",
        description=description,
        execution=Execution.SERVER,
        access=Access.READ if rule.is_read else Access.WRITE,
        input_model=JsonInput,
        declared_schema=STUDIO_INPUT_SCHEMAS[name],
        handler=answer_in_studio(name, handler),
        permissions=_READERS,
        risk=risk,
        timeout_seconds=_TIMEOUT_SECONDS,
        idempotent=True,
        result_policy=ResultPolicy(max_chars=MAX_STUDIO_RESULT_CHARS, shows_whole=True),
    )


STUDIO_TOOLS = (
    _make_tool("list_models", "Lists the content models with all of their fields.", read_tools.list_studio_models),
    _make_tool("get_content", "Returns the content of a model in one language.", read_tools.query_brain),
    _make_tool(
        "save_content",
        "Creates or changes content. Send only the fields that change; a field that is null is removed.",
        content_tools.save_content,
        Risk.MODERATE,
    ),
    _make_tool(
        "delete_content",
        "Deletes entries, or keys of a dictionary. With a locale, only what they say in it.",
        content_tools.delete_content,
        Risk.HIGH,
    ),
    _make_tool(
        "save_model",
        "Creates a model or changes one. Fields that are not named stay; one that is null is removed.",
        project_tools.save_studio_model,
        Risk.MODERATE,
    ),
    _make_tool(
        "validate",
        "Checks the models of the project and their entries, or those of one model or language.",
        validate_project.validate_project,
    ),
    _make_tool("list_branches", "Lists the branches that wait to be merged.", read_tools.list_studio_branches),
    _make_tool("merge_branch", "Merges a branch: all of its changes, or none.", branch_tools.merge_branch, Risk.HIGH),
    _make_tool(
        "reject_branch",
        "Rejects a branch that waits to be merged; its changes are gone.",
        branch_tools.reject_branch,
        Risk.HIGH,
    ),
    _make_tool(
        "init_project",
        "Sets a project up: languages, domains and first models.",
        project_tools.init_project,
        Risk.MODERATE,
    ),
    _make_tool(
        "copy_locale",
        "Copies the content of a model to a language that has none yet, as drafts to translate.",
        content_tools.copy_locale,
        Risk.MODERATE,
    ),
    _make_tool("brain_query", "Returns the content of a model, or one entry, in one language.", read_tools.query_brain),
    _make_tool(
        "brain_search", "Finds entries of all models, or of one, in which a text occurs.", read_tools.search_brain
    ),
    _make_tool("search_media", "Finds assets by text, tags or media type.", media_tools.search_media),
    _make_tool(
        "upload_media",
        "Fetches an image, SVG, PDF or video (MP4, WebM) of up to 15 MB from a public https address, and stores it "
        "as an asset.",
        media_tools.upload_media,
        Risk.MODERATE,
    ),
    _make_tool("get_media", "Returns an asset with its address, alternative text and tags.", media_tools.get_media),
    _make_tool(
        "update_status",
        "Publishes, archives or withdraws entries in one language.",
        content_tools.update_status,
        Risk.HIGH,
    ),
    _make_tool(
        "update_media",
        "Changes alternative text, tags or focal point of an asset.",
        media_tools.update_media,
        Risk.MODERATE,
    ),
    _make_tool(
        "delete_media", "Deletes an asset, and says which entries still name it.", media_tools.delete_media, Risk.HIGH
    ),
    _make_tool(
        "branch_health", "Says how many branches wait, and whether that is too many.", read_tools.check_studio_branches
    ),
    _make_tool(
        "relation_expand", "Returns what an entry points to, and what points to it.", read_tools.expand_relations
    ),
    _make_tool(
        "vocabulary",
        "Reads the project's terms, or changes them; a term that is null is removed.",
        content_tools.change_vocabulary,
        Risk.MODERATE,
    ),
    _make_tool(
        "add_locale",
        "Adds a language to the project. `copyFrom` names one whose content it begins with.",
        project_tools.add_locale,
        Risk.MODERATE,
    ),
    _make_tool(
        "delete_model",
        "Deletes a model with all of its content, once the user has confirmed it.",
        project_tools.delete_studio_model,
        Risk.HIGH,
    ),
    _make_tool(
        "brain_analyze",
        "Analyses content: texts for search engines, missing languages, old entries, quality.",
        content_analysis.analyze_brain,
    ),
    _make_tool(
        "validate_schema",
        "Checks whether the models of the project are sound.",
        validate_project.validate_schema,
    ),
    _make_tool(
        "list_submissions",
        "Lists what visitors have sent by the form of a model, the newest first.",
        submission_tools.list_studio_submissions,
    ),
    _make_tool(
        "approve_submission",
        "Makes a submission an entry of its model, as a draft.",
        submission_tools.approve_studio_submission,
        Risk.HIGH,
    ),
    _make_tool(
        "reject_submission",
        "Rejects a submission of a form, which then becomes no entry.",
        submission_tools.reject_studio_submission,
        Risk.MODERATE,
    ),
)
STUDIO_TOOLSET = Toolset("studio", STUDIO_TOOLS)
