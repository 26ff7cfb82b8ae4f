"""Create the tools of one toolset: each method sets the fields that all tools of its kind share."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.host_timeouts import HOST_RETRY_POLICY, HOST_TIMEOUT_SECONDS
from fermata.tools.tool import (
    Access,
    Execution,
    NoInput,
    ResultPolicy,
    Risk,
    Tool,
    ToolContext,
    ToolEffects,
    ToolHandler,
    ToolInput,
)

EVERYONE: frozenset[str] = frozenset()
"""The permissions of a tool that every caller may use."""
SNAPSHOT_EFFECTS = ToolEffects(snapshot=True)
"""The effects of a write: it changes what the editor shows."""
DEFAULT_RESULT_POLICY = ResultPolicy()


@value_dataclass(frozen=True)
class DeferredHandler:
    """A handler that is imported at its first call, so that defining a tool does not load what running it needs.

    Attributes:
        path: The handler, as `package.module:function`.
    """

    path: str

    def __call__(self, tool_input: ToolInput, context: ToolContext, /) -> object:
        return self.load()(tool_input, context)

    def load(self) -> ToolHandler[Any]:
        """Import the handler and return it."""
        handler: ToolHandler[Any] = resolve_name(self.path)
        return handler


def never(_snapshot: Any) -> bool:
    """Say of a tool that it cannot work without the tenant's content system."""
    return False


@value_dataclass(frozen=True)
class SnapshotCheck:
    """Whether a snapshot has what a tool needs; imported at its first call, as a `DeferredHandler` is.

    Attributes:
        path: A function of the snapshot, as `package.module:function`. Its result counts as true or false.
    """

    path: str

    def __call__(self, snapshot: Any, /) -> bool:
        return bool(resolve_name(self.path)(snapshot))


@value_dataclass(frozen=True)
class ToolFactory:
    """Creates the tools of one toolset. They belong to the scope of the same name."""

    toolset: str

    def instant_read(
        self,
        *,
        name: str,
        description: str,
        handler: ToolHandler[Any],
        permissions: frozenset[str],
        input_model: type[ToolInput] = NoInput,
        aliases: tuple[str, ...] = (),
        result_policy: ResultPolicy = DEFAULT_RESULT_POLICY,
    ) -> Tool:
        """Create a read that the server answers at once, from data that the turn holds.

        Args:
            name: The canonical name, which the model calls.
            description: What the model reads of the tool.
            handler: Takes the checked input and the context, and returns the data of the result.
            permissions: The capabilities that a caller needs; `EVERYONE` for none.
            input_model: The schema of the input.
        """
        return Tool(
            name=name,
            toolset=self.toolset,
            description=description,
            execution=Execution.SERVER,
            access=Access.READ,
            input_model=input_model,
            handler=handler,
            aliases=aliases,
            permissions=permissions,
            scopes=frozenset({self.toolset}),
            idempotent=True,
            instant=True,
            result_policy=result_policy,
        )

    def host_read(
        self,
        *,
        name: str,
        description: str,
        handler: ToolHandler[Any],
        permissions: frozenset[str],
        input_model: type[ToolInput] = NoInput,
        aliases: tuple[str, ...] = (),
        result_policy: ResultPolicy = DEFAULT_RESULT_POLICY,
        works_without_host: Callable[[Any], bool] = never,
    ) -> Tool:
        """Create a read that the server answers from the tenant's content system.

        Args:
            name: The canonical name, which the model calls.
            description: What the model reads of the tool.
            handler: Takes the checked input and the context, and returns the data of the result.
            permissions: The capabilities that a caller needs; `EVERYONE` for none.
            input_model: The schema of the input.
        """
        return Tool(
            name=name,
            toolset=self.toolset,
            description=description,
            execution=Execution.SERVER,
            access=Access.READ,
            input_model=input_model,
            handler=handler,
            aliases=aliases,
            permissions=permissions,
            scopes=frozenset({self.toolset}),
            timeout_seconds=HOST_TIMEOUT_SECONDS,
            retry=HOST_RETRY_POLICY,
            idempotent=True,
            works_without_host=works_without_host,
            result_policy=result_policy,
        )

    def browser_read(
        self,
        *,
        name: str,
        description: str,
        permissions: frozenset[str],
        input_model: type[ToolInput] = NoInput,
        aliases: tuple[str, ...] = (),
        result_policy: ResultPolicy = DEFAULT_RESULT_POLICY,
        vision_flag: str | None = None,
    ) -> Tool:
        """Create a read that the editor in the browser answers.

        Args:
            name: The canonical name, which the model calls.
            description: What the model reads of the tool.
            permissions: The capabilities that a caller needs; `EVERYONE` for none.
            input_model: The schema of the input.
        """
        return Tool(
            name=name,
            toolset=self.toolset,
            description=description,
            execution=Execution.BROWSER,
            access=Access.READ,
            input_model=input_model,
            aliases=aliases,
            permissions=permissions,
            scopes=frozenset({self.toolset}),
            idempotent=True,
            vision_flag=vision_flag,
            result_policy=result_policy,
        )

    def browser_write(
        self,
        *,
        name: str,
        description: str,
        permissions: frozenset[str],
        input_model: type[ToolInput] = NoInput,
        aliases: tuple[str, ...] = (),
        result_policy: ResultPolicy = DEFAULT_RESULT_POLICY,
        risk: Risk = Risk.MODERATE,
        extra_browser_input: Mapping[str, Any] | None = None,
        members_of_other_generations: frozenset[str] = frozenset(),
    ) -> Tool:
        """Create a write that the editor in the browser runs.

        Args:
            name: The canonical name, which the model calls.
            description: What the model reads of the tool.
            permissions: The capabilities that a caller needs; `EVERYONE` for none.
            input_model: The schema of the input.
        """
        return Tool(
            name=name,
            toolset=self.toolset,
            description=description,
            execution=Execution.BROWSER,
            access=Access.WRITE,
            input_model=input_model,
            aliases=aliases,
            permissions=permissions,
            scopes=frozenset({self.toolset}),
            risk=risk,
            affects=SNAPSHOT_EFFECTS,
            extra_browser_input=extra_browser_input or {},
            members_of_other_generations=members_of_other_generations,
            result_policy=result_policy,
        )
