"""Run a real turn through a deployed stack, answered by its own test model."""

import time
from collections.abc import Iterator
from contextlib import suppress

import httpx

from fermata_client.service.client import FermataClient
from fermata_client.service.errors import FermataClientError
from fermata_client.service.transport import API_BASE_PATH
from fermata_client.stack.doctor.finding import Finding
from fermata_client.stack.resources import StackLocation, open_stack_resources

CHECK_TENANT = "fermata-doctor"
ISSUER = "https://doctor.fermata.invalid"
AUDIENCE = "fermata"
TOKEN_SECONDS = 600
MODEL = "test-model"
EXPECTED_TEXT = "This deployment works."
EXAMINED_SCOPE = "data"
TIMEOUT_SECONDS = 30.0


def check_turn(location: StackLocation, url: str) -> Iterator[Finding]:
    """Ask the service whether it answers, and run a turn in a tenant of the examination's own."""
    health = _check_health(url)
    yield health
    if health.level != "ok":
        return
    token = sign_examination_token(location)
    with FermataClient(url, token) as client:
        try:
            yield _run_turn(client, url, token)
        except FermataClientError as error:
            yield Finding("problem", "turn", f"The turn failed: {error}")


def _check_health(url: str) -> Finding:
    try:
        response = httpx.get(f"{url}/version", timeout=TIMEOUT_SECONDS)
        response.raise_for_status()
        version = response.json()
    except (httpx.HTTPError, ValueError) as error:
        return Finding("problem", "service", f"{url} does not answer: {error}")
    return Finding("ok", "service", f"{url} answers: version {version.get('version')}, stage {version.get('stage')}.")


def sign_examination_token(location: StackLocation) -> str:
    """Sign a token of the examination's tenant, which is added where there is none yet."""
    import jwt

    from fermata.domain.caller import Capability
    from fermata.domain.errors import Conflict
    from fermata.wire.auth import tenant_store

    resources = open_stack_resources(location)
    with suppress(Conflict):
        tenant_store.add_tenant(resources, CHECK_TENANT, issuer=ISSUER, audience=AUDIENCE)
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "doctor",
        "iat": now,
        "exp": now + TOKEN_SECONDS,
        "capabilities": [str(Capability.CHAT), str(Capability.PROVIDERS)],
    }
    return jwt.encode(claims, tenant_store.open_newest_secret(resources, CHECK_TENANT), "HS256")


def _run_turn(client: FermataClient, url: str, token: str) -> Finding:
    address = f"{url}{API_BASE_PATH}/{MODEL}"
    label = f"Doctor {time.time_ns()}"
    credential = client.create_credential("openai-compatible", label, api_key=token, base_url=address)
    try:
        conversation = client.create_conversation(EXAMINED_SCOPE, credential_id=str(credential["id"]), model_id=MODEL)
        try:
            return _judge_turn(client, str(conversation["id"]))
        finally:
            client.delete_conversation(str(conversation["id"]))
    finally:
        _delete_credential(client, str(credential["id"]))


def _delete_credential(client: FermataClient, credential_id: str) -> None:
    """Delete the credential of the examination, also where it has become a scope's default."""
    for scope, default in client.get_defaults().items():
        if isinstance(default, dict) and default.get("credentialId") == credential_id:
            client.clear_default(scope)
    client.delete_credential(credential_id)


def _judge_turn(client: FermataClient, conversation_id: str) -> Finding:
    begun, first_text_at, text = time.monotonic(), 0.0, ""
    last: dict[str, object] = {}
    with client.start_turn(EXAMINED_SCOPE, "Do you work?", conversation_id=conversation_id) as events:
        for event in events:
            last = dict(event)
            if event.get("type") == "text":
                first_text_at = first_text_at or time.monotonic()
                text += str(event.get("text", ""))
    if last.get("type") != "done":
        return Finding("problem", "turn", f"The turn ended with {last.get('type')}: {last.get('message', '')}")
    if text != EXPECTED_TEXT:
        return Finding("problem", "turn", f"The test model's text arrived as {text!r}.")
    times = f"in {time.monotonic() - begun:.1f} s, its first text after {first_text_at - begun:.1f} s"
    return Finding("ok", "turn", f"A turn ran to its end {times}.")
