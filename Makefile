# The one door: set-up, training, tests, checks. Needs Python 3.10 or newer and make; everything else comes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The default config of `make train`; any other: make train CONFIG=configs/Market1501/bagtricks_R50.yml
CONFIG ?= configs/Synthetic/quick.yml
OPTS ?=

.DEFAULT_GOAL := help
.PHONY: help setup train test test-all check format bench

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv and install everything into it

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit("Python 3.10 or newer is needed, this is %d.%d" % v[:2] if v < (3, 10) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): a few minutes and about 6 GB where torch comes with CUDA"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

train: $(READY) ## train on the rendered pedestrians, into a new folder output/NAME-N (CONFIG=..., OPTS="KEY VALUE ...")
	@name=$$(basename $(CONFIG) .yml); number=1; \
	while [ -e "output/$$name-$$number" ]; do number=$$((number + 1)); done; \
	$(BIN)/python tools/train_net.py --config-file $(CONFIG) OUTPUT_DIR "output/$$name-$$number" $(OPTS)

test: $(READY) ## the fast tests
	@$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: $(READY) ## all tests, slow ones included
	@$(BIN)/python -m pytest -q -n 2

check: $(READY) ## lint, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy fastreid_lite

format: $(READY) ## format, and mend what lint can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## what things cost, as ratios in one run
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done
