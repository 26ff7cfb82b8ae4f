"""Issue tokens with which a server posts results of one turn without a session, and accept them (decision 0330).

    t#<tenant>#turn#<turn>   k#<sha256>   whose rights the token has, for which requests, and until when

The row expires with the token. Only the hash of the secret is stored.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Collection

from fermata.aws.api_key_rows import is_api_key_live
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Conflict, Unauthorized
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.read.turn_status import read_open_turn_status
from fermata.turns.turn import build_turn_pk, find_turn_for_caller

DEFAULT_CALLBACK_SECONDS = 3600
MAX_CALLBACK_SECONDS = 7 * 86_400
_SECRET_BYTES = 32
_TOKEN = re.compile(r"fmc\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{43})")
_CAPABILITIES = frozenset({Capability.CHAT, Capability.WRITE})


@value_dataclass(frozen=True)
class CallbackToken:
    """A token that was issued. `text` cannot be read again."""

    text: str
    expires_at: str


@value_dataclass(frozen=True)
class CallbackGrant:
    """What a valid token allows: to answer these requests of one turn, or any of it, with the rights of `caller`."""

    caller: Caller
    bridge_id: str
    request_ids: tuple[str, ...]

    def allows(self, bridge_id: str, request_id: str) -> bool:
        return bridge_id == self.bridge_id and (not self.request_ids or request_id in self.request_ids)


def issue_callback_token(
    resources: Resources,
    caller: Caller,
    bridge_id: str,
    *,
    request_ids: Collection[str] = (),
    seconds: int | None = None,
) -> CallbackToken:
    """Issue a token for a turn that runs.

    Args:
        caller: The turn's user, or one who may manage turns. The token has no more rights than this caller.
        bridge_id: The turn's id.
        request_ids: The tool requests that may be answered with it; none for all of the turn.
        seconds: Its lifetime; it never outlives the turn.

    Raises:
        NotFound: There is no such turn, or it is not the caller's.
        Conflict: The turn has ended.
    """
    turn = find_turn_for_caller(resources, caller, bridge_id)
    if read_open_turn_status(resources, turn) is None:
        raise Conflict("This turn has ended, so no result of it is waited for.")
    now = int(resources.clock.time())
    expires = min(now + min(seconds or DEFAULT_CALLBACK_SECONDS, MAX_CALLBACK_SECONDS), turn.expires)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    item = {
        "pk": turn.pk,
        "sk": _build_sort_key(secret),
        "v": 1,
        "user": turn.user,
        "capabilities": json.dumps(sorted(caller.capabilities & _CAPABILITIES)),
        "requests": json.dumps(sorted(request_ids)),
        "expires": expires,
        "ttl": expires,
        **({"apiKey": caller.api_key} if caller.api_key else {}),
    }
    resources.tables.write_items(Put(resources.settings.bridges_table, item, if_absent=True))
    return CallbackToken(f"fmc.{turn.tenant}.{turn.id}.{secret}", iso_from_epoch(expires))


def open_callback_token(resources: Resources, text: str) -> CallbackGrant:
    """Return what a token allows.

    Raises:
        Unauthorized: It is no token, was never issued, or has expired, or the API key that asked for it was revoked.
    """
    parts = _TOKEN.fullmatch(text)
    if parts is None:
        raise _refuse("malformed")
    tenant, bridge_id, secret = parts.groups()
    pk = build_turn_pk(tenant, bridge_id)
    item = resources.tables.get_item(resources.settings.bridges_table, pk, _build_sort_key(secret))
    if item is None:
        raise _refuse("unknown")
    if item["expires"] <= resources.clock.time():
        raise _refuse("expired")
    if item.get("apiKey") and not is_api_key_live(resources, tenant, item["apiKey"]):
        raise _refuse("api_key")
    caller = Caller(tenant=tenant, user=item["user"], capabilities=frozenset(json.loads(item["capabilities"])))
    return CallbackGrant(caller, bridge_id, tuple(json.loads(item["requests"])))


def require_grant(grant: CallbackGrant, bridge_id: str, request_id: str) -> None:
    """Check that a token is for this request.

    Args:
        grant: What the token allows.
        bridge_id: The turn that is answered.
        request_id: The request that is answered.

    Raises:
        Unauthorized: It is for others.
    """
    if not grant.allows(bridge_id, request_id):
        raise _refuse("other_request")


def _build_sort_key(secret: str) -> str:
    return f"k#{hashlib.sha256(secret.encode()).hexdigest()}"


def _refuse(reason: str) -> Unauthorized:
    return Unauthorized("Unauthorized: this callback token is not valid for the request.", reason=reason)
