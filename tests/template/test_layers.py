"""The dependency layer: the locked packages, each as one wheel that Lambda can import.

wheels.json is written by `make -C layers/dependencies wheels.json`; nothing here needs a package index.
"""

import json
import re
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.template.templates import ROOT

FOLDER = ROOT / "layers" / "dependencies"
LAMBDA = {
    "python_version": "3.13",
    "python_full_version": "3.13.0",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "platform_machine": "aarch64",
    "platform_system": "Linux",
    "sys_platform": "linux",
    "os_name": "posix",
}
LOCKED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))?(?P<hashes>(?: \\\n +--hash=\S+)+)", re.M
)


def read_locked_packages() -> dict[tuple[str, str], set[str]]:
    """Return the hashes of every locked package for Lambda, by name and version."""
    found: dict[tuple[str, str], set[str]] = {}
    for package in LOCKED.finditer((FOLDER / "requirements.txt").read_text()):
        marker = package["marker"]
        if marker is None or Marker(marker).evaluate(LAMBDA):
            hashes = set(re.findall(r"sha256:([0-9a-f]{64})", package["hashes"]))
            found[canonicalize_name(package["name"]), package["version"]] = hashes
    return found


def read_wheels() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((FOLDER / "wheels.json").read_text())
    return found


def identity(file: str) -> tuple[str, str]:
    name, version, _, _ = parse_wheel_filename(file)
    return name, str(version)


def runs_on_lambda(tag: Tag) -> bool:
    """Pure Python; or CPython 3.13's (or an older stable) interface, for 64-bit ARM and a C library of at most 2.34."""
    if tag.abi == "none" and tag.platform == "any":
        return tag.interpreter in ("py3", "cp313", "py313")
    stable = tag.abi == "abi3" and int(tag.interpreter.removeprefix("cp3")) <= 13
    exact = (tag.interpreter, tag.abi) == ("cp313", "cp313")
    library = re.fullmatch(r"manylinux(?:2014|_2_(\d+))_aarch64", tag.platform)
    return (stable or exact) and library is not None and int(library[1] or 17) <= 34


def test_the_lock_is_read_completely() -> None:
    """There are as many packages as lines with a pin, each with hashes."""
    pins = [line for line in (FOLDER / "requirements.txt").read_text().splitlines() if re.match(r"[\w.-]+==", line)]
    found = list(LOCKED.finditer((FOLDER / "requirements.txt").read_text()))
    assert len(found) == len(pins) > 0
    assert all(read_locked_packages().values())


def test_every_locked_package_has_exactly_one_wheel() -> None:
    assert sorted(identity(wheel["file"]) for wheel in read_wheels()) == sorted(read_locked_packages())


@pytest.mark.parametrize("wheel", read_wheels(), ids=lambda wheel: wheel["file"].partition("-")[0])
def test_a_wheel_runs_on_lambda(wheel: dict[str, str]) -> None:
    *_, tags = parse_wheel_filename(wheel["file"])
    assert any(runs_on_lambda(tag) for tag in tags)


@pytest.mark.parametrize("wheel", read_wheels(), ids=lambda wheel: wheel["file"].partition("-")[0])
def test_a_wheel_is_one_that_the_lock_names(wheel: dict[str, str]) -> None:
    assert wheel["sha256"] in read_locked_packages()[identity(wheel["file"])]


@pytest.mark.parametrize(
    "file",
    [
        "wrapt-2.5.2-cp313-cp313-manylinux2014_x86_64.whl",
        "wrapt-2.5.2-cp312-cp312-manylinux2014_aarch64.whl",
        "wrapt-2.5.2-cp314-abi3-manylinux2014_aarch64.whl",
        "wrapt-2.5.2-cp313-cp313-manylinux_2_39_aarch64.whl",
        "wrapt-2.5.2-cp313-cp313-macosx_11_0_arm64.whl",
    ],
)
def test_a_wheel_for_another_platform_would_fail(file: str) -> None:
    *_, tags = parse_wheel_filename(file)
    assert not any(runs_on_lambda(tag) for tag in tags)


def test_the_list_does_not_name_the_origin_of_wheels() -> None:
    assert all(
        set(wheel) == {"file", "sha256"} and Path(wheel["file"]).name == wheel["file"] for wheel in read_wheels()
    )


def test_the_package_itself_requires_nothing_else() -> None:
    wanted = (FOLDER / "requirements.in").read_text().split()
    ours = (ROOT / "layers" / "fermata" / "pyproject.toml").read_text()
    dependencies = re.search(r"^dependencies = \[(.*?)^\]", ours, re.M | re.S)
    assert dependencies is not None
    assert sorted(re.findall(r'"(.+)"', dependencies[1])) == sorted(wanted)
