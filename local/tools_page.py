"""Write docs/tools.md from the definitions of the tools: `make docs`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fermata.agents.registry import get_toolset, list_scopes_with_tools
from fermata.domain.caller import Capability
from fermata.tools.tool import Access, Execution, Tool
from fermata.tools.tool_names import get_prefixed_name

ROOT = Path(__file__).parents[1]
PAGE_PATH = ROOT / "docs" / "tools.md"

INTRODUCTION = """\
# Tools

What the model may ask for, by scope. `make docs` writes this page from the records of the tools. An editor reads the
same from `GET /admin/api/ai/tools/{scope}`, with the JSON Schema of each input and limited to the caller's rights.

Each tool has two names; newer Instatic editors know only the second (docs/decisions/0069). The page says who carries
it out, what a caller needs and what it takes. A `?` marks what may be left out. One of several permissions is enough.
A tool that writes needs `ai.tools.write` as well. "heavy": only the newest result stays whole within a turn.
"""

WRITING = """\
## Write a tool

A tool runs in one of three places. All have the same checks in front: rights, input, approval, size of the result.

| runs | write |
|---|---|
| in the service | a function of the toolset, for what belongs to the product |
| in the editor | a tool without a function, and a function in the editor, for the open document |
| on your server | a manifest and an HTTP endpoint, without changing the service ([remote-tools.md](remote-tools.md)) |

The files below are run by the tests, and copied here by `make docs`.

### One in the service, and one in the editor

`{toolset}`: the service runs `instant_read`, the editor `browser_write`. The input model is the schema that
the model reads and the calls are checked with. `ToolFailure` is a sentence for the model. [extending.md](extending.md)
names the lists that a tool of the product has to be in.

```python
{toolset_code}```

The editor's half of browser tools, `{editor}`: the client calls `execute` for each request, and posts
what it returns ([embedding.md](embedding.md)).

```javascript
{editor_code}```

### One on your server

`{manifest}` is its registration, `{server}` the endpoint, and `server.mjs` beside it
the same in JavaScript. `fermata tools register` prints the signing secret.

```json
{manifest_code}```

```python
{server_code}```
"""
EXAMPLES = {
    "toolset": "tests/unit/agents/example_agent/toolset.py",
    "editor": "examples/own-editor/agent.js",
    "manifest": "examples/remote-tool/tool.json",
    "server": "examples/remote-tool/server.py",
}
"""Files that tests run, by what they show."""
EXECUTION_LABELS = {
    Execution.SERVER: "the service",
    Execution.BROWSER: "the editor",
    Execution.REMOTE: "another service",
    Execution.MCP: "an MCP server",
    Execution.AGENT: "another agent",
}


def render_page() -> str:
    return "\n".join(
        [
            INTRODUCTION,
            _render_examples(),
            *(line for scope in list_scopes_with_tools() for line in _render_scope(scope)),
        ]
    )


def _render_examples() -> str:
    code = {f"{name}_code": (ROOT / path).read_text() for name, path in EXAMPLES.items()}
    return WRITING.format(**EXAMPLES, **code)


def _render_scope(scope: str) -> Iterator[str]:
    tools = get_toolset(scope).tools
    yield f"## {scope}: {len(tools)} tools\n"
    for tool in sorted(tools, key=lambda tool: tool.execution is not Execution.SERVER):
        yield from _render_tool(tool)


def _render_tool(tool: Tool) -> Iterator[str]:
    names = dict.fromkeys([tool.name, get_prefixed_name(tool)])
    yield f"### {' · '.join(f'`{name}`' for name in names)}\n"
    yield tool.description.replace("<", "&lt;") + "\n"
    yield f"- Carried out by {EXECUTION_LABELS[tool.execution]}; {'; '.join(_render_notes(tool))}"
    yield f"- Needs {_render_needs(tool)}"
    yield f"- Takes {_render_takes(tool.input_schema)}\n"


def _render_notes(tool: Tool) -> Iterator[str]:
    yield "writes" if tool.access is Access.WRITE else "reads"
    if tool.risk.value == "high":
        yield "high risk"
    if tool.result_policy.heavy:
        yield "heavy"


def _render_needs(tool: Tool) -> str:
    any_of = " or ".join(f"`{permission}`" for permission in sorted(tool.permissions))
    write = f"`{Capability.WRITE.value}`" if tool.access is Access.WRITE else ""
    if any_of and write:
        return f"{write}, and {any_of}"
    return any_of or write or "nothing more than to chat"


def _render_takes(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    members = [f"`{name}`" if name in required else f"`{name}`?" for name in schema["properties"]]
    return ", ".join(members) or "nothing"


if __name__ == "__main__":
    PAGE_PATH.write_text(render_page())
