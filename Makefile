# Every target works on a fresh clone: the virtual environment is made when it is missing.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
FOR_RUNNING := .venv/.runs
SITE_READY := .venv/.site-ready
WORKSPACE ?= .
AGENT ?= claude
ARGS ?=
CELLS ?=
PARTS ?=
VERSION ?=
RUNS ?= 1
BUSY ?= 0

.PHONY: help run link gate gate-user test smoke test-all test-deep test-random test-inside test-e2e test-e2e-rootless test-vm conformance matrix fuzz bench lint type arch check parts site docs test-pythons image release dist clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	@scripts/venv "$(PYTHON)"
	@touch $(FOR_RUNNING) $@

# What running podbot needs, without the development tools.
$(FOR_RUNNING): pyproject.toml
	@scripts/venv --run "$(PYTHON)"
	@touch $@

run: $(FOR_RUNNING) ## Open a session here: make run [WORKSPACE=DIR] [AGENT=claude] [ARGS="..."]
	@$(if $(filter .,$(WORKSPACE)),echo "This is podbot's own clone. To work on a project of yours: make run WORKSPACE=~/src/shop" >&2)
	@$(BIN)/podbot setup --yes $(filter-out custom,$(AGENT))
	@scripts/link --check
	@$(BIN)/podbot run --workspace "$(WORKSPACE)" --agent $(AGENT) -- $(ARGS)

link: $(FOR_RUNNING) ## Put podbot on your PATH: a link in ~/.local/bin
	@scripts/link

test: $(READY) ## Fast tests: no engine, no network; with the coverage that is required
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -q -n 3 --dist loadfile -p tests.worker_coverage tests
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --fail-under=80
	$(BIN)/coverage report --skip-covered --include='podbot/launch/*,podbot/config/merge.py,podbot/protocol/*' --fail-under=100

smoke: $(READY) ## About forty end-to-end tests, for the promises of README's first screen, with the image's build
	@scripts/smoke

gate: ## What CI runs, on a fresh clone of HEAD: the steps with their times; on success, HEAD's id in .git/gate-passed
	@scripts/gate

gate-user: $(READY)
	@scripts/gate-user

test-deep: $(READY) ## The fast tests with ten times the examples of each property, new ones each time
	@DEEP_EXAMPLES=1 scripts/recorded test-deep scripts/test-random

test-random: $(READY) ## The fast tests in random order: RUNS=20 BUSY=4 for so many times beside four busy processes; PAUSES=1; SEED=n
	@scripts/recorded test-random scripts/test-random $(RUNS) $(BUSY)

test-inside: $(READY) ## The tests of what runs inside a sandbox, with each Python from 3.8 on that is found here
	@scripts/recorded test-inside $(BIN)/python -m tests.inside

test-pythons: $(READY) ## The fast tests with each Python from 3.11 on that is found here, each in an environment of its own
	@scripts/recorded test-pythons $(BIN)/python -m tests.pythons

test-e2e: $(READY) ## Real engine, real image; prepares both, and fails when it cannot
	@scripts/recorded test-e2e scripts/e2e

test-e2e-rootless: $(READY) ## The same as an ordinary user on rootless Podman; root makes one for the run
	@scripts/recorded test-e2e-rootless scripts/e2e-rootless

test-all: $(READY) ## All that this machine can run: the gate's checks, the site, each Python found, both end-to-end suites
	@$(MAKE) --no-print-directory check site test test-inside test-pythons
	@scripts/e2e-both

test-vm: $(READY) ## What depends on the engine and systemd, in an emulated Debian 13 with Podman 5; PARTS="newcomer …" for some
	@scripts/vm test $(PARTS)

conformance: $(READY) ## Suites that others wrote for MCP, Inspect, LangChain, SWE-ReX, weakincentives and Podman's exec, and a turn of Claude Code and Codex: docs/reference/conformance.md says what passes
	@scripts/e2e scripts/e2e-suite -q e2e/test_mcp_conformance.py e2e/test_mcp_agents.py e2e/test_inspect.py e2e/test_deepagents.py e2e/test_swerex.py e2e/test_weakincentives_filesystem.py
	@PODBOT_E2E_IMAGE=$$($(BIN)/python -c 'from podbot.images.recipe import load_recipe; print(load_recipe().image)') \
		scripts/e2e-rootless scripts/e2e-suite -q e2e/test_podman_suite.py

matrix: $(READY) ## Drive each agent with each client and write docs/reference/clients.md; CELLS="python/claude …" for some
	@scripts/e2e $(BIN)/python -m e2e.matrix $(CELLS)

parts: $(READY) ## Write the parts of docs/ and config.example.toml that are made from the code, and the manual page
	$(BIN)/python -m tests.agents.pages
	$(BIN)/python -m tests.cli.manpage
	$(BIN)/python -m tests.cli.help_pages

$(SITE_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

site: $(SITE_READY) ## Build the site from docs/ into build/site, strictly, with no network; open build/site/index.html
	rm -rf build/site
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -d build/site-cache docs build/site
	$(BIN)/python -m tests.site build/site

docs: parts site ## Both: write the generated parts, then build the site

fuzz: $(READY) ## Fuzz the filters and the channel to a guest for FUZZ_SECONDS=60, guided by coverage
	@scripts/fuzz

bench: $(READY) ## podbot beside podman: figures, never pass or fail
	@scripts/e2e $(BIN)/python -m e2e.bench

image: $(FOR_RUNNING) ## Build the sandbox image: make image [AGENTS=claude,codex]
	@$(BIN)/podbot setup --yes $(if $(AGENTS),--agents $(AGENTS))

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(READY) ## mypy --strict
	$(BIN)/mypy

arch: $(READY) ## import-linter: one direction of imports
	$(BIN)/lint-imports

check: $(READY) ## What CI runs first: rules, types and the direction of imports, at the same time
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint type arch

release: $(READY) ## Version, changelog, sdist and wheel into dist/: make release VERSION=X.Y.Z; see RELEASING.md
	@$(BIN)/python scripts/release.py prepare "$(VERSION)"
	@git commit --quiet --message "Release $(VERSION)" podbot/_version.py CHANGELOG.md
	@$(MAKE) --no-print-directory dist

dist: $(READY) ## Build the sdist and the wheel of the last commit, twice, and compare them
	@rm -rf dist
	@$(BIN)/python scripts/release.py build dist

clean: ## Remove what the targets above made here
	rm -rf .venv .pythons .results .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .e2e .vm dist build
