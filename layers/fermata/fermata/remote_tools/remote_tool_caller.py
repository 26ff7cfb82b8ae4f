"""Call the remote tools of one turn."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.errors import ProviderError
from fermata.domain.tools import ToolExecution, ToolOutput
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.remote_tools.built_in.built_in_call import FoundPhoto, refuse_photo
from fermata.remote_tools.deferred_image_generation import defer_image
from fermata.remote_tools.deployment_tools import DEPLOYMENT_ID_PREFIX
from fermata.remote_tools.manifest_tool_executor import (
    APPROVED,
    AttemptFailed,
    EarlierResults,
    ExecutionClock,
    ManifestTool,
    ResultComesLater,
    ToolErrorCode,
    execute_tool,
)
from fermata.remote_tools.paid_request_report import PaidRequest
from fermata.remote_tools.pinned_tools import load_definitions, read_tool_secrets
from fermata.remote_tools.signed_tool_attempt import RemoteCall, RemoteCallContext, RemoteEndpoint
from fermata.remote_tools.stored_tools import read_registered_tools
from fermata.remote_tools.tool_definition import RegisteredTools, ToolDefinition, ToolSecrets
from fermata.remote_tools.tool_manifest import normalize_tool_name
from fermata.signed_requests.signed_post import open_guarded_connection

TOOL_LIST_CACHE_SECONDS = 60
MAX_ANSWER_SECONDS = 86_400
"""How long the result of a call is awaited that was answered 202."""


class RemoteToolCaller:
    """Calls remote tools for one turn. Its methods may be called from any thread."""

    def __init__(
        self,
        resources: Resources,
        tenant: str,
        build_context: Callable[[str], RemoteCallContext],
        find_earlier_results: Callable[[], EarlierResults],
        get_authorization: Callable[[], str] = lambda: "",
        report_paid_request: Callable[[str, PaidRequest], None] = lambda _effect_key, _paid: None,
        store_photo: Callable[[str, FoundPhoto], Mapping[str, Any]] = lambda _effect_key, photo: refuse_photo(photo),
    ) -> None:
        """Create the caller.

        Args:
            tenant: The turn's tenant.
            build_context: Returns what a tool is told about the call with an effect key.
            find_earlier_results: Returns the results that idempotent calls of the turn have had.
            get_authorization: Returns the Authorization header of the turn's user, for tools that are sent it.
            report_paid_request: Is called with the effect key of a call and a request that it is charged for.
            store_photo: Is called with the effect key of a call and a photo, as in `BuiltInCall`.
        """
        self._resources = resources
        self._tenant = tenant
        self._build_context = build_context
        self._find_earlier_results = find_earlier_results
        self._get_authorization = get_authorization
        self._report_paid_request = report_paid_request
        self._store_photo = store_photo
        self._connections: list[ProviderConnection] = []

    def call(
        self, definition_id: str, arguments: Mapping[str, Any], effect_key: str, *, is_deferred: bool = False
    ) -> ToolOutput:
        """Call a tool and return its outcome; nothing is raised. The output is awaited if the tool has said so.

        Args:
            definition_id: The version that the turn has pinned.
            arguments: Valid arguments.
            effect_key: The id of the call, the same for its repetitions.
            is_deferred: Whether an image is only promised.
        """
        definition = load_definitions(self._resources, self._tenant, [definition_id]).get(definition_id)
        if definition is None or not self._is_still_offered(definition):
            return _refuse(ToolErrorCode.NOT_FOUND, "This tool was removed or turned off after the turn had started.")
        secrets = read_tool_secrets(self._resources, definition)
        if secrets is None:
            message = "The secrets of this tool can no longer be opened. An administrator has to register it again."
            return _refuse(ToolErrorCode.EXECUTION_FAILED, message)
        if is_deferred:
            return defer_image(arguments, effect_key)
        outcome = self._execute(definition, secrets, arguments, effect_key)
        return ToolOutput.awaited(MAX_ANSWER_SECONDS) if isinstance(outcome, ResultComesLater) else outcome

    def abort(self) -> None:
        """End the calls under way, because their results are no longer needed."""
        for connection in tuple(self._connections):
            connection.abort()

    def _execute(
        self, definition: ToolDefinition, secrets: ToolSecrets, arguments: Mapping[str, Any], effect_key: str
    ) -> ToolOutput | ResultComesLater:
        manifest, clock = definition.parsed_manifest, self._resources.clock
        loopback = self._resources.settings.is_loopback_allowed
        with open_guarded_connection(loopback=loopback, seconds=manifest.timeout_seconds) as connection:
            self._connections.append(connection)
            try:
                execution_clock = ExecutionClock(clock.monotonic, make_attempt_sleep(connection))
                tool = ManifestTool(manifest, self._make_attempt(definition, secrets, connection, effect_key))
                earlier = self._find_earlier_results()
                return execute_tool(tool, arguments, execution_clock, policy=APPROVED, earlier=earlier)
            finally:
                self._connections.remove(connection)

    def _make_attempt(
        self, definition: ToolDefinition, secrets: ToolSecrets, connection: ProviderConnection, effect_key: str
    ) -> Callable[[Mapping[str, Any]], Any]:
        context = self._build_context(effect_key)
        if definition.is_built_in:
            from fermata.remote_tools.built_in_attempt import make_built_in_attempt  # few turns have such tools

            report = partial(self._report_paid_request, effect_key)
            store = partial(self._store_photo, effect_key)
            return make_built_in_attempt(
                self._resources, definition, secrets, connection, context, effect_key, report, store
            )
        authorization = self._get_authorization() if definition.forwards_authorization else ""
        headers = secrets.headers | ({"authorization": authorization} if authorization else {})
        endpoint = RemoteEndpoint(definition.endpoint, secrets.signing_secrets, headers)
        name, get_time = definition.parsed_manifest.name, self._resources.clock.time
        return RemoteCall(name, endpoint, effect_key, context, connection, get_time).attempt

    def _is_still_offered(self, definition: ToolDefinition) -> bool:
        """Return whether the tenant still has the tool, in whatever version. The deployment's file does not change.

        The list may be a minute old. One that lacks the tool may be older than the tool, and is read again.
        """
        if definition.id.startswith(DEPLOYMENT_ID_PREFIX):
            return True
        key, name = ("tools", self._tenant), normalize_tool_name(definition.parsed_manifest.name)
        known: RegisteredTools | None = self._resources.cache.get_value(key)
        if known is not None and _is_enabled(known, name):
            return True
        registered = read_registered_tools(self._resources, self._tenant)
        self._resources.cache.put_value(key, TOOL_LIST_CACHE_SECONDS, registered)
        return _is_enabled(registered, name)


def _is_enabled(registered: RegisteredTools, name: str) -> bool:
    tool = registered.tools.get(name)
    return tool is not None and tool.enabled


def make_attempt_sleep(connection: ProviderConnection) -> Callable[[float], None]:
    """Return the wait between two attempts, which ends when the call is aborted."""

    def sleep(seconds: float) -> None:
        try:
            connection.sleep(seconds)
        except ProviderError as error:
            raise AttemptFailed("It was not waited for: the turn is over.") from error

    return sleep


def _refuse(code: ToolErrorCode, message: str) -> ToolOutput:
    return ToolOutput(ok=False, error=message, execution=ToolExecution(code=code.value, retryable=False))
