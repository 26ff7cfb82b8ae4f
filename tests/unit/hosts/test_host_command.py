"""`fermata tenant host`, as the operator of a deployment on moto."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata.aws.resources import Resources
from fermata.hosts import registry
from fermata_client.commands.deployment.tenants import tenant
from tests.resources import environment_from_resources
from tests.tenant_tokens import make_tenant

URL = "https://8.8.8.8/fermata"


def run(resources: Resources, *words: str) -> Result:
    return CliRunner().invoke(tenant, list(words), env=environment_from_resources(resources))


def shown(resources: Resources) -> Any:
    return json.loads(run(resources, "show", "bakery").stdout)


@pytest.fixture
def bakery(resources: Resources) -> Resources:
    make_tenant(resources, "bakery")
    return resources


def test_the_secret_alone_goes_to_standard_output_and_is_never_shown_again(bakery: Resources) -> None:
    made = run(bakery, "host", "bakery", "--url", URL)
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip()
    assert secret not in made.stderr
    assert "content system checks the tokens" in made.stderr
    record = registry.read_host(bakery, "bakery")
    assert record is not None
    kept = record.secrets[0]
    assert bakery.vault.open_secret(kept.sealed, purpose="host-secret", tenant="bakery", name=kept.id) == secret
    assert shown(bakery)["host"]["url"] == URL
    assert secret not in run(bakery, "show", "bakery").output


def test_a_host_that_moves_prints_no_secret(bakery: Resources) -> None:
    run(bakery, "host", "bakery", "--url", URL)
    moved = run(bakery, "host", "bakery", "--url", "https://1.1.1.1")
    assert (moved.exit_code, moved.stdout) == (0, "")
    assert shown(bakery)["host"]["url"] == "https://1.1.1.1"


def test_rotating_prints_a_new_secret_that_signs_later_or_at_once(bakery: Resources) -> None:
    first = run(bakery, "host", "bakery", "--url", URL).stdout
    later, now = run(bakery, "host", "bakery", "--rotate"), run(bakery, "host", "bakery", "--rotate", "--overlap", "0")
    assert len({first, later.stdout, now.stdout}) == 3
    assert len(shown(bakery)["host"]["secrets"]) == 1


def test_a_host_is_taken_away(bakery: Resources) -> None:
    run(bakery, "host", "bakery", "--url", URL)
    assert run(bakery, "host", "bakery", "--remove").exit_code == 0
    assert "host" not in shown(bakery)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("bakery",), "Give one of --url URL, --rotate and --remove."),
        (("bakery", "--url", URL, "--remove"), "Give one of"),
        (("bakery", "--url", URL, "--overlap", "5"), "--overlap goes with --rotate."),
        (("bakery", "--url", "http://8.8.8.8"), "The address must begin with https://"),
        (("bakery", "--url", "https://10.0.0.1"), "not public"),
        (("bakery", "--rotate"), "Tenant 'bakery' has no host."),
        (("bakery", "--remove"), "Tenant 'bakery' has no host."),
        (("nobody", "--url", URL), "There is no tenant 'nobody'."),
    ],
)
def test_what_cannot_be_done_is_one_sentence(bakery: Resources, words: tuple[str, ...], says: str) -> None:
    refused = run(bakery, "host", *words)
    assert refused.exit_code != 0
    assert says in refused.stderr
    assert "Traceback" not in refused.output
    assert refused.stdout == ""
