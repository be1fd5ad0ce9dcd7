# Everything runs in a virtual environment that `make setup` builds from pyproject.toml and constraints.txt.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
WELL := .venv-well

.PHONY: help setup demo test test-slow pressure bench reproduce site wheel-check lint format clean

help: ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | column -t -s '|'

setup: $(VENV)/.dev ## build the virtual environment

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.crosscheck: $(VENV)/.dev
	$(RUN)/pip install --quiet --constraint constraints.txt --editable '.[dev,crosscheck,examples]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(RUN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

# The Well's package needs versions that ours cannot have, so its loader reads our files in an environment of its own.
$(WELL)/.ready: constraints-well.txt
	$(PYTHON) -m venv $(WELL)
	$(WELL)/bin/pip install --quiet --constraint constraints-well.txt the_well
	touch $@

demo: setup ## simulate the four systems and show them on one page
	$(RUN)/hybridworld demo

test: setup ## the tests: minutes on two cores
	$(RUN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/.crosscheck $(WELL)/.ready ## the long checks, also against packages that nobody here wrote
	HYBRIDWORLD_WELL_PYTHON=$(CURDIR)/$(WELL)/bin/python $(RUN)/python -m pytest -m slow

pressure: setup ## the server under load, malformed requests and killed workers: minutes; see docs/serving.md
	$(RUN)/python -m tests.serve.pressure

bench: setup ## measure solvers, data and training; writes docs/benchmarks/
	$(RUN)/hybridworld bench solvers --out docs/benchmarks/solvers.md
	$(RUN)/hybridworld bench data --out docs/benchmarks/data.md
	$(RUN)/hybridworld bench train --out docs/benchmarks/training.md

reproduce: setup ## every table and figure of the paper, tiny: minutes; see docs/reproducing.md for more
	$(RUN)/hybridworld reproduce all --scale smoke

site: $(VENV)/.docs ## the documentation as a site: out/site/index.html; a dead link or a missing page is an error
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict

wheel-check: setup ## build sdist and wheel, install the wheel into an empty environment and forecast there
	rm -rf out/dist out/wheel
	$(RUN)/python -m build --outdir out/dist .
	$(RUN)/python -m tests.wheel out/dist
	$(PYTHON) -m venv out/wheel/venv
	out/wheel/venv/bin/pip install --quiet --constraint constraints.txt out/dist/*.whl
	mkdir -p out/wheel/empty
	cd out/wheel/empty && env -u PYTHONPATH ../venv/bin/hybridworld predict euler2d --count 2

lint: setup ## style and types
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

format: setup ## let ruff arrange the code
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

clean: ## remove the virtual environments and caches
	rm -rf $(VENV) $(WELL) .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
