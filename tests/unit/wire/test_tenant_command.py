"""`fermata tenant`, against a stack on moto and against the functions' own environment."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fermata.aws.clock import Clock
from fermata.aws.resources import Resources
from fermata.aws.settings import Settings
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS, DEFAULT_USER_LIMITS, CallerLimits
from fermata.domain.workspace_plan import PlanMeter, PlanQuota
from fermata.wire.auth import tenant_store
from fermata.wire.auth.authentication import authenticate
from fermata_client.commands.deployment.tenants import tenant
from fermata_client.stack.resources import (
    OPTIONAL_STACK_OUTPUT_BY_SETTING,
    STACK_OUTPUT_BY_SETTING,
    StackLocation,
    open_stack_resources,
)
from tests.fixed_response_server import FixedResponseServer, run_fixed_response_server
from tests.resources import REGION, environment_from_resources, resources_of_new_process
from tests.tenant_tokens import TokenSigner

TEMPLATE = Path(__file__).parents[3] / "template.yaml"
ADD = ("add", "bakery", "--issuer", "https://bakery.example", "--origin", "https://bakery.example")


OUTPUT = "<member><OutputKey>{0}</OutputKey><OutputValue>{1}</OutputValue></member>"
STACKS = """<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult>
<Stacks><member><StackName>fermata</StackName><StackStatus>CREATE_COMPLETE</StackStatus>
<CreationTime>2030-01-01T00:00:00Z</CreationTime><Outputs>{0}</Outputs></member></Stacks>
</DescribeStacksResult></DescribeStacksResponse>"""
NO_STACK = """<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>
<Code>ValidationError</Code><Message>Stack with id elsewhere does not exist</Message></Error></ErrorResponse>"""


@pytest.fixture
def cloudformation(monkeypatch: pytest.MonkeyPatch) -> Iterator[FixedResponseServer]:
    """A server that responds as CloudFormation does, in XML."""
    with run_fixed_response_server() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", server.url)
        yield server


@pytest.fixture
def stack(resources: Resources, cloudformation: FixedResponseServer) -> str:
    outputs = "".join(
        OUTPUT.format(name, getattr(resources.settings, field)) for field, name in STACK_OUTPUT_BY_SETTING.items()
    )
    cloudformation.body = STACKS.format(outputs).encode()
    return "fermata"


def run(*arguments: str, **settings: Any) -> Result:
    return CliRunner().invoke(tenant, list(arguments), **settings)


def test_the_secret_alone_goes_to_standard_output_and_signs_tokens(resources: Resources, stack: str) -> None:
    added = run(*ADD, "--stack", stack, "--region", REGION)
    assert added.exit_code == 0, added.output
    secret = added.stdout.strip()
    assert secret not in added.stderr
    signer = TokenSigner("bakery", "https://bakery.example", "fermata", secret)
    assert authenticate(resources, signer.bearer_headers(), "GET").tenant == "bakery"


def test_the_secret_is_never_printed_again(resources: Resources, stack: str) -> None:
    secret = run(*ADD, "--stack", stack).stdout.strip()
    shown = run("show", "bakery", "--stack", stack)
    assert json.loads(shown.stdout)["origins"] == ["https://bakery.example"]
    assert secret not in shown.output


def test_rotating_prints_a_new_secret_and_both_are_valid(resources: Resources, stack: str) -> None:
    first = run(*ADD, "--stack", stack).stdout.strip()
    second = run("rotate", "bakery", "--stack", stack).stdout.strip()
    assert first != second
    service = Resources(resources.settings, Clock())
    for secret in (first, second):
        signer = TokenSigner("bakery", "https://bakery.example", "fermata", secret)
        assert authenticate(service, signer.bearer_headers(), "GET").user == "ada"


def test_an_update_leaves_values_that_are_not_named(resources: Resources, stack: str) -> None:
    run(*ADD, "--stack", stack, "--token-seconds", "600", "--tool-names", "prefixed")
    changed = run("change", "bakery", "--stack", stack, "--dialect", "instatic", "--max-rounds", "9")
    printed = json.loads(changed.stdout)
    assert (printed["dialect"], printed["toolNames"]) == ("instatic", "prefixed")
    assert printed["limits"] == {"maxRounds": 9, "tokenSeconds": 600}
    assert printed["origins"] == ["https://bakery.example"]


def test_a_tenant_may_have_a_thinking_budget(resources: Resources, stack: str) -> None:
    run(*ADD, "--stack", stack, "--thinking-tokens", "4096")
    assert json.loads(run("show", "bakery", "--stack", stack).stdout)["limits"]["thinkingTokens"] == 4096
    changed = run("change", "bakery", "--stack", stack, "--thinking-tokens", "0")
    assert json.loads(changed.stdout)["limits"]["thinkingTokens"] == 0


def read_limits(resources: Resources) -> CallerLimits:
    tenant = tenant_store.get_tenant(resources_of_new_process(resources), "bakery")
    return tenant.limits.apply_to(DEFAULT_CALLER_LIMITS)


def test_limits_of_use_are_set_by_name_and_taken_back(resources: Resources, stack: str) -> None:
    run(*ADD, "--stack", stack, "--limit", "user_turns_at_once=20", "--limit", "tenant_bytes_per_day=5000000000")
    limits = read_limits(resources)
    assert (limits.user.turns_at_once, limits.tenant.bytes_per_day) == (20, 5_000_000_000)
    assert limits.user.prompts_per_minute == DEFAULT_USER_LIMITS.prompts_per_minute
    run("change", "bakery", "--stack", stack, "--limit", "user_turns_at_once=default")
    limits = read_limits(resources)
    assert limits.user == DEFAULT_USER_LIMITS
    assert limits.tenant.bytes_per_day == 5_000_000_000


def test_the_functions_environment_names_the_deployment_too(resources: Resources) -> None:
    added = run(*ADD, env=environment_from_resources(resources))
    assert added.exit_code == 0, added.output
    assert json.loads(run("show", "bakery", env=environment_from_resources(resources)).stdout)["name"] == "bakery"


def test_a_given_secret_is_read_from_a_file_and_not_printed(resources: Resources, stack: str) -> None:
    mine = "correct horse battery staple, and then some"
    added = run(*ADD, "--stack", stack, "--secret-file", "-", input=f"{mine}\n")
    assert added.exit_code == 0, added.output
    assert mine not in added.output
    signer = TokenSigner("bakery", "https://bakery.example", "fermata", mine)
    assert authenticate(resources_of_new_process(resources), signer.bearer_headers(), "GET").user == "ada"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "nobody"), "There is no tenant 'nobody'."),
        (("rotate", "nobody"), "There is no tenant 'nobody'."),
        (("add", "bakery", "--issuer", "http://bakery.example"), "The issuer must be an https URL"),
        (("change", "nobody", "--max-rounds", "0"), "--max-rounds"),
        (("change", "nobody", "--thinking-tokens", "-1"), "--thinking-tokens"),
        (("change", "nobody", "--limit", "user_turns_at_once=0"), "--limit user_turns_at_once"),
        (("change", "nobody", "--limit", "user_turns=3"), "Names: user_prompts_per_minute, "),
        (("change", "nobody", "--limit", "user_turns_at_once"), "NAME=NUMBER"),
    ],
)
def test_an_error_is_one_sentence(resources: Resources, stack: str, arguments: tuple[str, ...], says: str) -> None:
    refused = run(*arguments, "--stack", stack)
    assert refused.exit_code != 0
    assert says in refused.stderr
    assert "Traceback" not in refused.output
    assert refused.stdout == ""


def test_an_error_names_a_missing_stack(resources: Resources, cloudformation: FixedResponseServer) -> None:
    cloudformation.status, cloudformation.body = 400, NO_STACK.encode()
    refused = run("show", "bakery", "--stack", "elsewhere")
    assert refused.exit_code == 1
    assert "elsewhere" in refused.stderr


def test_a_stack_of_something_else_is_refused(resources: Resources, cloudformation: FixedResponseServer) -> None:
    cloudformation.body = STACKS.format(OUTPUT.format("ApiUrl", "https://api.example")).encode()
    refused = run("show", "bakery", "--stack", "fermata")
    assert refused.exit_code == 1
    assert "is no Fermata" in refused.stderr


def test_without_a_stack_or_an_environment_the_command_asks_for_one(resources: Resources) -> None:
    refused = run("show", "bakery", env=dict.fromkeys(environment_from_resources(resources)))
    assert refused.exit_code == 1
    assert "--stack" in refused.stderr


def test_the_template_has_every_output_the_command_reads() -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("!", lambda *_: None)
    outputs = yaml.load(TEMPLATE.read_text(), Loader)["Outputs"]
    assert {*STACK_OUTPUT_BY_SETTING.values(), *OPTIONAL_STACK_OUTPUT_BY_SETTING.values()} <= set(outputs)
    needed = {name for name, field in Settings.model_fields.items() if field.is_required()}
    assert needed <= set(STACK_OUTPUT_BY_SETTING)


def test_an_operator_erases_vectors_where_the_stack_has_a_vector_bucket(
    stack: str, cloudformation: FixedResponseServer
) -> None:
    location = StackLocation(stack, REGION)
    assert open_stack_resources(location).settings.vector_bucket_arn == ""
    arn = "arn:aws:s3vectors:eu-central-1:123456789012:bucket/vectors"
    with_vectors = OUTPUT.format("VectorBucketArn", arn).encode()
    cloudformation.body = cloudformation.body.replace(b"</Outputs>", with_vectors + b"</Outputs>")
    assert open_stack_resources(location).settings.vector_bucket_arn == arn


def test_a_tenant_is_given_a_plan_with_a_limit_of_its_own(resources: Resources, stack: str) -> None:
    at_stack = ("--stack", stack, "--region", REGION)
    run(*ADD, *at_stack)
    options = ("--state", "trial", "--until", "2027-01-15", "--limit", "chatMessages=7", "--limit", "forms=unlimited")
    changed = run("plan", "bakery", "starter", *options, *at_stack)
    assert changed.exit_code == 0, changed.output
    stored = tenant_store.get_tenant(resources_of_new_process(resources), "bakery").subscription
    assert (stored.get_limit(PlanMeter.CHAT_MESSAGES), stored.get_limit(PlanQuota.FORMS)) == (7, None)
    assert [stored.is_locked(stored.until + step) for step in (-1, 0)] == [False, True] if stored.until else False
    assert json.loads(changed.output)["subscription"]["plan"] == "starter"
    for wrong in ("chatMessages=-1", "messages=1", "chatMessages="):
        refused = run("plan", "bakery", "starter", "--limit", wrong, *at_stack)
        assert (refused.exit_code, "is none of NAME=NUMBER" in refused.output) == (2, True)
    for wrong in ("", "*a*b*c*d*"):
        refused = run("plan", "bakery", "starter", "--model", wrong, *at_stack)
        assert (refused.exit_code, "names of 1 to 200 characters" in " ".join(refused.output.split())) == (2, True)
