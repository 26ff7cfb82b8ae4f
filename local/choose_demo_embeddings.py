"""Let a space of the running service be searched by meaning: `python -m local.choose_demo_embeddings SPACE`.

The demo model turns the texts into vectors (decision 0568). Whatever it needs is on this machine.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fermata_client.service.client import FermataClient
from fermata_client.service.connection_files import LOCAL_FILE_NAME, read_connection_file
from fermata_client.service.errors import FermataClientError
from local.demo_model.embedding_route import EMBEDDING_MODEL
from local.demo_model.model_list_routes import MODEL
from local.lock_or_delete_state import STATE_DIRECTORY

PROVIDER, LABEL = "openai", "Demo model: vectors for the search"
API_KEY = "demo"
NO_DEMO_MODEL = (
    "The service runs with a real model, and the demo model does not. Choose a model for embeddings of your own: "
    ".venv/bin/fermata content reindex SITE --credential ID --model ID"
)


def offers_demo_embeddings(connection: Mapping[str, Any]) -> bool:
    """Return whether the demo model answers in the service of a connection file."""
    return connection.get("model") == MODEL


def choose_demo_embeddings(client: FermataClient, space: str) -> int:
    """Choose the demo model's vectors for the search of a space, and index it. It may be repeated.

    Args:
        client: Of a service whose provider `openai` is the demo model.
        space: `<site>/<environment>`.

    Returns:
        How many documents were indexed now.
    """
    own = [one["id"] for one in client.list_credentials() if one["displayLabel"] == LABEL]
    credential = own[0] if own else client.create_credential(PROVIDER, LABEL, api_key=API_KEY)["id"]
    client.set_search_model(space, credential, EMBEDDING_MODEL)
    written, cursor, is_first = 0, "", True
    while is_first or cursor:
        part = client.index_content_part(space, cursor, again=False)
        written, cursor, is_first = written + part["written"], part.get("cursor") or "", False
    return written


def main(state_directory: Path = STATE_DIRECTORY) -> None:
    """Do it for the space that the command line names."""
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("Name the space: make embed SPACE=site/environment (.venv/bin/fermata content list shows them).")
    connection_file = state_directory / LOCAL_FILE_NAME
    if not connection_file.exists():
        sys.exit("No service runs in this folder. Start it with `make run`, and run this in a second terminal.")
    connection, space = read_connection_file(connection_file), sys.argv[1]
    if not offers_demo_embeddings(connection):
        sys.exit(NO_DEMO_MODEL)
    with FermataClient(str(connection["url"]), str(connection["token"])) as client:
        try:
            written = choose_demo_embeddings(client, space)
        except FermataClientError as error:
            sys.exit(f"The search of {space} could not be set up: {error}")
    print(f"{space} is searched by meaning from now on; {written} documents were indexed.")


if __name__ == "__main__":
    main()
