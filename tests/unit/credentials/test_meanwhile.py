"""Whatever two people do to the same credentials at once: labels and defaults lead to what is there, nowhere else."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fermata.aws.desk import Desk
from fermata.credentials import defaults, keyring
from fermata.credentials.credential import Credential, label_key
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Invalid, NotFound
from tests.seam import Seam
from tests.unit.laid_out import empty_tables

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
WRITES = ("dynamodb.TransactWriteItems", "dynamodb.DeleteItem")
Act = Callable[[Desk, Credential, Credential], object]


def enter(desk: Desk, label: str) -> Credential:
    return keyring.create(desk, ADA, "anthropic", "apiKey", label, "sk-ant-secret")


ACTS: dict[str, Act] = {
    "enters a taken label": lambda desk, one, two: enter(desk, "One"),
    "enters a new label": lambda desk, one, two: enter(desk, "Three"),
    "renames it": lambda desk, one, two: keyring.change(desk, ADA, one.id, "Three", None),
    "swaps the label": lambda desk, one, two: keyring.change(desk, ADA, two.id, "One", None),
    "enters another key": lambda desk, one, two: keyring.change(desk, ADA, one.id, None, "sk-ant-newer"),
    "renames it with another key": lambda desk, one, two: keyring.change(desk, ADA, one.id, "Four", "sk-ant-newer"),
    "removes it": lambda desk, one, two: keyring.remove(desk, ADA, one.id),
    "removes the other": lambda desk, one, two: keyring.remove(desk, ADA, two.id),
    "makes it a default": lambda desk, one, two: defaults.set_default(desk, ADA, "site", one.id, "m"),
    "makes the other a default": lambda desk, one, two: defaults.set_default(desk, ADA, "site", two.id, "m"),
    "fills the defaults": lambda desk, one, two: defaults.fill(desk, ADA, "site", one.id, "m"),
    "clears the default": lambda desk, one, two: defaults.clear_default(desk, ADA, "site"),
}


def attempted(act: Act, desk: Desk, one: Credential, two: Credential) -> None:
    with contextlib.suppress(Invalid, NotFound, Conflict):
        act(desk, one, two)


def check(desk: Desk) -> None:
    rows = desk.tables.query("settings", "t#bakery")
    credentials = [Credential.model_validate(row) for row in rows if row["sk"].startswith("credential#")]
    labels = {row["sk"]: row["credential"] for row in rows if row["sk"].startswith("label#")}
    assert labels == {label_key(it.user, it.provider_id, it.display_label): it.id for it in credentials}
    used = {row["credential_id"] for row in rows if row["sk"].startswith("default#")}
    assert used <= {it.id for it in credentials}
    for it in credentials:
        assert keyring.open_key(desk, "bakery", it.id, it.version).startswith("sk-ant-")


@pytest.mark.parametrize("first", ACTS, ids=lambda name: name.replace(" ", "-"))
def test_while_one_acts_another_does(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """The second acts right before what the first has decided is written."""
    seam = Seam(desk, tmp_path, monkeypatch)
    for second in ACTS.values():
        empty_tables()
        one, two = enter(desk, "One"), enter(desk, "Two")
        defaults.set_default(desk, ADA, "site", two.id, "m")

        def act(second: Act = second, one: Credential = one, two: Credential = two) -> None:
            seam.forget()
            attempted(second, desk, one, two)

        for write in WRITES:
            seam.meanwhile(write, act)
        attempted(ACTS[first], desk, one, two)
        seam.forget()
        check(desk)
