# Every target works on a fresh clone: the virtual environment is made when it is missing.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WORKSPACE ?= .
AGENT ?= claude
ARGS ?=
CELLS ?=
PARTS ?=
comma := ,

.PHONY: help run test test-e2e test-e2e-rootless test-vm matrix fuzz bench lint type arch check docs image clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	@scripts/venv "$(PYTHON)"
	@touch $@

run: $(READY) ## Open a session here: make run [WORKSPACE=DIR] [AGENT=claude] [ARGS="..."]
	@scripts/engine-packages
	@$(BIN)/podbot setup --yes $(if $(filter-out claude custom,$(AGENT)),--agents claude$(comma)$(AGENT))
	@$(BIN)/podbot run --workspace "$(WORKSPACE)" --agent $(AGENT) -- $(ARGS)

test: $(READY) ## Fast tests: no engine, no network
	$(BIN)/pytest -n 2 --dist loadfile tests

test-e2e: $(READY) ## Real engine, real image; prepares both, and fails when it cannot
	@scripts/e2e

test-e2e-rootless: $(READY) ## The same as an ordinary user on rootless Podman; root makes one for the run
	@scripts/e2e-rootless

test-vm: $(READY) ## What depends on the engine and systemd, in an emulated Debian 13 with Podman 5; PARTS="newcomer …" for some
	@scripts/vm test $(PARTS)

matrix: $(READY) ## Drive each agent with each client and write docs/reference/clients.md; CELLS="python/claude …" for some
	@scripts/e2e $(BIN)/python -m e2e.matrix $(CELLS)

docs: $(READY) ## Write the parts of docs/ and config.example.toml that are made from podbot/agents/
	$(BIN)/python -m tests.agents.pages

fuzz: $(READY) ## Fuzz both filters for FUZZ_SECONDS=60, guided by coverage
	@scripts/fuzz

bench: $(READY) ## podbot beside podman: figures, never pass or fail
	@scripts/e2e $(BIN)/python -m e2e.bench

image: $(READY) ## Build the sandbox image: make image [AGENTS=claude,codex]
	@scripts/engine-packages
	@$(BIN)/podbot setup --yes $(if $(AGENTS),--agents $(AGENTS))

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(READY) ## mypy --strict
	$(BIN)/mypy

arch: $(READY) ## import-linter: one direction of imports
	$(BIN)/lint-imports

check: lint type arch ## What CI runs first
	$(BIN)/coverage run -m pytest -q tests
	$(BIN)/coverage report --fail-under=80
	$(BIN)/coverage report --include='podbot/launch/*,podbot/config/merge.py,podbot/protocol/*' --fail-under=100

clean: ## Remove what the targets above made here
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .e2e .vm dist build
