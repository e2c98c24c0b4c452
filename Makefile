# Everything here sets itself up: a virtual environment with the locked dependencies, made again when the lock changes.
# Packages that nothing imports are not compiled: they took half of the processor time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DIST := dist
# Many tests wait, so that two cores do with five processes what they would not do faster with two. One file needs none.
WORKERS ?= $(if $(TESTS),0,5)

.PHONY: help setup test together alone quick pythons soak bench profile trace lint changelog subject format lock wheel build release docs clean
.DEFAULT_GOAL := help

help: ## Show what can be made.
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-9s %s\n", $$1, $$2}'

$(READY): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (PYTHON=python3.12 make …)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q -j 0 -x '/kubernetes/client/|/pip/|/setuptools/' $(VENV)/lib reconciler
	@touch $(READY)

setup: $(READY) ## Make the virtual environment.

ifdef TESTS
test: $(READY)
	$(BIN)/pytest -m "not soak" -n $(WORKERS) $(TESTS)
else
test: together alone ## Run the tests; with KUBEBUILDER_ASSETS also those on real Kubernetes clusters.
endif

# What several workers import is compiled once, also where the environment has Python write nothing beside its sources.
together: $(READY) ## Run the tests that run beside one another.
	$(BIN)/python -m compileall -q -x '/(test_[^/]*|conftest)\.py$$' reconciler tests
	$(BIN)/pytest -m "not soak and not alone" -n $(WORKERS)

alone: $(READY) ## Run the tests that need a core of their own: one run of the demo.
	$(BIN)/pytest -m "alone and not soak" $$(grep -rlF mark.alone tests --include='test_*.py')

# The core, its screens, and the habits of the house: no clusters, no downloads.
QUICK := tests/golden tests/unit/api tests/unit/report tests/unit tests/unit/test_changelog.py \
	tests/unit/test_continuous_integration.py tests/unit/test_dependencies.py tests/unit/test_house_rules.py tests/unit/test_package.py

# A hook of Git names its repository in the environment; tests make repositories of their own.
quick: $(READY) ## Run the tests that need neither clusters nor time.
	@env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE $(BIN)/pytest -n auto -q -m "not soak and not apiserver" $(QUICK)

# Pythons up to 3.14 that are newer than the least one, where they are usually installed. The lock serves them all.
PYTHONS ?= $(wildcard $(foreach minor,12 13 14,/usr/bin/python3.$(minor) /usr/local/bin/python3.$(minor) \
	$(HOME)/.pyenv/versions/3.$(minor).*/bin/python3.$(minor)))

# With the packages that a user installs and no others; the demo keeps its promises on embedded clusters.
IMPORTS := import pkgutil, reconciler as r; [__import__(m.name) for m in pkgutil.walk_packages(r.__path__, "reconciler.") if "__" not in m.name]

pythons: ## Import all modules and run the demo with each newer Python that is installed.
	@for python in $(PYTHONS); do own=$(VENV)/$${python##*/}; echo "$$python"; $$python -m venv $$own && \
		$$own/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock && \
		$$own/bin/python -W error -c '$(IMPORTS)' && PYTHONPATH="$(CURDIR)" $$own/bin/python -m reconciler demo || exit 1; done

soak: $(READY) ## Kill the daemon at every fail point, and try thousands of seeds of faults (hours).
	$(BIN)/pytest -m soak -s $(TESTS)

bench: $(READY) ## Measure all figures of docs/performance.md and write it again; with KUBEBUILDER_ASSETS beside kubectl.
	$(BIN)/python -m bench

profile: $(READY) ## Show where the time of a cold plan goes.
	$(BIN)/python -m bench.profile

trace: $(READY) ## Count what runs from a change to its request, and refuse more than the limits.
	$(BIN)/python scripts/trace_reconcile.py

lint: $(READY) ## Check format, style, types and import rules.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_house.py

# Not a part of lint, which runs before a commit: a commit that lacks its line could then not be fixed.
subject: $(READY) ## Check the subject of the commit that is being made.
	$(BIN)/python scripts/check_subjects.py "$$(git rev-parse --git-path COMMIT_EDITMSG)"

changelog: $(READY) ## Check subjects of commits, and that what they change for users is in CHANGELOG.md.
	$(BIN)/python scripts/check_subjects.py
	$(BIN)/python scripts/check_changelog.py

format: $(READY) ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(READY) ## Renew the lock files from pyproject.toml.
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

wheel: $(READY) ## Build into dist/ what a machine or a forge installs: the wheel, its lock, the jobs; offline.
	rm -rf $(DIST)
	$(BIN)/python -m hatchling build -t wheel -d $(DIST)
	cp requirements.lock action.yml ci/gitlab.yml $(DIST)/
	mkdir $(DIST)/comment
	cp ci/github-comment/action.yml $(DIST)/comment/

build: $(READY) ## Build the wheel and the source archive into dist/, offline.
	rm -rf $(DIST)
	$(BIN)/python -m hatchling build -d $(DIST)

release: wheel ## Build into dist/ all that is published, offline: archives, chart, schemas, man pages, packaging.
	$(BIN)/python -m hatchling build -t sdist -d $(DIST)
	$(BIN)/python scripts/make_release.py $(DIST)
	$(if $(shell command -v helm),helm package --destination $(DIST) $(DIST)/chart/fleet-reconciler,@echo "no helm on the PATH: the chart is a folder")

docs: ## Build the pages as a site into dist/site/, where mkdocs-material is installed.
	@command -v mkdocs >/dev/null || { echo "mkdocs is missing: pipx install mkdocs-material --include-deps"; exit 1; }
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet

clean: ## Remove the virtual environment, what was built, and caches.
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.PHONY: demo
demo: $(READY) ## Show a fleet at work on embedded clusters; KEEP=1 leaves it running.
	@$(BIN)/reconciler demo $(if $(KEEP),--keep)
