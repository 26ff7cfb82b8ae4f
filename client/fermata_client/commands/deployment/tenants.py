"""`fermata tenant`: add, show and change the tenants of a deployment, and rotate their secrets.

An operator's command: it writes to the deployment's tables and uses its key.
"""

import functools
import json
from collections.abc import Callable
from typing import Any, TextIO

import click

from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.options import json_anyway_option
from fermata_client.commands.deployment.stack_options import stack_options
from fermata_client.commands.deployment.tenant_plan import choose_plan
from fermata_client.stack.resources import open_operator_resources

DIALECTS = click.Choice(["fermata", "instatic"])
TOOL_NAMES = click.Choice(["seed", "prefixed"])
ORIGIN_HELP = "A page's origin that may call with its cookie (https://editor.example.com). Repeat for more."
NAMES_HELP = "The tool names that its editor uses: insertHtml, or site_insert_html (Instatic from 0.0.7 on)."
ROUNDS_HELP = "The number of model requests that one turn may make."
THINKING_HELP = "Tokens that a model may think before it answers; 0 leaves it to the model."
DELETED_DAYS_HELP = "Days that a deleted conversation is kept before it is purged.  [default: 30]"
LIMIT_HELP = "A limit of its users or of itself, such as user_turns_at_once=20, or =default. Repeat for more."
LIFETIME_HELP = "The longest lifetime of a token, in seconds."
SIGNING_SERVER_NOTE = "Store it where the tenant's server signs its tokens:"
CONTENT_SYSTEM_NOTE = "Store it where the tenant's content system checks the tokens of its requests:"


_LIMIT_OPTIONS = (
    click.option("--max-rounds", type=int, help=ROUNDS_HELP),
    click.option("--thinking-tokens", type=int, help=THINKING_HELP),
    click.option("--token-seconds", type=int, help=LIFETIME_HELP),
    click.option("--deleted-days", type=int, help=DELETED_DAYS_HELP),
    click.option("--limit", "use_limits", multiple=True, metavar="NAME=NUMBER", help=LIMIT_HELP),
)
_NUMBER_LIMITS = ("max_rounds", "thinking_tokens", "token_seconds", "deleted_days")


def limit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that limit what a tenant may do. The command gets them as `limits`: `TenantLimits`, or None."""

    @functools.wraps(command)
    def wrapped(use_limits: tuple[str, ...], **kwargs: Any) -> None:
        given = {name: kwargs.pop(name) for name in _NUMBER_LIMITS}
        command(**kwargs, limits=_parse_tenant_limits(given, use_limits))

    with_options: Callable[..., None] = wrapped
    for add_option in reversed(_LIMIT_OPTIONS):
        with_options = add_option(with_options)
    return with_options


@click.group()
def tenant() -> None:
    """Add, show, change a deployment's tenants, and rotate their secrets.

    A tenant is one customer's site or workspace: its server signs tokens, and its pages send them.
    A change takes effect in running functions within a minute.
    """


tenant.add_command(choose_plan)


@tenant.command("add")
@click.argument("name")
@click.option("--issuer", required=True, help="The `iss` of its tokens, an https URL. One issuer, one tenant.")
@click.option("--audience", default="fermata", show_default=True, help="The `aud` of its tokens.")
@click.option("--jwks-url", help="Where its public keys are (RS256, ES256). Without it, a shared secret (HS256).")
@click.option("--secret-file", type=click.File(), help="Its shared secret, if you have one already; - is stdin.")
@click.option("--origin", "origins", multiple=True, help=ORIGIN_HELP)
@click.option("--dialect", type=DIALECTS, default="fermata", show_default=True, help="The dialect of its pages.")
@click.option("--tool-names", type=TOOL_NAMES, default="seed", show_default=True, help=NAMES_HELP)
@limit_options
@stack_options
def add_tenant(
    name: str,
    issuer: str,
    audience: str,
    jwks_url: str | None,
    secret_file: TextIO | None,
    origins: tuple[str, ...],
    dialect: Any,
    tool_names: Any,
    limits: Any,
    stack: str | None,
    region: str | None,
) -> None:
    """Add the tenant NAME. Its secret is printed to standard output, and cannot be printed again."""
    from fermata.wire.auth import tenant_store

    added, secret = tenant_store.add_tenant(
        open_operator_resources(stack, region),
        name,
        issuer=issuer,
        audience=audience,
        secret=secret_file.read().strip() if secret_file else None,
        jwks_url=jwks_url,
        origins=origins,
        dialect=dialect,
        tool_names=tool_names,
        limits=limits,
    )
    click.echo(_to_json(added.to_operator_view()), err=True)
    if secret and not secret_file:
        _print_secret(secret)


@tenant.command("show")
@click.argument("name")
@json_anyway_option
@stack_options
@report_errors
def show_tenant(name: str, stack: str | None, region: str | None) -> None:
    """Print the record of the tenant NAME, except its secrets."""
    from fermata.hosts import registry
    from fermata.wire.auth.tenant_store import describe_tenant

    resources = open_operator_resources(stack, region)
    tenant_view = describe_tenant(resources, name)
    host_view = registry.describe_host(resources, name)
    click.echo(_to_json(tenant_view | ({"host": host_view} if host_view else {})))


@tenant.command("change")
@click.argument("name")
@click.option("--origin", "origins", multiple=True, help=f"{ORIGIN_HELP} These replace the present ones.")
@click.option("--dialect", type=DIALECTS, help="The dialect of its pages.")
@click.option("--tool-names", type=TOOL_NAMES, help=NAMES_HELP)
@limit_options
@stack_options
def change_tenant(
    name: str,
    origins: tuple[str, ...],
    dialect: Any,
    tool_names: Any,
    limits: Any,
    stack: str | None,
    region: str | None,
) -> None:
    """Change the tenant NAME. Settings without an option stay unchanged."""
    from fermata.wire.auth.tenant_store import update_tenant

    changed = update_tenant(
        open_operator_resources(stack, region),
        name,
        origins=origins or None,
        dialect=dialect,
        tool_names=tool_names,
        limits=limits,
    )
    click.echo(_to_json(changed.to_operator_view()))


@tenant.command("rotate")
@click.argument("name")
@click.option(
    "--overlap", type=click.IntRange(min=0), help="Seconds during which the old secret stays valid. [default: 86400]"
)
@stack_options
def rotate_tenant_secret(name: str, overlap: int | None, stack: str | None, region: str | None) -> None:
    """Give the tenant NAME a new secret, and print it once. --overlap 0 ends the old one at once.

    Both sign tokens meanwhile. Its id, which `tenant show` lists, may be the `kid` in a token's header.
    """
    from fermata.wire.auth import tenant_store

    overlap_seconds = tenant_store.DEFAULT_SECRET_OVERLAP_SECONDS if overlap is None else overlap
    resources = open_operator_resources(stack, region)
    _print_secret(tenant_store.rotate_tenant_secret(resources, name, overlap_seconds=overlap_seconds))


@tenant.command("host")
@click.argument("name")
@click.option(
    "--url",
    help="Its https URL, or content:SITE/ENVIRONMENT for the content store. A server that moves keeps its secret.",
)
@click.option("--rotate", is_flag=True, help="Give it a new secret.")
@click.option(
    "--overlap", type=click.IntRange(min=0), help="Seconds during which the old secret still signs. [default: 600]"
)
@click.option("--remove", is_flag=True, help="Ask it no more.")
@stack_options
def configure_host(
    name: str,
    url: str | None,
    rotate: bool,
    overlap: int | None,
    remove: bool,
    stack: str | None,
    region: str | None,
) -> None:
    """Register the content system of the tenant NAME (docs/host.md), rotate its secret, or remove it.

    The secret that its requests are signed with is printed once.
    """
    from fermata.hosts import registry

    if (url is not None) + rotate + remove != 1:
        raise click.UsageError("Give one of --url URL, --rotate and --remove.")
    if overlap is not None and not rotate:
        raise click.UsageError("--overlap goes with --rotate.")
    resources = open_operator_resources(stack, region)
    if remove:
        registry.remove_host(resources, name)
    elif url is not None:
        record, secret = registry.register_host(resources, name, url)
        click.echo(_to_json(record.to_operator_view()), err=True)
        if secret:
            _print_secret(secret, CONTENT_SYSTEM_NOTE)
    else:
        overlap_seconds = registry.HOST_SECRET_OVERLAP_SECONDS if overlap is None else overlap
        secret = registry.rotate_host_secret(resources, name, overlap_seconds=overlap_seconds)
        _print_secret(secret, CONTENT_SYSTEM_NOTE)


def _parse_tenant_limits(given: dict[str, int | None], use_limits: tuple[str, ...]) -> Any:
    """Return `TenantLimits`; None if no limit is given. A limit out of range is an error of its option."""
    from pydantic import ValidationError

    from fermata.wire.auth.tenant import TenantLimits

    limits: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    limits |= dict(map(_parse_use_limit, use_limits))
    try:
        return TenantLimits.model_validate(limits) if limits else None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        option = f"--{name.replace('_', '-')}" if name in given else f"--limit {name}"
        raise click.BadParameter(first["msg"].lower(), param_hint=option) from error


def _parse_use_limit(text: str) -> tuple[str, str | None]:
    """Return the name and the number of NAME=NUMBER; None for the deployment's limit."""
    from fermata.domain.use_limits import USE_LIMIT_NAMES

    name, _, number = text.partition("=")
    if name not in USE_LIMIT_NAMES or not number:
        text = f"{text!r} is none of NAME=NUMBER. Names: {', '.join(USE_LIMIT_NAMES)}."
        raise click.BadParameter(text, param_hint="--limit")
    return name, None if number == "default" else number


def _print_secret(secret: str, note: str = SIGNING_SERVER_NOTE) -> None:
    click.echo(f"The secret, shown only now. {note}", err=True)
    click.echo(secret)


def _to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2)
