"""`fermata agents`: check, push, list, compare, remove and test the agents of a workspace."""

from pathlib import Path
from typing import Any

import click

from fermata_client.agent_files.agent_files import AgentFiles, read_agent_files
from fermata_client.agent_files.check_agent_files import build_format_schema, check_agent_files
from fermata_client.agent_files.run_agent_tests import run_agent_tests
from fermata_client.commands.common.default_subcommand import group_with_default
from fermata_client.commands.common.errors import CommandError, report_errors
from fermata_client.commands.common.json_output import print_json
from fermata_client.commands.common.options import json_anyway_option, json_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.service.errors import RequestRefusedError
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.plain_text import strip_control_chars
from fermata_client.terminal.table import format_minute, print_table

EXIT_CODE_UNCHANGED = 3
DEFAULT_PLACE = "agents"
FILES_ARGUMENT = click.argument(
    "place", metavar="[PATH]", default=DEFAULT_PLACE, type=click.Path(exists=True, path_type=Path)
)


class FilesRefusedError(CommandError):
    """Files have mistakes, which are printed already."""

    is_in_output = True


@group_with_default("list", name="agents")
def agents() -> None:
    """List the agents of your workspace; check, push, compare or test those in files. Alone, it lists them.

    PATH is a YAML file, or a folder whose YAML files belong together.  [default: agents]
    """


@agents.command("check")
@FILES_ARGUMENT
@json_option
@report_errors
def check_agents(place: Path, as_json: bool) -> None:
    """Check the agents in PATH without a service, and print every mistake with its file and line."""
    files = read_agent_files(place)
    if not files.documents and not files.mistakes:
        raise CommandError(f"{place} has no YAML file that defines anything: agents, connections or endpoints.")
    problems, _ = check_agent_files(files)
    errors = _report_problems(problems, as_json=as_json)
    if errors:
        raise FilesRefusedError(_count(errors, "mistake") + ".")
    if not as_json:
        click.echo("No mistakes.", err=True)


@agents.command("push")
@FILES_ARGUMENT
@click.option("--version", "expected", type=int, help="Push only if the workspace's agents still have this version.")
@json_option
@service_options
@report_errors
def push_agents(place: Path, expected: int | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Make the agents in PATH those of the workspace. What is not in PATH is removed.

    Turns that run go on with the agents that they have. Exit code 3 if nothing has changed.
    """
    pushed = _push(place, expected, as_json=as_json, is_trial=False, url=url, token=token)
    if as_json:
        print_json(pushed)
    else:
        _print_changes(pushed)
    _exit_if_unchanged(pushed)


@agents.command("diff")
@FILES_ARGUMENT
@json_option
@service_options
@report_errors
def compare_agents(place: Path, as_json: bool, url: str | None, token: str | None) -> None:
    """Show what a push of PATH would change. Exit code 3 if nothing."""
    planned = _push(place, None, as_json=as_json, is_trial=True, url=url, token=token)
    if as_json:
        print_json(planned)
    else:
        _print_changes(planned)
        for agent_id, differences in planned["differences"].items():
            for one in differences:
                path = strip_control_chars(f"{agent_id}: {one['path']}")
                click.echo(f"  {path}: {_show(one.get('before'))} → {_show(one.get('after'))}")
    _exit_if_unchanged(planned)


@agents.command("list")
@json_option
@service_options
@report_errors
def list_agents(as_json: bool, url: str | None, token: str | None) -> None:
    """List the workspace's own agents."""
    with connect_to_service(url, token) as client:
        found = client.list_agent_definitions()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one["id"],
            one["version"],
            "everyone" if one["public"] else ", ".join(one["roles"]) or "protected",
            format_minute(one["updatedAt"]),
            strip_control_chars(one["title"]),
        )
        for one in found["agents"]
    ]
    print_table(("id", "version", "for", "changed", "title"), rows)


@agents.command("show")
@click.argument("agent_id", metavar="ID")
@json_anyway_option
@service_options
@report_errors
def show_agent(agent_id: str, url: str | None, token: str | None) -> None:
    """Print the compiled agent ID as JSON. Secrets are named in it and not shown."""
    with connect_to_service(url, token) as client:
        print_json(client.get_agent_definition(agent_id))


@agents.command("remove")
@click.argument("agent_id", metavar="ID")
@click.confirmation_option(prompt="Remove this agent?", help="Do not ask.")
@service_options
@report_errors
def remove_agent(agent_id: str, url: str | None, token: str | None) -> None:
    """Remove the agent ID. Turns that run go on."""
    with connect_to_service(url, token) as client:
        client.remove_agent_definition(agent_id)
    click.echo(f"{strip_control_chars(agent_id)} is removed.")


@agents.command("schema")
@json_anyway_option
@report_errors
def print_schema() -> None:
    """Print the JSON Schema of the files, so that editors complete them."""
    print_json(build_format_schema())


@agents.command("test")
@FILES_ARGUMENT
@json_option
@service_options
@report_errors
def test_agents(place: Path, as_json: bool, url: str | None, token: str | None) -> None:
    """Ask the pushed agents the prompts under `tests` in PATH, and compare what they answer."""
    problems, tests = check_agent_files(read_agent_files(place))
    if _report_problems(problems, as_json=False):
        raise CommandError("The files have mistakes.")
    if not tests:
        raise CommandError("The files have no tests: add some under 'tests'.")
    with connect_to_service(url, token) as client:
        results = run_agent_tests(client, tests)
    if as_json:
        print_json({"tests": results})
    else:
        for result in results:
            click.echo(strip_control_chars(f"{'ok    ' if result['ok'] else 'FAILED'} {result['name']}"))
            for problem in result["problems"]:
                click.echo(strip_control_chars(f"       {problem}"))
    if failed := [result for result in results if not result["ok"]]:
        raise FilesRefusedError(f"{len(failed)} of {len(results)} tests failed.")


def _push(
    place: Path, expected: int | None, *, as_json: bool, is_trial: bool, url: str | None, token: str | None
) -> JsonObject:
    files = read_agent_files(place)
    _refuse_mistakes(files, as_json=as_json)
    if not files.has_agents:
        raise CommandError(f"{place} defines no agents. To remove an agent, use `fermata agents remove`.")
    body = files.to_body() | {"dryRun": is_trial} | ({} if expected is None else {"version": expected})
    with connect_to_service(url, token) as client:
        try:
            pushed = client.push_agents(body)
        except RequestRefusedError as error:
            problems = error.body.get("problems")
            if not isinstance(problems, list):
                raise
            errors = _report_problems(problems, as_json=as_json)
            raise FilesRefusedError(f"The service refused the files: {_count(errors, 'mistake')}.") from error
    for warning in pushed["warnings"]:
        _print_problem(warning)
    return pushed


def _refuse_mistakes(files: AgentFiles, *, as_json: bool) -> None:
    """Refuse what cannot be sent. The service finds the other mistakes."""
    problems = [mistake.to_json() for mistake in files.mistakes]
    if problems:
        errors = _report_problems(problems, as_json=as_json)
        raise FilesRefusedError(_count(errors, "mistake") + ".")


def _report_problems(problems: list[Any], *, as_json: bool) -> int:
    """Print problems, and return how many of them are mistakes."""
    errors = len([problem for problem in problems if problem["severity"] == "error"])
    if as_json:
        print_json({"status": "failed" if errors else "ok", "problems": problems})
    else:
        for problem in problems:
            _print_problem(problem)
    return errors


def _print_problem(problem: JsonObject) -> None:
    place = ":".join(str(part) for part in (problem["file"], problem["line"]) if part)
    parts = [part for part in (place, problem["severity"], problem["path"]) if part]
    click.echo(strip_control_chars(f"{': '.join(parts)}: {problem['message']}"), err=True)


def _print_changes(pushed: JsonObject) -> None:
    for name in ("added", "changed", "removed"):
        for agent_id in pushed[name]:
            click.echo(f"{agent_id} {name}")
    click.echo(f"{_count(len(pushed['unchanged']), 'agent')} unchanged; version {pushed['version']}.", err=True)


def _exit_if_unchanged(pushed: JsonObject) -> None:
    if not (pushed["added"] or pushed["changed"] or pushed["removed"]):
        raise click.exceptions.Exit(EXIT_CODE_UNCHANGED)


def _show(value: Any) -> str:
    text = strip_control_chars(repr(value)) if value is not None else "nothing"
    return text if len(text) <= 80 else f"{text[:77]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
