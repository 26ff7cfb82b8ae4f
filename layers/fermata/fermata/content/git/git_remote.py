"""Keep the Git repository of a space: its address, its branch, its sealed password, and what was synchronised last.

g#remote   the repository
"""

import json
import re
from contextlib import suppress
from typing import Any, NamedTuple

from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Item,
    ItemKey,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.aws.vault import SecretUndecryptable
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.git.git_errors import GitAccessRefused
from fermata.domain.base import RecordModel
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.drivers.transport.url_guard import UrlGuard

REMOTE_SORT_KEY = "g#remote"
MAX_PASSWORD_BYTES = 2000
_FORGOTTEN_SECONDS = 86_400
_CHANGED_MEANWHILE = "Somebody else has just changed the repository of this site. Try again."
_SYNC_FIELDS = {"commit", "base", "sent_commit", "sent_base", "synced_at"}
_BRANCH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,5}")
_ROOT_FOLDER = re.compile(r"(?:[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}(?:/[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}){0,8})?")


class SyncPoint(NamedTuple):
    """A commit, and the files of the project in it."""

    commit: str
    files: dict[str, str]


class GitRemote(RecordModel):
    """A repository.

    Attributes:
        root: The folder of the project in it; empty for the whole repository.
        username: With which the password is sent; empty for a repository that asks for none.
        commit: The commit with which the space was synchronised last.
        base: The blob with the files of that commit.
        sent_commit: One that was pushed since, and of which it is not known whether it has arrived (decision 0661).
        sent_base: The blob with the files of that one.
        synced_at: When that was.
    """

    url: str
    branch: str = "main"
    root: str = ""
    username: str = ""
    version: int = 1
    commit: str = ""
    base: str = ""
    sent_commit: str = ""
    sent_base: str = ""
    synced_at: str = ""

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people."""
        return self.to_known(exclude=frozenset({"base", "sent_commit", "sent_base"}))


def put_git_remote(
    resources: Resources,
    space: SpaceKey,
    remote: GitRemote,
    password: str | None,
) -> GitRemote:
    """Say which repository belongs to a space. What was synchronised stays known while the address does.

    Args:
        resources: Of the process.
        space: The space.
        remote: The repository.
        password: The password or token; None keeps that of the same address and user.

    Raises:
        InvalidRequest: The address, the branch or the folder is none; or the password is too long.
        AddressRefused: The address may not be reached.
        Conflict: Somebody else has changed it at the same moment.
    """
    read_space(resources, space)
    _check_remote(resources, remote, password)
    row = resources.tables.get_item_by_key(_remote_key(resources, space))
    before = row if row is not None and not row.get("forgotten") else None
    known = _parse_item(before) if before else None
    same_place = known is not None and (known.url, known.branch, known.root) == (remote.url, remote.branch, remote.root)
    kept = known.model_dump(include=_SYNC_FIELDS) if known and same_place else {}
    stored = remote.model_copy(update={**kept, "version": row["version"] + 1 if row else 1})
    item = _make_item(resources, space, stored)
    if password:
        item["sealed"] = resources.vault.seal_secret(
            password, purpose="git-password", tenant=space.tenant, name=_name_seal(space, remote)
        )
    elif before and "sealed" in before and known and (known.url, known.username) == (remote.url, remote.username):
        item["sealed"] = before["sealed"]
    _store(resources, item, row["version"] if row else None)
    return stored


def _check_remote(resources: Resources, remote: GitRemote, password: str | None) -> None:
    guard = UrlGuard(loopback=resources.settings.is_loopback_allowed, on_refusal=log_refused_address)
    guard.check_url_and_host(remote.url)
    if not _BRANCH_NAME.fullmatch(remote.branch) or ".." in remote.branch or remote.branch.endswith((".lock", ".")):
        raise InvalidRequest("'branch' is not the name of a branch.")
    if not _ROOT_FOLDER.fullmatch(remote.root):
        raise InvalidRequest("'root' is a folder of the repository, such as apps/web.")
    if any(not letter.isprintable() or letter == ":" for letter in remote.username):
        raise InvalidRequest("'username' has neither a colon nor characters that are not printed.")
    if password and len(password.encode()) > MAX_PASSWORD_BYTES:
        raise InvalidRequest(f"A password has at most {MAX_PASSWORD_BYTES} bytes.")


def read_git_remote(resources: Resources, space: SpaceKey) -> GitRemote:
    """Return the repository of a space.

    Raises:
        NotFound: It has none.
    """
    item = _read_item(resources, space)
    if item is None:
        raise NotFound(f"The site {space.name} is not connected to a Git repository.")
    return _parse_item(item)


def describe_git_remote(resources: Resources, space: SpaceKey) -> dict[str, Any] | None:
    """Return the JSON form of a space's repository, which says whether it has a password; None without one."""
    item = _read_item(resources, space)
    return _parse_item(item).to_view() | {"hasPassword": "sealed" in item} if item else None


def open_git_password(resources: Resources, space: SpaceKey, remote: GitRemote) -> str:
    """Return the password of a repository; empty for none.

    Raises:
        GitAccessRefused: It can no longer be opened.
    """
    item = _read_item(resources, space)
    if item is None or "sealed" not in item:
        return ""
    try:
        return resources.vault.open_secret(
            bytes(item["sealed"]), purpose="git-password", tenant=space.tenant, name=_name_seal(space, remote)
        )
    except SecretUndecryptable as error:
        raise GitAccessRefused("The password of the repository can no longer be opened. Enter it again.") from error


def delete_git_remote(resources: Resources, space: SpaceKey) -> None:
    """Forget the repository of a space, with its password. Content stays as it is.

    Its row stays for a day, so that no late copy of the write that has connected it does so again (decision 0615).

    Raises:
        Conflict: Somebody else has changed it at the same moment.
    """
    before = _read_item(resources, space)
    if before is None:
        return
    key, until = _remote_key(resources, space), int(resources.clock.time()) + _FORGOTTEN_SECONDS
    forgotten: Item = {"pk": key.pk, "sk": key.sk, "v": 1, "version": before["version"] + 1, "forgotten": True}
    forgotten["ttl"] = until
    try:
        resources.tables.write_items(build_versioned_put(key.table, forgotten, before["version"]))
    except ConditionFailed as refused:
        if refused.item is None or not refused.item.get("forgotten"):
            raise Conflict(_CHANGED_MEANWHILE) from None


def record_sync(resources: Resources, space: SpaceKey, remote: GitRemote, commit: str, files: dict[str, str]) -> None:
    """Remember with which commit a space agrees. If somebody else does so at the same moment, theirs stays.

    Args:
        resources: Of the process.
        space: The space.
        remote: The repository as it was read.
        commit: The commit.
        files: The files of the project in it.
    """
    base = resources.blobs.put_compressed_json(sync_folder(space), files)
    update = {
        "commit": commit,
        "base": base,
        "synced_at": resources.clock.now_iso(),
        "sent_commit": "",
        "sent_base": "",
    }
    with suppress(Conflict, NotFound):  # an older base only makes the next merge compare more
        _change_remote(resources, space, remote, update)


def announce_push(
    resources: Resources, space: SpaceKey, remote: GitRemote, pushed: SyncPoint, merged: SyncPoint | None
) -> GitRemote:
    """Remember that a commit is pushed, before it is, and return the repository as it is stored then.

    Args:
        resources: Of the process.
        space: The space.
        remote: The repository as it was read.
        pushed: The commit.
        merged: The commit before it, if it was merged into the space since the last time.

    Raises:
        Conflict: Somebody else has changed it, or synchronised the space, since it was read.
        NotFound: It was disconnected.
    """
    sent = resources.blobs.put_compressed_json(sync_folder(space), pushed.files)
    update = {"sent_commit": pushed.commit, "sent_base": sent}
    if merged:
        base = resources.blobs.put_compressed_json(sync_folder(space), merged.files)
        update |= {"commit": merged.commit, "base": base}
    return _change_remote(resources, space, remote, update)


def _change_remote(resources: Resources, space: SpaceKey, remote: GitRemote, update: dict[str, str]) -> GitRemote:
    before = _read_item(resources, space)
    if before is None:
        raise NotFound(f"The site {space.name} is not connected to a Git repository.")
    changed = remote.model_copy(update={**update, "version": remote.version + 1})
    item = _make_item(resources, space, changed)
    if "sealed" in before:
        item["sealed"] = before["sealed"]
    _store(resources, item, remote.version)
    return changed


def sync_folder(space: SpaceKey) -> str:
    """Return the folder of the files with which a space was synchronised."""
    return f"{space.folder}/synchronised"


def list_kept_bases(resources: Resources, space: SpaceKey) -> set[str]:
    """Return the objects of the folder that are in use."""
    item = _read_item(resources, space)
    remote = _parse_item(item) if item else None
    return {remote.base, remote.sent_base} - {""} if remote else set()


def _name_seal(space: SpaceKey, remote: GitRemote) -> str:
    """Bind a password to the address and the user for which it was entered."""
    return f"git {space.site} {space.environment} {remote.username} {remote.url}"


def _remote_key(resources: Resources, space: SpaceKey) -> ItemKey:
    return ItemKey(resources.settings.content_table, space.pk, REMOTE_SORT_KEY)


def _read_item(resources: Resources, space: SpaceKey) -> Item | None:
    item = resources.tables.get_item_by_key(_remote_key(resources, space))
    return None if item is None or item.get("forgotten") else item


def _make_item(resources: Resources, space: SpaceKey, remote: GitRemote) -> Item:
    key = _remote_key(resources, space)
    data = remote.model_dump(mode="json", exclude={"version"})
    return {"pk": key.pk, "sk": key.sk, "v": 1, "version": remote.version, "data": json.dumps(data, ensure_ascii=False)}


def _parse_item(item: Item) -> GitRemote:
    return GitRemote.model_validate({**json.loads(item["data"]), "version": item["version"]})


def _store(resources: Resources, item: Item, read_version: int | None) -> None:
    try:
        resources.tables.write_items(build_versioned_put(resources.settings.content_table, item, read_version))
    except ConditionFailed as refused:
        if refused.item is None or _compare_as(refused.item) != _compare_as(item):
            raise Conflict(_CHANGED_MEANWHILE) from None
        # It is what is stored: only the answer was lost.


def _compare_as(item: Item) -> Item:
    """Return a row with its password as bytes, whatever type the client reads."""
    return {**item, "sealed": bytes(item["sealed"])} if "sealed" in item else item
