# Everything happens in $(VENV), which is made once and again only when pyproject.toml or the grammar changes.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
QUICK := language parse project check session procedures networks trace engines

.PHONY: run test quick setup test-slow bench lint docs pictures experiments references models

# the tests are two processes on two cores and start hundreds more: threads of BLAS would take time from each other, and
# without files of bytecode each process would compile the package for itself
test quick test-slow: export OMP_NUM_THREADS = 1
unexport PYTHONDONTWRITEBYTECODE

run: $(STAMP)
	$(BIN)/python programs/digits.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# what one runs between two edits: no posteriors, no generated programs, no processes, no documents
quick: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 -m "not slow and not thorough" $(addprefix tests/,$(QUICK)) --deselect tests/trace/test_power.py

setup: $(STAMP)

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(STAMP)
	$(BIN)/python -m tests.benchmarks

docs: $(STAMP)
	$(BIN)/python docs/editors/grammar.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo build/site/index.html

pictures: $(STAMP)
	$(BIN)/python programs/pictures.py

# DATA names a folder with the papers' data sets; without it they are generated
experiments: $(STAMP)
	$(BIN)/python programs/papers/experiments.py $(if $(DATA),--data $(DATA))

# DATA names the folder with the data and the reference draws
references: $(STAMP)
	$(BIN)/python programs/references/references.py $(DATA)

# models of the field by auto, on generated data
models: $(STAMP)
	$(BIN)/python programs/models/models.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml grammar/venture.lark grammar/tables.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,examples]'
	@touch $@
