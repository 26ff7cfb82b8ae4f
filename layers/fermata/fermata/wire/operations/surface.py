"""Collect every operation of the HTTP surface.

An operation is one record in one of these modules. Its function binds a handler to it with a `Router`; the OpenAPI
document and the routes in template.yaml (`make template`) are generated from it.
"""

from fermata.wire.operations import (
    agent_definitions,
    agents,
    api_keys,
    approvals,
    callbacks,
    chat_clients,
    cms_agent,
    content,
    content_delivery,
    content_forms,
    content_git,
    content_media,
    content_members,
    content_search,
    content_sync,
    conversations,
    credentials,
    defaults,
    editor,
    generate,
    mcp,
    openai,
    planner,
    policies,
    privacy,
    prompt_queue,
    remote_tools,
    service,
    studio,
    turns,
    usage,
    webhooks,
)
from fermata.wire.operations.operation import BaseOperation

_MODULES = (
    turns, prompt_queue, callbacks, approvals, policies, agents, agent_definitions, editor, mcp, conversations,
    defaults, credentials, api_keys, remote_tools, planner, chat_clients, openai, cms_agent, studio, generate, privacy,
    usage, service, webhooks, content, content_media, content_search, content_delivery, content_members,
    content_git, content_forms, content_sync,
)  # fmt: skip

OPERATIONS: tuple[BaseOperation, ...] = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, BaseOperation)
)
