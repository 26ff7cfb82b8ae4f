"""A small editor tab: holds a page, answers the site tools, and talks to a model until it is done."""

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse
from fermata.domain.tools import ToolOutput, ToolSpec
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from local.demo_model.rules.html_page import HtmlNode, parse_page

NAMES = ("list_documents", "list_tokens", "read_document", "insertHtml", "replaceNodeHtml", "deleteNode", "applyCss")
SPECS = tuple(ToolSpec(name=name, description=name, input_schema={"type": "object"}) for name in NAMES)
_ids = itertools.count(1)


def parse_fragment(html: str) -> list[HtmlNode]:
    return parse_page(html, "").root.children


@dataclass
class EditorTab:
    """`html` is the page; every element gets its id when it comes in."""

    html: str
    css: str = ""
    part_size: int | None = None
    broken: dict[str, str] = field(default_factory=dict)
    """Tools that fail, and how."""

    def __post_init__(self) -> None:
        self.root = parse_page(self.html, "").root
        self._number(self.root)

    def _number(self, node: HtmlNode) -> None:
        for child in node.iter_descendants():
            child.attributes.setdefault("uid", f"n{next(_ids)}")

    def node(self, uid: str) -> HtmlNode:
        return next(node for node in self.root.iter_descendants() if node.uid == uid)

    def run_call(self, call: ToolCallBlock) -> ToolOutput:
        if call.tool_name in self.broken:
            return ToolOutput.failure(self.broken[call.tool_name])
        return getattr(self, f"_{call.tool_name}")(**call.input)  # type: ignore[no-any-return]  # one method a tool

    def _list_documents(self) -> ToolOutput:
        return ToolOutput.success({"currentDocument": {"type": "page", "id": "home"}, "documents": []})

    def _list_tokens(self) -> ToolOutput:
        return ToolOutput.success({"tokens": {"colors": [], "typography": [], "spacing": [], "fonts": []}})

    def _read_document(self, document: dict[str, str] | None = None, part: int = 1) -> ToolOutput:
        assert document in (None, {"type": "page", "id": "home"})
        html, size = html_from_node(self.root), self.part_size
        parts = [html[at : at + size] for at in range(0, len(html), size)] if size else [html]
        following = part + 1 if part < len(parts) else None
        css = self.css if part == len(parts) else ""
        return ToolOutput.success(
            {"html": parts[part - 1], "css": css, "title": "T", "pageInfo": {"nextPart": following}}
        )

    def _insertHtml(self, parentId: str, html: str, index: int | None = None) -> ToolOutput:
        parent, new = self.node(parentId), parse_fragment(html)
        at = len(parent.children) if index is None else index
        parent.children[at:at] = new
        for node in new:
            node.parent = parent
        self._number(self.root)
        return ToolOutput.success({"nodeIds": [node.uid for node in new]})

    def _replaceNodeHtml(self, nodeId: str, html: str) -> ToolOutput:
        node = self.node(nodeId)
        node.children, node.texts = parse_fragment(html), [re.sub(r"<[^>]+>", "", html)]
        return ToolOutput.success({"nodeIds": [nodeId]})

    def _deleteNode(self, nodeId: str) -> ToolOutput:
        node = self.node(nodeId)
        assert node.parent is not None
        node.parent.children.remove(node)
        return ToolOutput.success()

    def _applyCss(self, css: str) -> ToolOutput:
        self.css += "\n" + css
        return ToolOutput.success({"cssRulesCreated": 1, "cssRulesUpdated": 0})


def html_from_node(node: HtmlNode) -> str:
    """The element's content as HTML, with ids; own text first, which is enough for a model that reads words."""
    inside = "".join(node.texts) + "".join(html_from_node(child) for child in node.children)
    if node.tag == "#page":
        return inside
    attributes = "".join(f' {name}="{value}"' for name, value in node.attributes.items())
    return f"<{node.tag}{attributes}>{inside}</{node.tag}>"


@dataclass
class Transcript:
    """What was said in one turn: the model's texts, and its calls round by round."""

    texts: list[str]
    rounds: list[list[ToolCallBlock]]

    @property
    def tool_names(self) -> list[list[str]]:
        return [[call.tool_name for call in calls] for calls in self.rounds]


def run_demo_turn(
    prompt: str,
    tab: EditorTab,
    line: HttpConnection,
    endpoint: AuthenticatedEndpoint,
    provider: str = "anthropic",
    **members: Any,
) -> Transcript:
    """One whole turn through the real driver, the tab answering every call."""
    rows = [Message(position=0, role="user", content=(TextBlock(text=prompt),), turn="t")]
    said = Transcript([], [])
    for _ in range(12):
        asked = ModelRequest(
            **{"model": "fermata-demo", "system": "s", "messages": tuple(rows), "tools": SPECS} | members
        )
        *_, reply = get_provider(provider).stream(asked, line, endpoint)
        assert isinstance(reply, ModelResponse)
        said.texts += [block.text for block in reply.blocks if isinstance(block, TextBlock)]
        rows.append(Message(position=0, role="assistant", content=reply.blocks, turn="t"))
        calls = [block for block in reply.blocks if isinstance(block, ToolCallBlock)]
        if not calls:
            return said
        said.rounds.append(calls)
        rows += [_answered(call, tab.run_call(call)) for call in calls]
    raise AssertionError("the model does not come to an end")


def _answered(call: ToolCallBlock, output: ToolOutput) -> Message:
    block = ToolResultBlock(ok=output.ok, data=output.data, error=output.error)
    return Message(position=0, role="tool", content=(block,), turn="t", tool_call_id=call.tool_call_id)
