"""Turn a built-in tool on for a tenant: it is there only while its key is."""

from collections.abc import Mapping

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.remote_tools.built_in.built_in_tools import BUILT_IN_ENDPOINT_PREFIX, BUILT_IN_TOOLS_BY_NAME, BuiltInTool
from fermata.remote_tools.built_in.host_names import HOSTS_OPTION, check_host_names
from fermata.remote_tools.stored_tools import make_definition, read_registered_tools, store_tool
from fermata.remote_tools.tool_definition import RegisteredTool, ToolSecrets, to_tool_view
from fermata.remote_tools.tool_manifest import normalize_tool_name
from fermata.remote_tools.tool_registry import StoredTool

API_KEY_MEMBER = "api-key"
MAX_OPTION_CHARS = 1000
IMAGE_PROVIDERS = ("openai", "gemini")


_TOOLS_BY_NORMALIZED_NAME = {normalize_tool_name(name): tool for name, tool in BUILT_IN_TOOLS_BY_NAME.items()}


def turn_on_built_in_tool(
    resources: Resources, caller: Caller, name: str, *, api_key: str | None = None, options: Mapping[str, str]
) -> StoredTool:
    """Turn a built-in tool on, or replace its key and options.

    Args:
        caller: The administrator.
        name: The tool's name, in any case.
        api_key: The key of the service behind it, which is sealed; None where there is none.
        options: What else the tool needs, such as `folderId`.

    Raises:
        NotFound: There is no built-in tool of this name.
        InvalidRequest: The key or an option is missing, or is not one of this tool.
        Conflict: The list of tools has just changed.
    """
    tool = _TOOLS_BY_NORMALIZED_NAME.get(normalize_tool_name(name))
    if tool is None:
        raise NotFound(f"There is no built-in tool {name[:120]!r}. They are {', '.join(BUILT_IN_TOOLS_BY_NAME)}.")
    _check(tool, api_key, options)
    key = normalize_tool_name(tool.manifest.name)
    registered = read_registered_tools(resources, caller.tenant)
    old = registered.tools.get(key)
    secrets = ToolSecrets(headers={API_KEY_MEMBER: api_key} if api_key else {}, signing_secrets=())
    endpoint = BUILT_IN_ENDPOINT_PREFIX + tool.manifest.name
    definition = make_definition(
        resources, caller.tenant, tool.manifest, endpoint, (), secrets, options=dict(sorted(options.items()))
    )
    now = resources.clock.now_iso()
    line = RegisteredTool(
        name=tool.manifest.name,
        definition=definition.id,
        registered_at=old.registered_at if old else now,
        updated_at=now,
    )
    store_tool(resources, caller, registered, key, line, definition)
    observability.log_audit_event("ai.tool.registered", tenant=caller.tenant, user=caller.user, tool=line.name)
    return StoredTool(to_tool_view(line, definition))


def _check(tool: BuiltInTool, api_key: str | None, options: Mapping[str, str]) -> None:
    name = tool.manifest.name
    if tool.needs_key != bool(api_key) and not (api_key and tool.takes_key):
        raise InvalidRequest(f"{name} needs an 'apiKey'." if tool.needs_key else f"{name} needs no 'apiKey'.")
    known = {option.rstrip("!") for option in tool.options}
    if unknown := sorted(options.keys() - known):
        raise InvalidRequest(f"{name} has no option {', '.join(unknown)[:200]}.")
    if f"{HOSTS_OPTION}!" in tool.options or HOSTS_OPTION in options:
        check_host_names(options.get(HOSTS_OPTION, ""))
    required = {option.rstrip("!") for option in tool.options if option.endswith("!")}
    if missing := sorted(required - {option for option, value in options.items() if value.strip()}):
        raise InvalidRequest(f"{name} needs the option {', '.join(missing)}.")
    if any(len(value) > MAX_OPTION_CHARS for value in options.values()):
        raise InvalidRequest(f"An option may have at most {MAX_OPTION_CHARS} characters.")
    if name == "image.generate" and options.get("provider", IMAGE_PROVIDERS[0]) not in IMAGE_PROVIDERS:
        raise InvalidRequest(f"The option 'provider' must be one of {', '.join(IMAGE_PROVIDERS)}.")
