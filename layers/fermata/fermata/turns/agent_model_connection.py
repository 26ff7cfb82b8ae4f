"""Find the model, the server and the key of a turn whose agent has a connection of its own (decision 0361)."""

from pydantic import SecretStr

from fermata.agents.agent import Agent
from fermata.agents.definitions.agent_definition import ConnectionDefinition
from fermata.agents.definitions.configured_agent import ConfiguredAgent
from fermata.agents.definitions.connection_types import CONNECTION_TYPES
from fermata.agents.definitions.tenant_secrets import resolve_secrets
from fermata.aws.dynamodb_items_and_writes import ReadItem
from fermata.aws.resources import Resources
from fermata.credentials import base_urls
from fermata.credentials.credential import Credential
from fermata.credentials.model_choice import ModelChoice
from fermata.credentials.open_credential import CREDENTIAL_NOT_FOUND, read_credential, unreadable_key_error
from fermata.domain.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from fermata.drivers.registry import PROVIDER_MODULES
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint

CONNECTION_CREDENTIAL_PREFIX = "connection:"
"""With which the `credential` of a turn begins whose key is a secret of the tenant and no stored credential."""
_LABEL_CACHE_SECONDS = 60


def choose_agent_model(
    resources: Resources, tenant: str, agent: ConfiguredAgent, read_item: ReadItem | None = None
) -> ModelChoice:
    """Return the model that an agent's definition names, and the credential of its connection.

    Args:
        tenant: The tenant's name.
        agent: The agent, with the properties of the turn.
        read_item: Reads the credential's row; by default with a request.

    Raises:
        Unprocessable: The properties name no model.
        NotFound: The connection's credential does not exist.
        Conflict: Its key can no longer be decrypted, or it is of another provider.
    """
    if not agent.properties.model:
        raise Unprocessable(f"The agent {agent.id} has no model in this turn: its property 'model' came out empty.")
    return choose_connection_model(resources, tenant, agent.definition.connection, agent.properties.model, read_item)


def choose_connection_model(
    resources: Resources,
    tenant: str,
    connection: ConnectionDefinition,
    model: str,
    read_item: ReadItem | None = None,
) -> ModelChoice:
    """Return a model with the credential of a connection.

    Args:
        tenant: The tenant's name.
        connection: The connection, as its agent was compiled with it.
        model: The provider's name of the model.
        read_item: Reads the credential's row; by default with a request.

    Raises:
        NotFound, Conflict: As `choose_agent_model`.
    """
    provider = _get_provider_name(connection)
    if not connection.credential:
        name = CONNECTION_CREDENTIAL_PREFIX + connection.id
        return ModelChoice(credential_id=name, version=0, provider=provider, model=model)
    credential = find_credential_by_name(resources, tenant, connection.credential, read_item)
    if credential is None:
        raise NotFound(CREDENTIAL_NOT_FOUND)
    if credential.provider_id != provider:
        raise Conflict(f"The credential of the connection {connection.id} is of {credential.provider_id}.")
    if not credential.is_current(resources.settings.key_id):
        raise unreadable_key_error(credential)
    return ModelChoice(credential_id=credential.id, version=credential.version, provider=provider, model=model)


def find_credential_by_name(
    resources: Resources, tenant: str, name: str, read_item: ReadItem | None = None
) -> Credential | None:
    """Return the tenant's credential with this id, or the oldest one with this label; None without any.

    Args:
        tenant: The tenant's name.
        name: The id or the label.
        read_item: Reads the row of an id; by default with a request.
    """
    if found := read_credential(resources, tenant, name, read_item):
        return found

    def find_id() -> str | None:
        rows = resources.tables.query_items(
            resources.settings.settings_table, f"t#{tenant}", min_sk="credential#", max_sk="credential#~"
        )
        labelled = [row for row in rows if row["display_label"] == name]
        return str(min(labelled, key=lambda row: row["created_at"])["id"]) if labelled else None

    credential_id = resources.cache.get_or_load(("credential label", tenant, name), _LABEL_CACHE_SECONDS, find_id)
    return read_credential(resources, tenant, credential_id, read_item) if credential_id else None


def open_connection_endpoint(resources: Resources, tenant: str, agent: Agent) -> AuthenticatedEndpoint:
    """Return where the requests of an agent go whose connection has a key of its own.

    Args:
        tenant: The tenant's name.
        agent: The agent of the turn.

    Raises:
        Conflict, InvalidRequest: As `open_own_endpoint`.
    """
    assert isinstance(agent, ConfiguredAgent)
    return open_own_endpoint(resources, tenant, agent.definition.connection)


def open_own_endpoint(resources: Resources, tenant: str, connection: ConnectionDefinition) -> AuthenticatedEndpoint:
    """Return where the requests of a connection go that has a key of its own.

    What sends them checks the address (decision 0041).

    Args:
        tenant: The tenant's name.
        connection: The connection.

    Raises:
        Conflict: A secret is not entered.
        InvalidRequest: The connection has no address.
    """
    kind = CONNECTION_TYPES[connection.type]
    properties = resolve_secrets(resources, tenant, connection.properties)
    url = properties.get("baseURL") or kind.default_url
    url = url or base_urls.get_default_url(resources.settings, _get_provider_name(connection))
    if not url:
        raise InvalidRequest(f"The connection {connection.id} needs the address of its server as 'baseURL'.")
    return AuthenticatedEndpoint(str(url), SecretStr(str(properties.get("apiKey") or "")))


def _get_provider_name(connection: ConnectionDefinition) -> str:
    kind = CONNECTION_TYPES.get(connection.type)
    if kind is None or kind.provider not in PROVIDER_MODULES:
        raise Unprocessable(f"This deployment has no provider for the connection type {connection.type}.")
    return kind.provider
