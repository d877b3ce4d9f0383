# Two commands matter: `make book` and `make test`. Each installs what it needs on first use.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export TOKENIZERS_PARALLELISM := false
export PYDEVD_DISABLE_FILE_VALIDATION := 1

.DEFAULT_GOAL := help
.PHONY: help book test check pages mutants soak notebooks bench clean install lock

help:       ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 20

book: .venv/.ready       ## execute what changed and render the book; ARGS="--only NAME --force" and the like
	$(BIN)/repro book $(ARGS)

# Every process of the suite would compile all it imports, and all tests, where nothing compiled is kept
test: export PYTHONDONTWRITEBYTECODE :=
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

# Every file that is installed is named by its hash, and comes ready built: a source package may fetch anything while it
# is built. SOURCES names those that are taken as source all the same, such as pytrec-eval-terrier and wordllama on Linux on ARM.
# torch has a step of its own, for it may come from another index than all else, TORCH_INDEX=URL, and a wheel that lies
# at hand (pip's find-links) goes before any index, which pip would prefer. CUDA's libraries follow where it is PyPI's build. A torch of this version that is in .venv already stays, whatever its build.
BY_HASH := --quiet --require-hashes --no-deps --only-binary :all: $(SOURCES:%=--no-binary %)
LOCKS := constraints.txt constraints-torch.txt constraints-cuda.txt

.venv/.ready: pyproject.toml $(LOCKS)
	$(PYTHON) -m venv .venv
	$(MAKE) install PYTHON=$(BIN)/python
	touch $@

install:                 ## install all into the Python that PYTHON names, as conda and Binder do
	$(PYTHON) -m pip install $(BY_HASH) --requirement constraints.txt
	$(PYTHON) -m pip install $(BY_HASH) --no-index --requirement constraints-torch.txt 2> /dev/null || \
	$(PYTHON) -m pip install $(BY_HASH) $(TORCH_INDEX:%=--index-url %) --requirement constraints-torch.txt
	$(PYTHON) -m pip show torch | grep -q '^Version: .*+' || \
	$(PYTHON) -m pip install $(BY_HASH) --requirement constraints-cuda.txt
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --editable .

PIN := uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-annotate \
	--custom-compile-command 'make lock'
# the options that leave out what other files pin; /;/! of these only what is installed everywhere
without = $$(sed -nE '$(2)s/^([A-Za-z0-9._-]+)==.*/--no-emit-package \1/p' $(1))

lock:                    ## write the pins anew from pyproject.toml, with uv; versions stay unless ARGS="--upgrade"
	@$(PIN) $(ARGS) --extra all pyproject.toml --constraint constraints-torch.txt --output-file constraints.txt \
		$(call without,constraints-torch.txt constraints-cuda.txt)
	@$(PIN) $(ARGS) constraints-torch.txt --constraint constraints.txt --output-file constraints-cuda.txt \
		$(call without,constraints.txt constraints-torch.txt)
	@echo jupyterlab | $(PIN) $(ARGS) - --constraint constraints.txt --output-file binder/jupyterlab.txt \
		$(call without,constraints.txt,/;/!)
