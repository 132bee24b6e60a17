# Set-up and checks. `make` alone prints the targets.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := tests/data/aime2025_I.csv

.PHONY: help venv demo test lint check bench sbc clean

help:  ## print the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-7s %s\n", $$1, $$2}' Makefile

venv: $(VENV)/.ready  ## create .venv with everything; the commands are .venv/bin/bk-*

$(VENV)/.ready: pyproject.toml benchkit/__init__.py $(wildcard bin/bk-* man/*.[157])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is not Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: venv  ## run the whole pipeline on real results
	@export PATH="$(CURDIR)/$(BIN):$$PATH"; tmp=$$(mktemp -d); trap 'rm -r "$$tmp"' EXIT; \
	run() { printf '\n$$ %s\n' "$$1"; (cd "$$tmp" && eval "$$1"); }; cp $(DATA) "$$tmp"; \
	run 'bk-matrix aime2025_I.csv -o responses.arrow'; \
	run 'bk-irt responses.arrow -o fit.arrow'; \
	run 'bk-metrics fit.arrow --to table'; \
	run 'bk-gaps fit.arrow --to table'; \
	run 'bk-rank responses.arrow --to table'; \
	run 'bk-signflip responses.arrow --to table'

test: venv  ## run all tests, as many files at a time as there are cores
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: venv  ## ruff and mypy, over benchkit/ and bin/
	$(BIN)/ruff check benchkit bin tests
	$(BIN)/ruff format --check benchkit bin tests
	$(BIN)/mypy benchkit
	for f in bin/bk-*; do $(BIN)/mypy "$$f"; done

check: lint test  ## lint and test

bench: venv $(if $(PEERS),bench/venv/.ready)  ## time the commands and the sampler, into bench/; PEERS=1: beside other software, an hour
	$(BIN)/python tests/bench.py
	$(BIN)/python tests/bench_matrix.py $(if $(PEERS),--python bench/venv/bin/python)
	$(BIN)/python tests/bench_irt.py --python $(if $(PEERS),bench/venv/bin/python,$(BIN)/python)
	$(BIN)/python tests/bench_tests.py --python $(if $(PEERS),bench/venv/bin/python,$(BIN)/python)

sbc: venv  ## simulation-based calibration of the sampler, into bench/; 10 minutes
	$(BIN)/python tests/sbc.py

bench/venv/.ready: pyproject.toml
	test -x bench/venv/bin/python || $(PYTHON) -m venv bench/venv
	bench/venv/bin/python -m pip install --quiet --disable-pip-version-check '.[bench-peers]'
	touch $@

clean:  ## remove what the other targets made
	rm -rf $(VENV) build dist bench .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
