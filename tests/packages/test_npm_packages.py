"""The npm packages are formatted and typed, and work in a project that installs them from their tarballs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from bench.package_sizes import SIZED_ENTRIES, SizedEntry, measure_gzipped_size
from tests.packages.node_tests import CLIENT, PACKAGES, require_node_packages

pytestmark = pytest.mark.exhaustive
TSC = PACKAGES / "node_modules/.bin/tsc"
CONSUMER = Path(__file__).with_name("consumer.ts")
COMPILER_OPTIONS = {
    "strict": True,
    "target": "es2022",
    "lib": ["es2022", "dom", "dom.iterable"],
    "module": "nodenext",
    "types": [],
    "outDir": "out",
}


def run(*command: str | Path, folder: Path) -> str:
    """Run a command, and return what it prints.

    Raises:
        AssertionError: It failed; the message has what it printed.
    """
    environment = {**os.environ, "npm_config_offline": "true", "npm_config_update_notifier": "false"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_packages_are_formatted_linted_and_typed() -> None:
    require_node_packages()
    run("npx", "--no-install", "biome", "check", "--error-on-warnings", ".", "../console", folder=PACKAGES)
    run(TSC, "--build", folder=PACKAGES)
    run(TSC, "-p", "console.tsconfig.json", folder=PACKAGES)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project that has installed the client from its tarball, without a network."""
    require_node_packages()
    packed = json.loads(run("npm", "pack", "--json", "--pack-destination", tmp_path, folder=CLIENT))
    (tmp_path / "package.json").write_text(json.dumps({"name": "consumer", "private": True, "type": "module"}))
    run("npm", "install", "--no-audit", "--no-fund", tmp_path / packed[0]["filename"], folder=tmp_path)
    return tmp_path


def test_the_client_installs_into_an_empty_project_that_type_checks_and_runs(project: Path) -> None:
    (project / "consumer.ts").write_text(CONSUMER.read_text())
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER_OPTIONS, "include": ["*.ts"]}))
    run(TSC, "-p", "tsconfig.json", folder=project)
    program = "import { run } from './out/consumer.js'; console.log(typeof run)"
    assert run("node", "--input-type=module", "-e", program, folder=project) == "function\n"
    assert not (project / "node_modules/@fermata/client/test").exists()
    installed = {path.name for path in (project / "node_modules").iterdir()}
    assert installed - {".package-lock.json"} == {"@fermata"}


def test_the_plugin_of_grapesjs_installs_with_its_types_and_the_file_for_pages_without_modules(project: Path) -> None:
    packed = json.loads(run("npm", "pack", "--json", "--pack-destination", project, folder=PACKAGES / "grapesjs"))
    run("npm", "install", "--no-audit", "--no-fund", project / packed[0]["filename"], folder=project)
    (project / "consumer.ts").write_text(CONSUMER.with_name("grapesjs_consumer.ts").read_text())
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER_OPTIONS, "include": ["*.ts"]}))
    run(TSC, "-p", "tsconfig.json", folder=project)
    bundle = "console.log(typeof require('grapesjs-fermata/umd'))"
    assert run("node", "--input-type=commonjs", "-e", bundle, folder=project) == "function\n"
    installed = {path.name for path in (project / "node_modules").iterdir()}
    assert installed - {".package-lock.json"} == {"@fermata", "grapesjs-fermata"}


def test_the_panel_installs_with_its_element_s_type_and_is_bundled_and_imported_without_a_browser(
    project: Path,
) -> None:
    """Its parser is packed from the workspace, so that no network is needed."""
    for folder in (PACKAGES / "node_modules/marked", PACKAGES / "panel"):
        packed = json.loads(run("npm", "pack", folder, "--json", "--pack-destination", project, folder=project))
        run("npm", "install", "--no-audit", "--no-fund", project / packed[0]["filename"], folder=project)
    (project / "consumer.ts").write_text(CONSUMER.with_name("panel_consumer.ts").read_text())
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER_OPTIONS, "include": ["*.ts"]}))
    run(TSC, "-p", "tsconfig.json", folder=project)
    program = "import { run } from './out/consumer.js'; console.log(typeof run)"
    assert run("node", "--input-type=module", "-e", program, folder=project) == "function\n"
    esbuild = PACKAGES / "node_modules/.bin/esbuild"
    run(esbuild, "consumer.ts", "--bundle", "--format=esm", "--outfile=out/bundle.js", folder=project)
    assert "fermata-panel" in (project / "out/bundle.js").read_text()
    assert (project / "node_modules/@fermata/panel/dist/LICENSE").exists()


@pytest.mark.parametrize("entry", SIZED_ENTRIES, ids=lambda entry: entry.key)
def test_a_package_is_as_small_as_it_says(entry: SizedEntry) -> None:
    require_node_packages()
    assert measure_gzipped_size(entry.path) <= entry.max_bytes
