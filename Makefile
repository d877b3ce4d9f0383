# Two commands matter: `make book` and `make test`. Each installs what it needs on first use.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export TOKENIZERS_PARALLELISM := false
export PYDEVD_DISABLE_FILE_VALIDATION := 1

.DEFAULT_GOAL := help
.PHONY: help book test check pages mutants soak notebooks bench clean

help:       ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 20

book: .venv/.ready       ## execute what changed and render the book; ARGS="--only NAME --force" and the like
	$(BIN)/repro book $(ARGS)

test: .venv/.ready       ## run the test suite, offline; on real data too where REPRO_DATA is set
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

check: .venv/.ready      ## style, types, the floors of the package, and its size beside the budgets
	$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/lint-imports
	$(BIN)/python tests/counts.py

pages: .venv/.ready      ## run every notebook with other dims, networks, data and profile, each and in pairs, small: two hours or so
	$(BIN)/python -m tests.pages $(ARGS)

mutants: .venv/.ready    ## make the mistakes of tests/mutants/mutations.toml: would the tests notice?; ARGS="--only losses"
	$(BIN)/python tests/mutants $(ARGS)

soak: .venv/.ready       ## kill, damage, fuzz and crowd it for half an hour: does every promise hold?; ARGS="--only damaged"
	$(BIN)/python -m tests.soak $(ARGS)

notebooks: .venv/.ready  ## write notebooks/*.ipynb for plain papermill and Jupyter
	mkdir -p runs && $(BIN)/repro notebooks

bench: .venv/.ready      ## time our code beside its peers
	$(BIN)/python -m bench $(ARGS)

clean:                   ## remove what was built, not what was changed since; trained artefacts in .repro/ stay
	@if [ -x $(BIN)/repro ]; then $(BIN)/repro clean; else echo "nothing was built here: there is no .venv/"; fi

# torch comes first and alone, so that a machine with its own index of CPU wheels can serve it.
.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet torch==2.13.0 --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --editable '.[all]' --constraint constraints.txt
	touch $@
