import functools
import gc
import os
import ssl
from collections.abc import Generator
from pathlib import Path

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings

from tests.cloud import cloud, service
from tests.late_files import delay_files
from tests.lean_reports import pytest_runtest_protocol
from tests.loopback_guard import install_guard, pytest_runtest_call
from tests.suite_parts import is_in_part, is_left_out, list_exhaustive_cases
from tests.timer_guard import install_timer_guard, pytest_runtest_teardown
from tests.waiting import BACKSTOP_SECONDS

__all__ = ["cloud", "pytest_runtest_call", "pytest_runtest_protocol", "pytest_runtest_teardown", "service"]

# Before any test file is imported, or a module that it uses would already be there.
pytest.register_assert_rewrite("tests.template.permissions")

install_guard()
install_timer_guard()
# Every client of httpx reads all root certificates, although no test connects by TLS (decision 0293).
ssl.create_default_context = functools.cache(ssl.create_default_context)
# A call of httpx without a limit of its own has five seconds, which a busy machine takes now and then (decision 0686).
for limit in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, limit, BACKSTOP_SECONDS)
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"  # else a client without credentials asks 169.254.169.254 for them

# How long an example takes says how busy the machine is, and nothing about the product.
settings.register_profile("no-clocks", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("no-clocks"), max_examples=20)
settings.load_profile("no-clocks")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", help="Run the tests of every Nth file, beginning with the Kth.")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    part = config.getoption("part")
    if part and not is_in_part(collection_path, part):
        return True
    return True if is_left_out(collection_path, config.option.markexpr) else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    parent: pytest.Collector,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector | pytest.Item]]:
    return delay_files((yield), parent.config)


def pytest_configure(config: pytest.Config) -> None:
    """Generate a fifth of the examples in the quick suite, which leaves out exhaustive tests (decision 0261)."""
    if "not exhaustive" in config.option.markexpr:
        settings.load_profile("quick")


@pytest.fixture(scope="session")
def folder_without_service(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("no-service")


@pytest.fixture(autouse=True)
def isolated_from_running_services(folder_without_service: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the state files of a service that runs in this clone, or for this user."""
    monkeypatch.chdir(folder_without_service)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder_without_service / "state"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they need, so that `pytest -m "not cloud"` leaves out those that use a running cloud.

    Where exhaustive tests are left out, most cases of a large table are exhaustive too.
    """
    for item in items:
        fixture_names = set(getattr(item, "fixturenames", ()))
        if {"cloud", "emulator"} & fixture_names:
            item.add_marker("cloud")
        if "browser" in fixture_names:
            item.add_marker("browser")
    if "not exhaustive" in config.option.markexpr:
        for item in list_exhaustive_cases(items):
            item.add_marker("exhaustive")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile: there is hardly any, and each search looks at all tests that are collected."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection, which takes a tenth of the processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)
