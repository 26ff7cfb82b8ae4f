"""Keep the captcha of a space: its service, the public key that a page shows, and the sealed secret (decision 0533).

g#captcha   the captcha
"""

from enum import StrEnum
from typing import Any

from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Delete,
    Item,
    ItemKey,
    Put,
    TransactionCanceled,
    build_versioned_delete,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.content.content_space import SpaceKey, read_space
from fermata.domain.base import RecordModel
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

CAPTCHA_SORT_KEY = "g#captcha"
_CHANGED_MEANWHILE = "Somebody else has just changed the captcha of this site. Try again."


class CaptchaService(StrEnum):
    """A service that checks captchas."""

    TURNSTILE = "turnstile"
    HCAPTCHA = "hcaptcha"
    RECAPTCHA = "recaptcha"


class CaptchaKeys(RecordModel):
    """The captcha of a space.

    Attributes:
        site_key: The public key, with which a page draws the captcha.
    """

    service: CaptchaService
    site_key: str
    version: int = 1

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people and pages."""
        return {"service": self.service.value, "siteKey": self.site_key}


def put_captcha(
    resources: Resources, space: SpaceKey, service: CaptchaService, site_key: str, secret: str | None
) -> CaptchaKeys:
    """Say which captcha the forms of a space have.

    Args:
        resources: Of the process.
        space: The space.
        service: Who checks it.
        site_key: Its public key.
        secret: Its secret; None keeps that of the same service and public key.

    Raises:
        NotFound: There is no such space.
        InvalidRequest: There is no secret to keep.
        Conflict: Somebody else has changed it at the same moment.
    """
    read_space(resources, space)
    before = _read_item(resources, space)
    keys = CaptchaKeys(service=service, site_key=site_key, version=before["version"] + 1 if before else 1)
    is_same = before is not None and _parse_item(before).to_view() == keys.to_view()
    if secret:
        sealed = resources.vault.seal_secret(
            secret, purpose="captcha-secret", tenant=space.tenant, name=_name_seal(space, keys)
        )
    elif before is not None and is_same:
        sealed = bytes(before["sealed"])
    else:
        raise InvalidRequest("'secret' is missing: a new captcha needs that of its service.")
    key = _build_key(resources, space)
    item = {"pk": key.pk, "sk": key.sk, "v": 1, **keys.model_dump(mode="json"), "sealed": sealed}
    _write(resources, build_versioned_put(key.table, item, before["version"] if before else None))
    return keys


def read_captcha(resources: Resources, space: SpaceKey) -> CaptchaKeys | None:
    """Return the captcha of a space; None if it has none."""
    item = _read_item(resources, space)
    return _parse_item(item) if item else None


def open_captcha_secret(resources: Resources, space: SpaceKey, keys: CaptchaKeys) -> str:
    """Return the secret of a captcha.

    Args:
        resources: Of the process.
        space: The space.
        keys: Its captcha, as it was read.

    Raises:
        NotFound: It was removed meanwhile, or its secret can no longer be opened.
    """
    item = _read_item(resources, space)
    if item is None:
        raise NotFound("The captcha of this site was removed.")
    try:
        return resources.vault.open_secret(
            bytes(item["sealed"]), purpose="captcha-secret", tenant=space.tenant, name=_name_seal(space, keys)
        )
    except SecretUndecryptable as error:
        raise NotFound("The secret of the captcha can no longer be opened. Enter it again.") from error


def delete_captcha(resources: Resources, space: SpaceKey) -> None:
    """Forget the captcha of a space, with its secret. Forms that ask for one take nothing from then on.

    Raises:
        Conflict: Somebody else has changed it at the same moment.
    """
    before = _read_item(resources, space)
    if before is not None:
        _write(resources, build_versioned_delete(_build_key(resources, space), before["version"]))


def _write(resources: Resources, write: Put | Delete) -> None:
    try:
        resources.tables.write_items(write)
    except (ConditionFailed, TransactionCanceled):
        raise Conflict(_CHANGED_MEANWHILE) from None


def _name_seal(space: SpaceKey, keys: CaptchaKeys) -> str:
    """Bind a secret to the captcha for which it was entered."""
    return f"captcha {space.site} {space.environment} {keys.service} {keys.site_key}"


def _build_key(resources: Resources, space: SpaceKey) -> ItemKey:
    return ItemKey(resources.settings.content_table, space.pk, CAPTCHA_SORT_KEY)


def _read_item(resources: Resources, space: SpaceKey) -> Item | None:
    return resources.tables.get_item_by_key(_build_key(resources, space))


def _parse_item(item: Item) -> CaptchaKeys:
    return CaptchaKeys.model_validate({name: item[name] for name in ("service", "site_key", "version")})
