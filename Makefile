# One command each. `make demo` and `make test` need Python 3.11 or later and nothing else.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/

# Benchmark data and reference outputs are not part of the project; where they lie beside it, use them.
ifneq ($(wildcard ../shared/data),)
export CONSILIENCE_DATA ?= $(abspath ../shared/data)
endif
ifneq ($(wildcard ../shared/fixtures),)
export CONSILIENCE_FIXTURES ?= $(abspath ../shared/fixtures)
endif

.PHONY: help demo test lint docs bench clean

help:
	@echo "make demo   set up and run the main job on built-in data"
	@echo "make test   set up and run all tests"
	@echo "make lint   ruff, mypy and the import contracts"
	@echo "make docs   the pages and the reference as a site, in docs/_build/html"
	@echo "make bench  speed and memory, as ratios measured in one run"

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "consilience needs Python 3.11 or later. Hint: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready
	$(RUN)consilience demo demo-output

test: $(VENV)/.ready
	$(RUN)python -m pytest -n auto --dist worksteal

lint: $(VENV)/.ready
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy
	$(RUN)lint-imports

docs: $(VENV)/.ready
	rm -rf docs/_build docs/api/generated
	$(RUN)sphinx-build --fail-on-warning --keep-going --quiet --jobs auto docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.ready
	$(RUN)python -m benchmarks.bench_pce

clean:
	rm -rf $(VENV) demo-output docs/_build docs/api/generated
