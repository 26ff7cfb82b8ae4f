"""An agent of the CMS in a space of two languages, whose tools are called as a model calls them."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor
from fermata.content.model_store import create_space, put_model
from fermata.content.opened_space import OpenedSpace
from fermata.domain.caller import Capability
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.cms.toolset import CMS_TOOLSET
from fermata.tools.tool import ToolContext
from tests.unit.content.conftest import HERO
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.builders import make_call, make_context

__all__ = ["clock", "resources", "shared_resources"]
SPACE = SpaceKey("bakery", "shop")
AUTHOR = ContentAuthor("ada", "agent", "turn-1")
RIGHTS = frozenset({Capability.CHAT, Capability.WRITE, Capability.WRITE_CONTENT})


class CmsAgent:
    """Calls tools in a space, each call under a key of its own unless it is repeated."""

    def __init__(self, resources: Resources) -> None:
        self.resources, self.calls = resources, 0
        create_space(resources, SPACE, ContentSpace(locales=("en", "de")), AUTHOR)
        put_model(resources, SPACE, HERO, AUTHOR)

    def call(self, tool: str, /, *, effect: str = "", **arguments: Any) -> ToolOutput:
        self.calls += 1
        access = OpenedSpace(self.resources, SPACE, AUTHOR, effect or f"turn-1/{self.calls}/0")
        return call_tool(
            self.resources, make_context(capabilities=RIGHTS, open_content=lambda: access), tool, arguments
        )

    def data(self, tool: str, /, **arguments: Any) -> Any:
        output = self.call(tool, **arguments)
        assert output.ok, output.error
        return output.data


def call_tool(resources: Resources, context: ToolContext, name: str, arguments: dict[str, Any]) -> ToolOutput:
    admitted = admit_call(CMS_TOOLSET, make_call(name, arguments), context)
    return run_tool(admitted, context, clock=resources.clock) if isinstance(admitted, AdmittedCall) else admitted


@pytest.fixture
def agent(resources: Resources) -> CmsAgent:
    return CmsAgent(resources)
