"""Chromium is installed where that needs no question; otherwise a sentence says what to install."""

import os
import shutil
import subprocess
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from local import install_chromium


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Pretend to be on a machine with these programs, and record what is run there."""

    def make(*programs: str, user: int, asks_for_password: bool = False, installs: bool = True) -> list[list[str]]:
        ran: list[list[str]] = []
        there = set(programs)

        def run(command: list[str], **_: object) -> SimpleNamespace:
            ran.append(command)
            if "install" in command and installs:
                there.add("chromium")
            return SimpleNamespace(returncode=0 if installs else 1, stdout="", stderr="E: no such package")

        monkeypatch.delenv(install_chromium.PROGRAM_VARIABLE, raising=False)
        monkeypatch.setattr(install_chromium, "MAC_PROGRAMS", ())
        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
        monkeypatch.setattr(os, "geteuid", lambda: user)
        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr(subprocess, "call", lambda *_, **__: int(asks_for_password))
        return ran

    return make


def test_a_browser_that_is_there_is_used(
    machine: Callable[..., list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = machine("google-chrome", "apt-get", user=0)
    install_chromium.main()
    assert (ran, install_chromium.find_chromium()) == ([], "/usr/bin/google-chrome")
    monkeypatch.setenv(install_chromium.PROGRAM_VARIABLE, "/opt/chrome")
    assert install_chromium.find_chromium() == "/opt/chrome"


@pytest.mark.parametrize(("programs", "user"), [(("apt-get",), 0), (("apt-get", "sudo"), 1000)], ids=["root", "sudo"])
def test_it_is_installed_where_that_needs_no_question(
    machine: Callable[..., list[list[str]]], programs: tuple[str, ...], user: int
) -> None:
    ran = machine(*programs, user=user)
    install_chromium.main()
    assert [command[-1] for command in ran] == ["update", "chromium"]
    assert all((command[:2] == ["sudo", "-n"]) == (user != 0) for command in ran)


@pytest.mark.parametrize(
    ("programs", "user", "options"),
    [
        ((), 0, {}),
        (("apt-get",), 1000, {}),
        (("apt-get", "sudo"), 1000, {"asks_for_password": True}),
        (("apt-get",), 0, {"installs": False}),
    ],
    ids=["no apt", "no right", "sudo asks", "apt fails"],
)
def test_otherwise_a_sentence_says_what_to_install(
    machine: Callable[..., list[list[str]]], programs: tuple[str, ...], user: int, options: dict[str, bool]
) -> None:
    machine(*programs, user=user, **options)
    with pytest.raises(SystemExit, match=r"Chromium is missing.*apt-get install chromium.*FERMATA_CHROMIUM="):
        install_chromium.main()
