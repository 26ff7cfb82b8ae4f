"""Call the HTTP API on credentials, keys, tools, models, defaults and usage, one method per operation."""

from fermata_client.service.content_client import ContentClient
from fermata_client.service.json_members import require_member, without_none
from fermata_client.service.json_types import JsonObject
from fermata_client.service.paths import path_of


class SettingsClient(ContentClient):
    """The part of `FermataClient` that concerns no conversation. Its methods raise and omit as those do."""

    def list_credentials(self) -> list[JsonObject]:
        """Return the caller's own credentials, newest first. They never contain a key."""
        return require_member(self._request("GET", path_of("credentials")), "credentials", list)

    def create_credential(
        self, provider_id: str, label: str, *, api_key: str | None = None, base_url: str | None = None
    ) -> JsonObject:
        """Store a provider's key, or with `base_url` the address of a server and its key, if it needs one."""
        body = {
            "providerId": provider_id,
            "authMode": "apiKey" if base_url is None else "baseUrl",
            "displayLabel": label,
            "apiKey": api_key,
            "baseUrl": base_url,
        }
        return require_member(self._request("POST", path_of("credentials"), without_none(body)), "credential", dict)

    def update_credential(
        self,
        credential_id: str,
        *,
        label: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> JsonObject:
        """Change a credential. An empty key removes the key, where the credential has an address."""
        body = without_none({"displayLabel": label, "apiKey": api_key, "baseUrl": base_url})
        return require_member(self._request("PUT", path_of("credentials", credential_id), body), "credential", dict)

    def delete_credential(self, credential_id: str) -> None:
        """Delete a credential. It is refused (409) while a scope's default points at it."""
        self._request("DELETE", path_of("credentials", credential_id))

    def test_credential(self, credential_id: str) -> JsonObject:
        """Ask the provider now: `{ok: true, modelCount}` or `{ok: false, error}`."""
        return self._request("POST", path_of("credentials", credential_id, "test"))

    def list_api_keys(self) -> list[JsonObject]:
        """Return the tenant's API keys without their secrets, newest first."""
        return require_member(self._request("GET", path_of("api-keys")), "apiKeys", list)

    def create_api_key(
        self,
        label: str,
        capabilities: list[str] | None = None,
        *,
        conversation: JsonObject | None = None,
        scopes: list[str] | None = None,
        expires_in_seconds: int | None = None,
    ) -> JsonObject:
        """Create a key: `{apiKey, key}`. The text in `key` is not shown again.

        Args:
            label: What people call it.
            capabilities: What a server may do.
            conversation: In place of these, the rules of a key of the Conversation API.
            scopes: The scopes it is for; None for all.
            expires_in_seconds: Its lifetime; None for one that does not end.
        """
        body = {
            "label": label,
            "capabilities": capabilities,
            "conversation": conversation,
            "scopes": scopes,
            "expiresInSeconds": expires_in_seconds,
        }
        return self._request("POST", path_of("api-keys"), without_none(body))

    def change_api_key(
        self, key_id: str, *, label: str | None = None, conversation: JsonObject | None = None
    ) -> JsonObject:
        """Change the label or the rules of a key of the Conversation API. Rules that are left out stay."""
        body = without_none({"label": label, "conversation": conversation})
        return require_member(self._request("PATCH", path_of("api-keys", key_id), body), "apiKey", dict)

    def rotate_api_key(self, key_id: str, *, overlap_seconds: int | None = None) -> JsonObject:
        """Give a key a new secret: `{apiKey, key}`. The old one stays valid for a day, or `overlap_seconds`."""
        body = without_none({"overlapSeconds": overlap_seconds})
        return self._request("POST", path_of("api-keys", key_id, "rotate"), body)

    def revoke_api_key(self, key_id: str) -> None:
        """Revoke a key. Revoking again succeeds."""
        self._request("DELETE", path_of("api-keys", key_id))

    def list_approvals(self, *, cursor: str | None = None) -> JsonObject:
        """Return a page of the tool calls that wait for a decision: `{approvals, nextCursor?}`."""
        params = without_none({"limit": 100, "cursor": cursor})
        return self._request("GET", path_of("approvals"), params=params)

    def get_approval(self, approval_id: str) -> JsonObject:
        """Return an approval, while it waits with the whole input of its call."""
        return require_member(self._request("GET", path_of("approvals", approval_id)), "approval", dict)

    def decide_approval(
        self,
        approval_id: str,
        *,
        approved: bool,
        reason: str = "",
        changed_input: JsonObject | None = None,
        input_hash: str = "",
    ) -> JsonObject:
        """Approve or deny a call. With `input_hash` it is refused (409) if the call has another input."""
        body = {"approved": approved, "reason": reason, "input": changed_input, "inputHash": input_hash}
        response = self._request("POST", path_of("approvals", approval_id), without_none(body))
        return require_member(response, "approval", dict)

    def decide_approvals(self, decisions: list[JsonObject]) -> list[JsonObject]:
        """Make several decisions, each with `approvalId`. Each result has the `status` of its own."""
        response = self._request("POST", path_of("approvals"), {"decisions": decisions})
        return require_member(response, "results", list)

    def list_decisions(self, *, cursor: str | None = None, limit: int = 50) -> JsonObject:
        """Return a page of what was decided, the newest first: `{decisions, nextCursor?}`."""
        params = without_none({"limit": limit, "cursor": cursor})
        return self._request("GET", path_of("approval-decisions"), params=params)

    def get_approval_policy(self) -> JsonObject:
        """Return which calls need a person in the workspace."""
        return self._request("GET", path_of("approval-policy"))

    def set_approval_policy(self, policy: JsonObject) -> JsonObject:
        """Replace the policy, for turns that start from now on."""
        return self._request("PUT", path_of("approval-policy"), policy)

    def list_queued_prompts(self, conversation_id: str) -> list[JsonObject]:
        """Return the prompts that wait in a conversation, and what became of those of the last days."""
        return require_member(self._request("GET", path_of("conversations", conversation_id, "queue")), "prompts", list)

    def edit_queued_prompt(
        self, conversation_id: str, prompt_id: str, text: str, *, version: int | None = None
    ) -> JsonObject:
        """Replace the text of a prompt that waits. With `version` it is refused (409) if somebody has changed it."""
        body = without_none({"prompt": text, "version": version})
        path = path_of("conversations", conversation_id, "queue", prompt_id)
        return require_member(self._request("PUT", path, body), "prompt", dict)

    def drop_queued_prompt(self, conversation_id: str, prompt_id: str) -> JsonObject:
        """Drop a prompt that waits."""
        path = path_of("conversations", conversation_id, "queue", prompt_id)
        return require_member(self._request("DELETE", path), "prompt", dict)

    def list_remote_tools(self) -> list[JsonObject]:
        """Return the tenant's remote tools without the values of their headers, by name."""
        return require_member(self._request("GET", path_of("tools"), base_path=""), "tools", list)

    def register_remote_tool(self, registration: JsonObject) -> JsonObject:
        """Register a tool: `{tool, signingSecret?}`. `registration` has `manifest`, `endpoint` and `staticHeaders`."""
        return self._request("POST", path_of("tools", "register"), registration, base_path="")

    def change_remote_tool(self, name: str, change: JsonObject) -> JsonObject:
        """Change a tool: `{tool, signingSecret?}`. `change` has `enabled`, `staticHeaders`, `rotateSigningSecret`."""
        return self._request("PATCH", path_of("tools", name), change, base_path="")

    def turn_on_built_in_tool(self, name: str, *, api_key: str | None = None, options: dict[str, str]) -> JsonObject:
        """Turn a built-in tool on, or replace its key: `{tool}`."""
        body = without_none({"apiKey": api_key, "options": options or None})
        return self._request("PUT", path_of("tools", name), body, base_path="")

    def remove_remote_tool(self, name: str) -> None:
        """Remove a tool."""
        self._request("DELETE", path_of("tools", name), base_path="")

    def list_webhooks(self) -> list[JsonObject]:
        """Return the tenant's webhooks without their secrets, the oldest first."""
        return require_member(self._request("GET", path_of("webhooks")), "webhooks", list)

    def add_webhook(self, address: str, *, events: list[str], may_answer: bool = False) -> JsonObject:
        """Register a webhook: `{webhook, signingSecret}`. The secret is not shown again."""
        body = {"url": address, "events": events or None, "mayAnswer": may_answer}
        return self._request("POST", path_of("webhooks"), without_none(body))

    def remove_webhook(self, webhook_id: str) -> None:
        """Remove a webhook."""
        self._request("DELETE", path_of("webhooks", webhook_id))

    def list_deliveries(self, webhook_id: str) -> list[JsonObject]:
        """Return what was delivered to a webhook and what was not, the newest first."""
        return require_member(self._request("GET", path_of("webhooks", webhook_id, "deliveries")), "deliveries", list)

    def redeliver_event(self, webhook_id: str, delivery_id: str) -> None:
        """Deliver an event again."""
        self._request("POST", path_of("webhooks", webhook_id, "deliveries", delivery_id, "redeliver"))

    def start_privacy_job(self, kind: str, subject: JsonObject) -> JsonObject:
        """Start one of `exports` or `erasures`. `subject` has one of `conversationId`, `userId` and `tenant`."""
        return require_member(self._request("POST", path_of(kind), subject), "job", dict)

    def show_privacy_job(self, kind: str, job_id: str) -> JsonObject:
        """Return the state of one of the `exports` or `erasures`."""
        return require_member(self._request("GET", path_of(kind, job_id)), "job", dict)

    def download_export_file(self, address: str) -> bytes:
        """Return a file of an export, from one of the addresses in its `downloads`. They are valid for ten minutes."""
        return self._transport.download(address)

    def list_models(self, provider_id: str, credential_id: str) -> list[JsonObject]:
        """Return the models that a credential opens, in display order."""
        path = path_of("providers", provider_id, "models")
        return require_member(self._request("GET", path, params={"credentialId": credential_id}), "models", list)

    def list_scopes(self) -> list[str]:
        """Return the names of the scopes, in display order."""
        scopes = require_member(self._request("GET", path_of("scopes")), "scopes", list)
        return [str(scope["name"]) for scope in scopes]

    def get_defaults(self) -> JsonObject:
        """Return `{credentialId, modelId}` of each scope that has a default."""
        return require_member(self._request("GET", path_of("defaults")), "defaults", dict)

    def set_default(self, scope: str, credential_id: str, model_id: str) -> JsonObject:
        body = {"credentialId": credential_id, "modelId": model_id}
        return require_member(self._request("PUT", path_of("defaults", scope), body), "default", dict)

    def clear_default(self, scope: str) -> None:
        """Remove a scope's default. Clearing again succeeds."""
        self._request("DELETE", path_of("defaults", scope))

    def get_audit(self, *, since: str | None = None, tz: str | None = None) -> JsonObject:
        """Return the tenant's usage by user, scope, model and day (in the time zone `tz`), since an ISO instant."""
        return self._request("GET", path_of("audit"), params=without_none({"since": since, "tz": tz}))

    def list_agent_definitions(self) -> JsonObject:
        """Return the workspace's own agents, with the version of their list."""
        return self._request("GET", path_of("agent-definitions"))

    def get_agent_definition(self, agent_id: str) -> JsonObject:
        """Return one of the workspace's own agents with its compiled definition."""
        return self._request("GET", path_of("agent-definitions", agent_id))

    def push_agents(self, files: JsonObject) -> JsonObject:
        """Replace the workspace's own agents by what the files define. Return what has changed."""
        return self._request("PUT", path_of("agent-definitions"), files)

    def remove_agent_definition(self, agent_id: str) -> None:
        """Remove one of the workspace's own agents. Turns that run with it go on."""
        self._request("DELETE", path_of("agent-definitions", agent_id))

    def list_secrets(self) -> list[JsonObject]:
        """Return the names of the secrets that agents can name."""
        return require_member(self._request("GET", path_of("secrets")), "secrets", list)

    def set_secret(self, name: str, value: str) -> JsonObject:
        """Enter or replace a secret. Its value cannot be read again."""
        return require_member(self._request("PUT", path_of("secrets", name), {"value": value}), "secret", dict)

    def remove_secret(self, name: str) -> None:
        """Remove a secret."""
        self._request("DELETE", path_of("secrets", name))
