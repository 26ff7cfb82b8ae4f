"""Open the sample project of the studio in the running service: `python -m local.open_studio_example`."""

import json
import sys
from pathlib import Path

from fermata_client.commands.workspace.project_archive import read_project_archive
from fermata_client.service.client import FermataClient
from fermata_client.service.connection_files import LOCAL_FILE_NAME, read_connection_file
from fermata_client.service.errors import FermataClientError
from local.choose_demo_embeddings import choose_demo_embeddings, offers_demo_embeddings
from local.console_sign_in import make_sign_in_link
from local.lock_or_delete_state import STATE_DIRECTORY

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "studio"
EXAMPLE_SPACE = "village-bakery/main"
TITLE = "Village bakery"


def open_studio_example(client: FermataClient, space: str = EXAMPLE_SPACE) -> bool:
    """Make the sample project with a change set that waits, and return whether it is new. One that is there stays.

    Args:
        client: Of the service.
        space: Where the project is made.
    """
    site, _, environment = space.partition("/")
    known = {(one["site"], one["environment"]) for one in client.list_content_spaces()}
    files = read_project_archive(EXAMPLE)
    if (site, environment or "main") not in known:
        locales = json.loads(files[".contentrain/config.json"])["locales"]["supported"]
        client.create_content_space(space, locales, TITLE)
    if any(not model["builtIn"] and model["documents"] for model in client.list_content_models(space)):
        return False
    client.import_project_files(space, files)
    waiting = json.loads((EXAMPLE / "change-set.json").read_text("utf-8"))
    change_set = client.begin_change_set(space, waiting["title"])
    for document in waiting["documents"]:
        change = {"locales": document["locales"]}
        client.change_in_change_set(space, change_set, document["model"], document["id"], change)
    return True


def main(state_directory: Path = STATE_DIRECTORY) -> None:
    connection_file = state_directory / LOCAL_FILE_NAME
    if not connection_file.exists():
        sys.exit("No service runs in this folder. Start it with `make run`, and run this in a second terminal.")
    connection = read_connection_file(connection_file)
    with FermataClient(str(connection["url"]), str(connection["token"])) as client:
        try:
            is_new = open_studio_example(client)
            if is_new and offers_demo_embeddings(connection):
                choose_demo_embeddings(client, EXAMPLE_SPACE)
        except FermataClientError as error:
            sys.exit(f"The sample project could not be opened: {error}")
    told = "The sample project is there." if is_new else "The sample project is there already, and stays as it is."
    print(f"{told}\n{make_sign_in_link(str(connection['url']), state_directory, f'studio/{EXAMPLE_SPACE}')}")


if __name__ == "__main__":
    main()
