"""Start the command line `fermata`. Each command is a file in a folder of `commands/`."""

import click

from fermata_client.commands.common.report_wrong_usage import UsageReportingGroup
from fermata_client.commands.deployment.billing import billing
from fermata_client.commands.deployment.dead_letters import dead_letters
from fermata_client.commands.deployment.doctor import doctor
from fermata_client.commands.deployment.tables import tables
from fermata_client.commands.deployment.tenants import tenant
from fermata_client.commands.setup.completion import completion
from fermata_client.commands.setup.connect import connect
from fermata_client.commands.setup.print_token import token
from fermata_client.commands.turns.chat import chat
from fermata_client.commands.turns.edit import edit
from fermata_client.commands.turns.undo import undo
from fermata_client.commands.workspace.agents import agents
from fermata_client.commands.workspace.api_keys import api_keys
from fermata_client.commands.workspace.approvals import approvals
from fermata_client.commands.workspace.audit import audit
from fermata_client.commands.workspace.content import content
from fermata_client.commands.workspace.conversations import conversations
from fermata_client.commands.workspace.credentials import credentials
from fermata_client.commands.workspace.defaults import defaults
from fermata_client.commands.workspace.listen import listen
from fermata_client.commands.workspace.models import models
from fermata_client.commands.workspace.policy import policy
from fermata_client.commands.workspace.privacy import privacy
from fermata_client.commands.workspace.queue import queue
from fermata_client.commands.workspace.secrets import secrets
from fermata_client.commands.workspace.tools import tools
from fermata_client.commands.workspace.webhooks import webhooks


@click.group(cls=UsageReportingGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fermata-client", prog_name="fermata")
def main() -> None:
    """Fermata from the command line: edit a page, ask a question, manage keys, models and tenants.

    The service runs at http://127.0.0.1:8787 after `make run`; `fermata connect` saves the address of another one.

    Exit codes: 0 changed or answered, 1 failed, 2 wrong usage, 3 nothing changed, 130 stopped.
    """


main.add_command(edit)
main.add_command(undo)
main.add_command(chat)
main.add_command(conversations)
main.add_command(content)
main.add_command(credentials)
main.add_command(api_keys)
main.add_command(agents)
main.add_command(secrets)
main.add_command(tools)
main.add_command(webhooks)
main.add_command(listen)
main.add_command(approvals)
main.add_command(policy)
main.add_command(queue)
main.add_command(models)
main.add_command(defaults)
main.add_command(audit)
main.add_command(connect)
main.add_command(token)
main.add_command(privacy)
main.add_command(tenant)
main.add_command(billing)
main.add_command(tables)
main.add_command(dead_letters)
main.add_command(doctor)
main.add_command(completion)
