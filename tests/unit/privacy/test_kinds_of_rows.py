"""Every kind of row and object that the package stores is in the tenant that the tests of privacy fill.

They prove of this tenant that an erasure leaves nothing, and that an export is complete. Of a kind that it lacks they
would prove nothing. So a new kind of row fails here until `fill_tenant` stores it, or a reason stands below.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fermata
from fermata.aws.blob_store import STORED_FOLDERS
from fermata.aws.resources import Resources
from tests.unit.privacy.filled_tenant import ADA, count_ledger, fill_tenant, list_objects, list_rows
from tests.unit.privacy.saved_tenant import SavedTenant
from tests.unit.turns.stage import Stage

PACKAGE = Path(fermata.__file__).parent
KEY_ATTRIBUTES = ("pk", "sk", "gpk", "gsk", "open")
OF_JOBS = "A row of an export or erasure itself, which the tests of jobs look at."
OF_REBUILDS = "A rebuild of the rollups writes it, which the erasure of a user begins."
OF_OPERATORS = "Of the deployment: which billing system is told of what workspaces use."
OF_LEASES = "An attribute of a row, no key."
NOT_IN_THE_TENANT = {
    "edition": OF_REBUILDS,
    "t#*#rollup": OF_REBUILDS,
    "erasing#*": OF_JOBS,
    "privacy#*": OF_JOBS,
    "privacy#open": OF_JOBS,
    "privacy#waiting": OF_JOBS,
    "known-tools": "Digests of tools that were approved, in the partition of the trail. It names nobody.",
    "s#*#": "Messages of sub-agents, in the partition of their conversation: test_what_sub_agents_leave.py.",
    "billing": OF_OPERATORS,
    "receiver": OF_OPERATORS,
    "position": OF_OPERATORS,
    "at#*": OF_LEASES,
    "slow#*": OF_LEASES,
    "mcp-delivered": "A mark without words, in the partition of its turn.",
    "request": "Of a turn that is stored nowhere. After five minutes it is a row of the ledger, and names nobody.",
    "x#*": OF_LEASES,
    "x#*#*#*": OF_LEASES,
}


@pytest.fixture
def filled(resources: Resources, monkeypatch: pytest.MonkeyPatch, saved_tenant: SavedTenant) -> Resources:
    saved_tenant.load(resources, monkeypatch, lambda: _fill(resources, monkeypatch))
    return resources


def _fill(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(resources, monkeypatch, caller=ADA)
    fill_tenant(resources, stage)
    count_ledger(resources)
    return stage


def list_key_templates() -> dict[str, str]:
    """Return the keys of rows that the package builds, with `*` for what is put in, and where it builds each."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for template in _iter_templates(node):
                found.setdefault(template, path.relative_to(PACKAGE).as_posix())
    return found


def _iter_templates(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str(beginning)), *_]) if re.match("[a-z]+#", beginning):
            template = "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
            if not template.endswith("~"):  # the end of a range that is read
                yield template
        case ast.Dict(keys=names, values=values):
            pairs = zip(names, values, strict=True)
            keys = [value for name, value in pairs if isinstance(name, ast.Constant) and name.value in ("pk", "sk")]
            yield from _iter_constants(keys)
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if "SORT_KEY" in name:
            yield from _iter_constants([value])
        case ast.Assign(value=ast.Constant(value=str(text)) as value) if re.match("[a-z]+#", text):
            yield from _iter_constants([value])
        case ast.Call(func=ast.Name(id="ItemKey"), args=[_, _, sort_key]):
            yield from _iter_constants([sort_key])


def _iter_constants(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if re.match("[a-z]", text):
                yield f"{text}*" if text.endswith("#") else text


def compile_template(template: str) -> re.Pattern[str]:
    ending = ".*" if template.endswith("#") else ""  # what is read of a range begins like this
    return re.compile(".*".join(map(re.escape, template.split("*"))) + ending, re.DOTALL)


def test_the_tenant_has_every_kind_of_row(filled: Resources) -> None:
    keys = {str(row[name]) for row in list_rows(filled) for name in KEY_ATTRIBUTES if name in row}
    templates = list_key_templates()
    assert {"t#*#turn#*", "connector#*", "budgets", "d#plan", "webhooks"} <= templates.keys()
    found = {template for template in templates if any(map(compile_template(template).fullmatch, keys))}
    lacking = {template: templates[template] for template in templates.keys() - found - NOT_IN_THE_TENANT.keys()}
    assert lacking == {}, "Store these in fill_tenant, so that the tests of erasures and exports know of them."
    assert NOT_IN_THE_TENANT.keys() <= templates.keys() - found


def test_rows_are_in_partitions_that_an_erasure_of_the_tenant_finds(filled: Resources) -> None:
    elsewhere = {row["pk"].partition("#")[0] for row in list_rows(filled) if not row["pk"].startswith("t#bakery")}
    assert elsewhere == {"catalogue", "issuer", "origin"}, "An erasure knows t#<tenant>, its issuer and its origins."


def test_the_tenant_has_objects_in_every_folder(filled: Resources) -> None:
    found = {key.partition("/")[0] for key in list_objects(filled)}
    assert found | {"exports"} == set(STORED_FOLDERS)


def test_nothing_is_stored_in_a_folder_that_an_erasure_does_not_know(resources: Resources) -> None:
    with pytest.raises(ValueError, match=r"thumbnails/bakery/.* is in none of conversations, turns"):
        resources.blobs.put_bytes("thumbnails/bakery", b"a picture", "image/png")
    with pytest.raises(ValueError, match="none of"):
        resources.blobs.put_file("tenants.json", b"{}", "application/json")
