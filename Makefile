# `make` lists the commands. They need git, make and Python 3.11 or later, and install everything else.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help install demo run console studio embed console-upload logs reset test lint lock build chaos bench load template instances-template docs token

# The first Python that runs (a version manager's shim may not) and is new enough.
CANDIDATES := python3.13 python3.12 python3.11 python3
FITS := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for it in $(CANDIDATES); do if $$it -c '$(FITS)' >/dev/null 2>&1; then echo $$it; break; fi; done)

UV := .venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11

# Without bytecode each process would compile what it imports: a test run starts hundreds.
unexport PYTHONDONTWRITEBYTECODE

export PROMPT ABOUT # unchanged: a shell would interpret its quotes

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

install: ## create both environments from their locks, with what the tests need
	@$(MAKE) -s --no-print-directory -j2 .venv/.installed .venv-emulator/.installed

# What only the tests need is most of all packages and bytes, and takes most of the time. A demo needs none of it.
.PHONY: runtime
runtime:
	@$(MAKE) -s --no-print-directory -j2 $(if $(wildcard .venv/.installed),.venv/.installed,.venv/.runtime) .venv-emulator/.installed

# Two environments, because the emulator pins an older SDK than the project uses.
INSTALL = $(PYTHON) local/install_environment.py
PROJECTS := layers/fermata client

.venv/.runtime: requirements/runtime.txt layers/fermata/pyproject.toml client/pyproject.toml | python
	@$(INSTALL) .venv requirements/runtime.txt $(PROJECTS)
	@touch $@

.venv/.installed: requirements/dev.txt layers/fermata/pyproject.toml client/pyproject.toml | python
	@$(INSTALL) .venv requirements/dev.txt $(PROJECTS)
	@touch $@

.venv-emulator/.installed: requirements/emulator.txt | python
	@$(INSTALL) .venv-emulator requirements/emulator.txt
	@touch $@

.PHONY: python
python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python 3.11 or later with venv was found (tried: $(CANDIDATES))." >&2; \
		echo "Install one (on Debian and Ubuntu also python3-venv), or name it: make PYTHON=/path/to/python3.12 …" >&2; \
		exit 1; \
	fi

demo: runtime ## run one turn on the local cloud and show what it changed (PROMPT="…" for another)
	@.venv/bin/python -m local demo

run: runtime ## run the service on 127.0.0.1:8787 (FERMATA_PORT) until Ctrl-C, and print a link to its console
	@.venv/bin/python -m local.install_node_packages --optional
	@.venv/bin/python -m local run

console: | python ## print a new link that signs a browser in to the console of the running service
	@.venv/bin/python -m local.console_sign_in

studio: | python ## open the sample project of examples/studio in the running service, and print a link to it
	@.venv/bin/python -m local.open_studio_example

embed: | python ## search SPACE=site/environment of the running service by meaning, with the vectors of the demo model
	@.venv/bin/python -m local.choose_demo_embeddings "$(SPACE)"

console-upload: install ## put the console's files into the bucket of the stack STACK (default: fermata), for the parameter Console
	@$(PYTHON) -m local.install_node_packages
	@.venv/bin/python -m local.console_upload --stack $(or $(STACK),fermata) $(if $(SIGN_IN_URL),--sign-in-url "$(SIGN_IN_URL)")

logs: ## print what the functions of the running service have logged (ABOUT="…" for lines that contain it)
	@.venv/bin/python -m local.logs "$$ABOUT"

reset: | python ## delete the state of `make run`
	@$(PYTHON) -m local.lock_or_delete_state

check: install ## check style, types and the tests that need no cloud, in about two minutes on two idle cores
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@$(MAKE) --no-print-directory -j3 quick-tests-1 quick-tests-2 quick-tests-3 types

.PHONY: check types quick-tests-1 quick-tests-2 quick-tests-3
types:
	@.venv/bin/mypy

# Three parts, because tests also wait. They print their dots into one line, and then their failures.
quick-tests-1 quick-tests-2 quick-tests-3: quick-tests-%:
	@.venv/bin/python -m pytest -q -o console_output_style=classic --part $*/3 -m "not cloud and not browser and not exhaustive"

test: | python ## check everything: style, types, all tests
	@$(MAKE) -s --no-print-directory -j4 .venv/.installed .venv-emulator/.installed chromium node-packages
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@$(MAKE) --no-print-directory -j2 all-tests types

# Three workers, because those that test the cloud mostly wait: 106 of its tests take 82 s instead of 109 on two cores.
# Files in the order of folders: otherwise those with few tests come last, and one of these takes a minute.
# Without percents, because a worker learns what tests a file has when its turn comes (decision 0653).
# Types are checked beside them, because mypy uses one core (decision 0505).
.PHONY: all-tests
all-tests:
	@.venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -o console_output_style=classic

.PHONY: chromium node-packages
chromium: | python
	@$(PYTHON) -m local.install_chromium

# After Chromium, because only one apt can run.
node-packages: | python chromium
	@$(PYTHON) -m local.install_node_packages

lint: install ## check style and types only
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy

lock: install ## resolve the requirements again and write the lock files
	$(UV) layers/dependencies/requirements.in -o layers/dependencies/requirements.txt
	$(UV) --excludes requirements/unused.txt -c layers/dependencies/requirements.txt requirements/runtime.in -o requirements/runtime.txt
	$(UV) --excludes requirements/unused.txt -c requirements/runtime.txt requirements/dev.in -o requirements/dev.txt
	$(UV) requirements/emulator.in -o requirements/emulator.txt

build: ## build for AWS with the SAM CLI
	@command -v sam >/dev/null || { echo "The SAM CLI is missing: pipx install aws-sam-cli (https://docs.aws.amazon.com/serverless-application-model/)." >&2; exit 1; }
	@python3.13 -c '' 2>/dev/null || { echo "python3.13 is missing: the layers are built for it. Install it and put it on the PATH." >&2; exit 1; }
	sam build

chaos: install ## simulate turns under 10,000 faults (FAULTS=…); REAL=1: on the local cloud (at least TURNS=…); KIND=…, FIRST=…, SEED=…: other seeds
	@.venv/bin/python -m $(if $(REAL),tests.chaos.real,tests.chaos) $(if $(KIND),--kind $(KIND)) $(if $(FIRST),--first $(FIRST)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(TURNS),--turns $(TURNS))

bench: install ## measure, print the numbers and write bench/results/latest.json
	@.venv/bin/python -m bench

load: install ## keep 200 paused and 50 streaming turns for five minutes (SECONDS=…), then start as many turns as it takes
	@.venv/bin/python -m bench.load $(if $(SECONDS),--seconds $(SECONDS))

template: install ## write the routes and the console's policy in template.yaml, from the HTTP operations and console/index.html
	@.venv/bin/python -m local.generate_template_routes && .venv/bin/python -m local.generate_console_policy

instances-template: install ## write template-instances.yaml, whose streams run on managed instances (docs/deployment.md)
	@.venv/bin/python -m local.instances_template

docs: install ## write docs/tools.md, docs/modules.md, docs/scale.md and docs/agents.schema.json from the code
	@.venv/bin/python -m local.tools_page && .venv/bin/python -m local.modules_page && .venv/bin/python -m bench.scale_page
	@.venv/bin/fermata agents schema > docs/agents.schema.json

token: runtime ## print a token of the running service
	@.venv/bin/fermata token
