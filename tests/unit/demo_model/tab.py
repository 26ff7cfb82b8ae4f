"""A small editor tab: holds a page, answers the site tools, and talks to a model until it is done."""

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from fermata.drivers.driver import Endpoint, driver_for
from fermata.drivers.line import Line
from fermata.words.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.messages import Message
from fermata.words.model import Ask, Reply
from fermata.words.tools import ToolOutput, ToolSpec
from local.demo_model.pages import Node, read

NAMES = ("list_documents", "list_tokens", "read_document", "insertHtml", "replaceNodeHtml", "deleteNode", "applyCss")
SPECS = tuple(ToolSpec(name=name, description=name, input_schema={"type": "object"}) for name in NAMES)
_ids = itertools.count(1)


def fragment(html: str) -> list[Node]:
    return read(html, "").root.children


@dataclass
class Tab:
    """`html` is the page; every element gets its id when it comes in."""

    html: str
    css: str = ""
    part_size: int | None = None
    broken: dict[str, str] = field(default_factory=dict)
    """Tools that fail, and how."""

    def __post_init__(self) -> None:
        self.root = read(self.html, "").root
        self._number(self.root)

    def _number(self, node: Node) -> None:
        for child in node.walk():
            child.attributes.setdefault("uid", f"n{next(_ids)}")

    def node(self, uid: str) -> Node:
        return next(node for node in self.root.walk() if node.uid == uid)

    def run(self, call: ToolCallBlock) -> ToolOutput:
        if call.tool_name in self.broken:
            return ToolOutput.failed(self.broken[call.tool_name])
        return getattr(self, f"_{call.tool_name}")(**call.input)  # type: ignore[no-any-return]  # one method a tool

    def _list_documents(self) -> ToolOutput:
        return ToolOutput.done({"currentDocument": {"type": "page", "id": "home"}, "documents": []})

    def _list_tokens(self) -> ToolOutput:
        return ToolOutput.done({"tokens": {"colors": [], "typography": [], "spacing": [], "fonts": []}})

    def _read_document(self, document: dict[str, str] | None = None, part: int = 1) -> ToolOutput:
        assert document in (None, {"type": "page", "id": "home"})
        html, size = written(self.root), self.part_size
        parts = [html[at : at + size] for at in range(0, len(html), size)] if size else [html]
        following = part + 1 if part < len(parts) else None
        css = self.css if part == len(parts) else ""
        return ToolOutput.done({"html": parts[part - 1], "css": css, "title": "T", "pageInfo": {"nextPart": following}})

    def _insertHtml(self, parentId: str, html: str, index: int | None = None) -> ToolOutput:
        parent, new = self.node(parentId), fragment(html)
        at = len(parent.children) if index is None else index
        parent.children[at:at] = new
        for node in new:
            node.parent = parent
        self._number(self.root)
        return ToolOutput.done({"nodeIds": [node.uid for node in new]})

    def _replaceNodeHtml(self, nodeId: str, html: str) -> ToolOutput:
        node = self.node(nodeId)
        node.children, node.texts = fragment(html), [re.sub(r"<[^>]+>", "", html)]
        return ToolOutput.done({"nodeIds": [nodeId]})

    def _deleteNode(self, nodeId: str) -> ToolOutput:
        node = self.node(nodeId)
        assert node.parent is not None
        node.parent.children.remove(node)
        return ToolOutput.done()

    def _applyCss(self, css: str) -> ToolOutput:
        self.css += "\n" + css
        return ToolOutput.done({"cssRulesCreated": 1, "cssRulesUpdated": 0})


def written(node: Node) -> str:
    """The element's content as HTML, with ids; own text first, which is enough for a model that reads words."""
    inside = "".join(node.texts) + "".join(written(child) for child in node.children)
    if node.tag == "#page":
        return inside
    attributes = "".join(f' {name}="{value}"' for name, value in node.attributes.items())
    return f"<{node.tag}{attributes}>{inside}</{node.tag}>"


@dataclass
class Talk:
    """What was said in one turn: the model's texts, and its calls round by round."""

    texts: list[str]
    rounds: list[list[ToolCallBlock]]

    @property
    def names(self) -> list[list[str]]:
        return [[call.tool_name for call in calls] for calls in self.rounds]


def talk(prompt: str, tab: Tab, line: Line, endpoint: Endpoint, provider: str = "anthropic", **members: Any) -> Talk:
    """One whole turn through the real driver, the tab answering every call."""
    rows = [Message(position=0, role="user", content=(TextBlock(text=prompt),), turn="t")]
    said = Talk([], [])
    for _ in range(12):
        asked = Ask(**{"model": "fermata-demo", "system": "s", "messages": tuple(rows), "tools": SPECS} | members)
        *_, reply = driver_for(provider).stream(asked, line, endpoint)
        assert isinstance(reply, Reply)
        said.texts += [block.text for block in reply.blocks if isinstance(block, TextBlock)]
        rows.append(Message(position=0, role="assistant", content=reply.blocks, turn="t"))
        calls = [block for block in reply.blocks if isinstance(block, ToolCallBlock)]
        if not calls:
            return said
        said.rounds.append(calls)
        rows += [_answered(call, tab.run(call)) for call in calls]
    raise AssertionError("the model does not come to an end")


def _answered(call: ToolCallBlock, output: ToolOutput) -> Message:
    block = ToolResultBlock(ok=output.ok, data=output.data, error=output.error)
    return Message(position=0, role="tool", content=(block,), turn="t", tool_call_id=call.tool_call_id)
