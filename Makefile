# Everything runs in .venv, which the first command that needs it makes.
# PYTHON=python3.12 chooses the Python; ARGS='--port 9000' goes to JupyterLab.

SHELL = /bin/sh
PY = .venv/bin/python
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help lab test test-slow lint test-fast test-notebooks notebooks explorers bench lab-ready dev-ready

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s%s\n", $$1, $$2}' Makefile

lab: lab-ready  ## open JupyterLab at the course
	@$(PY) -m attn_course lab -- $(ARGS)

test: lint test-fast test-notebooks  ## run all tests, and the notebooks under nbval

lint: dev-ready  ## check style, types and who imports whom
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright
	.venv/bin/lint-imports --no-cache

test-fast: dev-ready  ## run the tests, without the notebooks
	$(PY) -m pytest -n 2 --dist loadgroup -m "not slow"

test-notebooks: dev-ready  ## execute the notebooks and compare their outputs
	$(PY) -m pytest --nbval -n 2 --dist loadfile notebooks solutions

test-slow: dev-ready  ## run the tests that take minutes each
	$(PY) -m pytest -m slow

notebooks: dev-ready  ## build notebooks/, exercises/ and solutions/ from chapters/
	$(PY) -m attn_course build

explorers: dev-ready  ## write docs/explorers.html: every interactive view, without a kernel
	$(PY) -m attn_course explorers

bench: dev-ready  ## print the side-by-side ratios
	$(PY) -m benchmarks

lab-ready:
	@scripts/set_up.sh lab

dev-ready:
	@scripts/set_up.sh dev
