"""Keep where usage is reported: one address for a deployment, with the sealed secret that signs what is sent.

billing   receiver   address, sealed secret, when it was set (settings table)
"""

from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Item,
    ItemKey,
    build_versioned_delete,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.errors import Conflict, NotFound
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.signed_requests.signature import make_signing_secret

_OPERATOR = "billing"
"""In the context of the seal it stands for a tenant: the receiver is of the deployment, and no tenant has this id."""


@value_dataclass(frozen=True)
class BillingReceiver:
    """Where usage is reported.

    Attributes:
        sealed: The signing secret, as the vault has sealed it under `seal_name`.
        version: Changes with each address.
    """

    url: str
    sealed: bytes
    seal_name: str
    set_at: str
    version: int = 1

    def to_view(self) -> dict[str, Any]:
        """Return what operators see, without the secret."""
        return {"url": self.url, "setAt": self.set_at}


def read_billing_receiver(resources: Resources) -> BillingReceiver | None:
    """Return where usage is reported; None where it is reported to nobody."""
    item = resources.tables.get_item_by_key(_build_key(resources))
    if item is None:
        return None
    return BillingReceiver(item["url"], bytes(item["sealed"]), item["seal_name"], item["set_at"], item["version"])


def set_billing_receiver(resources: Resources, url: str) -> str:
    """Report usage to an address from now on, and return the secret that signs. What waits goes there too.

    Args:
        resources: Of the deployment.
        url: An https address of a billing system, or of what feeds one.

    Raises:
        AddressRefused: Nothing may be sent there.
        Conflict: Another operator has just changed it.
    """
    loopback = resources.settings.is_loopback_allowed
    UrlGuard(loopback=loopback, on_refusal=log_refused_address).check_url_and_host(url)
    before, secret, name = read_billing_receiver(resources), make_signing_secret(), new_id(12)
    sealed = resources.vault.seal_secret(secret, purpose="tool-secret", tenant=_OPERATOR, name=name)
    item: Item = {"pk": "billing", "sk": "receiver", "v": 1, "url": url, "sealed": sealed, "seal_name": name}
    item |= {"set_at": resources.clock.now_iso(), "version": before.version + 1 if before else 1}
    try:
        table = resources.settings.settings_table
        resources.tables.write_items(build_versioned_put(table, item, before.version if before else None))
    except ConditionFailed:
        raise Conflict("The receiver has just been changed by another command. Look at it, and try again.") from None
    return secret


def remove_billing_receiver(resources: Resources) -> None:
    """Report usage to nobody from now on. What waits is kept, and goes to the next receiver.

    Raises:
        NotFound: There is none.
        Conflict: Another operator has just changed it.
    """
    before = read_billing_receiver(resources)
    if before is None:
        raise NotFound("Usage is reported to nobody.")
    try:
        resources.tables.write_items(build_versioned_delete(_build_key(resources), before.version))
    except ConditionFailed as refused:
        if refused.item is not None:  # none: it is deleted, and only the response of that was lost
            raise Conflict("The receiver has just been changed by another command. Look at it.") from None


def open_receiver_secret(resources: Resources, receiver: BillingReceiver) -> str:
    """Return the secret that signs; empty if it can no longer be opened."""
    try:
        return resources.vault.open_secret(
            receiver.sealed, purpose="tool-secret", tenant=_OPERATOR, name=receiver.seal_name
        )
    except SecretUndecryptable:
        return ""


def _build_key(resources: Resources) -> ItemKey:
    return ItemKey(resources.settings.settings_table, "billing", "receiver")
