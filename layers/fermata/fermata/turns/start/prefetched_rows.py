"""Read the rows that START depends on with one request (decision 0177)."""

from collections.abc import Iterator

from fermata.agents.definitions.definition_storage_keys import build_agents_key
from fermata.agents.policy_store import build_policy_key
from fermata.aws.clock import is_valid_id
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.conversations.conversation_rows import build_conversation_key
from fermata.credentials.open_credential import build_credential_key
from fermata.credentials.scope_defaults import build_default_key
from fermata.domain.agent_ids import read_agent_id
from fermata.domain.caller import Caller
from fermata.hosts.host_record import build_host_key
from fermata.limits.count_use import list_count_keys
from fermata.remote_tools.tool_definition import build_tools_key
from fermata.turns.approvals.decision_trail import build_known_tools_key
from fermata.turns.start.idempotency import build_idempotency_key
from fermata.usage.budgets.budget_limits import build_budgets_key
from fermata.webhooks.webhook import build_webhooks_key

CREDENTIAL_GUESS_SECONDS = 3600


class PrefetchedRows:
    """The rows of a prompt, read at once.

    They are its conversation, the scope's default, the credential, budgets, host, policy, known tools, remote tools,
    webhooks, Idempotency-Key and counts, and the tenant's agents if the scope is of one.

    Which credential it will be is known only from the rows. The scope's last one is guessed, and read anew each time.
    If it is another one, `read_item` reads that with a request of its own.
    """

    def __init__(
        self,
        resources: Resources,
        caller: Caller,
        scope: str,
        conversation_id: str,
        idempotency_key: str,
        turn_id: str,
    ) -> None:
        self._resources = resources
        self._guess_key = ("credential guess", caller.tenant, scope)
        self._keys = frozenset(self._list_keys(caller, scope, conversation_id, idempotency_key, turn_id))
        self._items = resources.tables.batch_get_by_keys(self._keys)

    def read_item(self, key: ItemKey) -> Item | None:
        """Return the item as it was read with the others, or read it now."""
        return self._items.get(key) if key in self._keys else self._resources.tables.get_item_by_key(key)

    def remember_credential(self, credential_id: str) -> None:
        """Guess this credential for the scope's next prompt."""
        self._resources.cache.put_value(self._guess_key, CREDENTIAL_GUESS_SECONDS, credential_id)

    def _list_keys(
        self, caller: Caller, scope: str, conversation_id: str, idempotency_key: str, turn_id: str
    ) -> Iterator[ItemKey]:
        resources, tenant = self._resources, caller.tenant
        if is_valid_id(conversation_id):
            yield build_conversation_key(resources, tenant, conversation_id)
        yield build_default_key(resources, tenant, scope)
        yield build_budgets_key(resources, tenant)
        yield build_host_key(resources, tenant)
        yield build_policy_key(resources, tenant)
        yield build_known_tools_key(resources, tenant)
        yield build_tools_key(resources, tenant)
        yield build_webhooks_key(resources, tenant)
        if read_agent_id(scope):
            yield build_agents_key(resources, tenant)
        yield from list_count_keys(resources, caller, turn_id)
        if idempotency_key:
            yield build_idempotency_key(resources, tenant, caller.user, idempotency_key)
        if credential_id := resources.cache.get_value(self._guess_key):
            yield build_credential_key(resources, tenant, credential_id)
