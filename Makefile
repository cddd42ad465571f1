# Everything a contributor does, by one verb each. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# Without its bytecode kept, each process of the tests and each local stack compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
IN_VENV := $(VENV)/bin
UV := $(IN_VENV)/uv
SOURCES := layers/core functions local infra tests bench docs client
IN_CLIENT := cd client && $(CURDIR)/$(IN_VENV)

.PHONY: help local test test-all console-test typescript-test screenshots second-opinion check format examples openapi cost model soak fuzz prove bench bench-cpu bench-modules bench-patches bench-advance bench-catch-up bench-crowd bench-slow-lane bench-priorities \
  audit admin-key reconcile dead-letters redrive-dead-letters pins sbom licences advisories supply-test release release-test fresh clean

help: ## list what can be made
	@$(call VERBS,##)
	@echo; echo "Operators, of a deployed stack:"; $(call VERBS,##o)
	@echo; echo "Maintainers:"; $(call VERBS,##m)

VERBS = grep -hE '^[a-z-]+:.* $(1) ' $(MAKEFILE_LIST) | awk -F ':.* $(1) ' '{printf "  make %-20s %s\n", $$1, $$2}'

local: $(VENV)/ready ## run the whole service on this machine, on 127.0.0.1:8080 (PORT=n; LOCAL_AUTH=on asks for API keys; FAULTS=0.05 lets things go wrong)
	@PYTHONPATH=layers/core $(IN_VENV)/python -m local

QUICK := -m "not (exhaustive or soak or stack)"
LONG := -m "exhaustive or soak or stack or hypothesis"

test: $(VENV)/ready ## run the tests but for the long ones: every behaviour once
	HYPOTHESIS_PROFILE=quick $(IN_VENV)/python -m pytest -n auto $(QUICK)
	HYPOTHESIS_PROFILE=quick $(IN_CLIENT)/python -m pytest -n auto $(QUICK)

SAMPLES := $(VENV)/samples

test-all: test $(SAMPLES) ## run the long tests, too: each case and each crash, soaks, stacks, properties with more examples
	$(IN_VENV)/python -m pytest -n auto $(LONG)
	$(IN_CLIENT)/python -m pytest -n auto $(LONG)

BROWSER := $(VENV)/browser

console-test: $(BROWSER) ## drive the console in a headless Chromium; needs one on the PATH, or CHROMIUM=path
	CHROMIUM="$$(infra/find-chromium)" $(IN_VENV)/python -m pytest -n 2 --dist loadfile tests/console

TYPESCRIPT := .venv-typescript

typescript-test: $(VENV)/ready $(TYPESCRIPT)/ready ## generate, compile and run the TypeScript client of the docs; needs node and npm
	$(IN_VENV)/python -m pytest tests/typescript

screenshots: $(BROWSER) ##m take the pictures of the console that the docs show
	@CHROMIUM="$$(infra/find-chromium)" PYTHONPATH=layers/core $(IN_VENV)/python -m docs.screenshots.make

CHECKS := $(VENV)/checks
SECOND := .venv-second
SUPPLY := .venv-supply

second-opinion: $(VENV)/ready $(SECOND)/ready ##m run the workflow tests on ministack in the place of moto
	SECOND_OPINION=$(SECOND)/bin/python $(IN_VENV)/python -m pytest -n auto $(QUICK) tests/workflows

check: $(CHECKS) ## format, lint, types, import rules, template, and that the environment has all that its packages need
	$(IN_VENV)/python -m pip check
	$(IN_VENV)/ruff format --check $(SOURCES)
	$(IN_VENV)/ruff check $(SOURCES)
	$(IN_VENV)/mypy
	$(IN_CLIENT)/mypy --config-file pyproject.toml
	PYTHONPATH=layers/core $(IN_VENV)/lint-imports --no-cache
	$(IN_VENV)/cfn-lint template.yaml infra/observability.yaml infra/deploy_role.yaml
	$(IN_VENV)/python -m pytest tests/check
	$(IN_CLIENT)/python -m pytest tests/check

format: $(CHECKS) ## format the sources, and fix what ruff can fix
	$(IN_VENV)/ruff format $(SOURCES)
	$(IN_VENV)/ruff check --fix $(SOURCES)
	$(IN_VENV)/python client/make_sync.py

examples: $(VENV)/ready ##m generate the examples in docs/api.md and docs/xtimer.md, and the tables of all pages that follow from the code
	@PYTHONPATH=layers/core $(IN_VENV)/python -m docs.tables
	@PYTHONPATH=layers/core $(IN_VENV)/python -m docs.examples.make

openapi: $(VENV)/ready ##m generate the API documents from the tables of calls, the rules, docs/api.md and docs/xtimer.md
	@PYTHONPATH=layers/core $(IN_VENV)/python -m docs.openapi.make

cost: $(VENV)/ready ## print what a deployment costs at list prices
	@PYTHONPATH=layers/core $(IN_VENV)/python -m bench.cost

model: $(VENV)/ready ##m print how late tasks would be on AWS, by a model of it
	@PYTHONPATH=layers/core $(IN_VENV)/python -m bench.cloud

TASKS ?= 1000
SEED ?= 1
PER_SECOND ?= 2
WORLDS ?= 1
DAY ?= 1200
SOAK = @PYTHONPATH=layers/core PYTHONHASHSEED=0 $(IN_VENV)/python -m tests.simulation

soak: $(VENV)/ready ## let everything go wrong by chance (TASKS=n SEED=s) and hold the promises against it
	$(SOAK) --tasks $(TASKS) --seed $(SEED) --per-second $(PER_SECOND) --worlds $(WORLDS) --day $(DAY)

EXAMPLES ?= 250

fuzz: $(VENV)/ready ## ask every call what the API document allows and forbids (EXAMPLES=n of each for a call, SEED=s), and hold each answer against it
	FUZZ_EXAMPLES=$(EXAMPLES) FUZZ_SEED=$(SEED) $(IN_VENV)/python -m pytest -n auto -m exhaustive tests/fuzz

CROWDS = tests/simulation/test_crowd.py tests/simulation/test_call_limit.py tests/workflows/delivery/test_circuit_breaker.py \
  tests/local/test_watchdogs.py tests/functions/test_key_prefix_in_bulk.py

prove: $(VENV)/ready ##m prove it at length: generated stories, ways through the model of the line, long soaks, 100,000 tasks
	HYPOTHESIS_PROFILE=prove $(IN_VENV)/python -m pytest -n auto -m hypothesis
	HYPOTHESIS_PROFILE=prove $(IN_VENV)/python -m pytest -n auto $(CROWDS)
	PYTHONPATH=layers/core $(IN_VENV)/python -m tests.line.search --seconds 900
	$(SOAK) --tasks 8000 --seed $(SEED) --per-second 2 --worlds 4
	$(SOAK) --tasks 100000 --seed $(SEED) --per-second 200 --worlds 2

BENCH := .venv-bench

bench: $(VENV)/ready $(BENCH)/ready ##m measure the local stack, and Celery, Procrastinate and APScheduler beside it
	@PYTHONPATH=layers/core $(IN_VENV)/python -m bench.one_machine

bench-cpu: $(VENV)/ready ##m print what a delivered task costs in CPU, singly and in batches, beside an UpdateItem of boto3
	@PYTHONPATH=layers/core $(IN_VENV)/python -m bench.cpu_per_task

bench-patches: $(VENV)/ready ##m print what each patch of moto and of the SDK saves tests, in CPU time
	@PYTHONPATH=layers/core:. $(IN_VENV)/python -m bench.moto_patches

bench-advance: $(VENV)/ready ##m print what a run costs when the movable clock is advanced (HOURS=n)
	@PYTHONPATH=layers/core:. $(IN_VENV)/python -m bench.advance

bench-modules: $(VENV)/ready ##m print which modules of the core a warm create and the delivery of a page pass
	@PYTHONPATH=layers/core $(IN_VENV)/python -m bench.modules_passed

bench-priorities: $(VENV)/ready ##m print how late tasks of high priority are beside a flood that a rate limit works off
	@PYTHONPATH=layers/core $(IN_VENV)/python -m bench.priorities

bench-slow-lane: $(VENV)/ready ##m print how late a quick business is beside a slow one, with and without the slow lane
	@PYTHONPATH=layers/core PYTHONHASHSEED=0 $(IN_VENV)/python -m bench.slow_lane

bench-crowd: $(VENV)/ready ##m print how 20,000 tasks on one second meet AWS's limits, with and without shards
	@PYTHONPATH=layers/core PYTHONHASHSEED=0 $(IN_VENV)/python -m bench.crowded_second

bench-catch-up: $(VENV)/ready ##m print the load of catching up with an hour's outage
	@PYTHONPATH=layers/core $(IN_VENV)/python -m bench.catching_up

audit: $(VENV)/ready ##o print what is inconsistent (API_URL=..., FROM=..., TO=...); fails if anything is
	@PYTHONPATH=layers/core:. $(IN_VENV)/python -m infra.operate.audit "$(or $(API_URL),http://127.0.0.1:8080)" \
	$(if $(FROM),--from "$(FROM)") $(if $(TO),--to "$(TO)")

admin-key: $(VENV)/ready ##o put a first API key into a deployed stack (STACK=name), an admin of all businesses, and print it once
	@PYTHONPATH=layers/core:. $(IN_VENV)/python -m infra.operate.admin_key "$(or $(STACK),$(error STACK=... is missing))"

reconcile: $(VENV)/ready ##o print the tasks that a stack (STACK=name) has lost, also of restored tables (WHEEL=..., REGISTRY=...); WRITE=yes repairs them (OVERDUE=deliver or expire, PER_SECOND=n)
	@PYTHONPATH=layers/core:. $(IN_VENV)/python -m infra.operate.reconcile "$(or $(STACK),$(error STACK=... is missing))" \
	  $(if $(WHEEL),--wheel "$(WHEEL)") $(if $(REGISTRY),--registry "$(REGISTRY)") \
	  $(if $(OVERDUE),--overdue "$(OVERDUE)") $(if $(filter command line,$(origin PER_SECOND)),--per-second "$(PER_SECOND)") \
	  $(if $(filter yes,$(WRITE)),--write)

dead-letters: $(VENV)/ready ##o list the dead-letter queue (QUEUE_URL=...), and leave it as it is
	@PYTHONPATH=layers/core:. $(IN_VENV)/python -m infra.operate.dead_letters "$(or $(QUEUE_URL),$(error QUEUE_URL=... is missing))"

redrive-dead-letters: $(VENV)/ready ##o move its messages (QUEUE_URL=...) back to the queues of their lanes (SLICE_QUEUE_URL=..., SLOW_QUEUE_URL=...), or messages of the ingest queue to INGEST_QUEUE_URL=...
	@PYTHONPATH=layers/core:. $(IN_VENV)/python -m infra.operate.dead_letters "$(or $(QUEUE_URL),$(error QUEUE_URL=... is missing))" \
	  $(if $(INGEST_QUEUE_URL),--redrive-to-ingest "$(INGEST_QUEUE_URL)",--redrive-to \
	  "$(or $(SLICE_QUEUE_URL),$(error SLICE_QUEUE_URL=... is missing))" \
	  "$(or $(SLOW_QUEUE_URL),$(error SLOW_QUEUE_URL=... is missing))")

PIN = $(IN_VENV)/uv pip compile --quiet --universal --no-header --no-annotate --no-emit-index-url --generate-hashes --upgrade

pins: $(UV) ##m choose versions for the requirements files, with the hash of every file
	$(PIN) --python-version 3.11 pyproject.toml -o layers/vendor/requirements.txt
	$(PIN) --python-version 3.11 requirements/dev.in -o requirements/dev.txt
	$(PIN) --python-version 3.11 requirements/check.in -o requirements/check.txt
	$(PIN) --python-version 3.11 requirements/browser.in -o requirements/browser.txt
	$(PIN) --python-version 3.11 requirements/samples.in -o requirements/samples.txt
	$(PIN) --python-version 3.11 requirements/second.in -o requirements/second.txt
	$(PIN) --python-version 3.11 requirements/bench.in -o requirements/bench.txt
	$(PIN) --python-version 3.11 requirements/uv.in -o requirements/uv.txt
	$(PIN) --python-version 3.11 requirements/supply.in -o requirements/supply.txt
	$(PIN) --python-version 3.13 requirements/sam.in -o requirements/sam.txt
	$(PIN) --python-version 3.13 requirements/runtime.in -o requirements/runtime.txt

sbom: $(VENV)/ready $(SUPPLY)/ready ##m write what is deployed, and what the tools are, as CycloneDX into build/
	@$(IN_VENV)/python -m infra.release.sbom build

# As the packages word them. What is deployed is handed on, so its licences may ask for nothing but to be named.
PERMISSIVE := Apache-2.0;Apache Software License;Apache-2.0 OR BSD-2-Clause;Apache-2.0 OR BSD-3-Clause;BSD-2-Clause; \
  BSD-3-Clause;BSD License;MIT;MIT License;MIT-0;PSF-2.0
OF_TOOLS := Apache-2.0 AND CNRI-Python;MPL-2.0 AND (Apache-2.0 OR MIT);MIT AND PSF-2.0;MIT OR Apache-2.0;MPL-2.0;Mozilla Public License 2.0 (MPL 2.0)
# Its metadata name no licence: it is MIT by its LICENSE file, and axe-core, which it brings, MPL-2.0.
LICENCES = $(SUPPLY)/bin/pip-licenses --python $(IN_VENV)/python
DEPLOYED := layers/vendor/requirements.txt
DEPLOYED_NAMES = $$(sed -n 's/==.*//p' $(DEPLOYED))

licences: $(CHECKS) $(SUPPLY)/ready ##m print the licences of what is deployed, and of tools; fails for one that is not allowed
	@echo "What is deployed:"; $(LICENCES) --packages $(DEPLOYED_NAMES) --allow-only "$(PERMISSIVE)"
	@echo "Tools:"; $(LICENCES) --ignore-packages $(DEPLOYED_NAMES) axe-playwright-python --allow-only "$(PERMISSIVE);$(OF_TOOLS)"

advisories: $(SUPPLY)/ready ##m ask OSV for known vulnerabilities of what is pinned; fails if there is one
	@infra/release/advisories $(DEPLOYED) $(sort $(wildcard requirements/*.txt))

supply-test: $(CHECKS) $(SUPPLY)/ready ##m test the three above: all licences are allowed, the bills are whole, advisories are found
	$(IN_VENV)/python -m pytest tests/supply

release: $(VENV)/ready ##m make a release (VERSION=1.2.3) of main: changelog, version, artefacts, commit and tag, and no push (DRY_RUN=1 only says what)
	@$(IN_VENV)/python -m infra.release.release "$(or $(VERSION),$(error VERSION=... is missing))"

# What a new version could break; all else has passed before.
release-test: $(VENV)/ready
	$(IN_VENV)/python -m pytest -n auto tests/infra/test_release.py tests/upgrade

fresh: ##m run what README.md says in a clone with an empty HOME, no caches and a minimal PATH (QUICK=1 leaves the tests out; PORT=n)
	@infra/release/fresh-machine

clean: ## remove what was made
	rm -rf $(VENV) .venv-* .aws-sam build .pytest_cache .mypy_cache .ruff_cache .hypothesis client/.*_cache

# Nothing is installed that is not, byte for byte, what was pinned. The files name all that the packages need, so nothing is looked
# for; `make check` holds it. uv takes two seconds where pip takes twenty. It does not read pip's configuration: where it finds
# no index, or there is no uv for the machine, pip installs the same. $(1): a Python, $(2): a requirements file.
PINNED = --quiet --require-hashes --no-deps
BY_PIP = -m pip install $(PINNED) --disable-pip-version-check --no-compile -r
INSTALL = $(UV) pip install $(PINNED) --python $(1) -r $(2) || $(1) $(BY_PIP) $(2)

$(UV): requirements/uv.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(IN_VENV)/python $(BY_PIP) $< || echo "there is no uv for this machine; pip is slower"
	@touch $@

$(VENV)/ready: requirements/dev.txt layers/vendor/requirements.txt $(UV)
	$(call INSTALL,$(IN_VENV)/python,requirements/dev.txt)
	@touch $@

$(CHECKS): requirements/check.txt $(VENV)/ready
	$(call INSTALL,$(IN_VENV)/python,requirements/check.txt)
	@touch $@

$(BROWSER): requirements/browser.txt $(VENV)/ready
	$(call INSTALL,$(IN_VENV)/python,requirements/browser.txt)
	@touch $@

$(SAMPLES): requirements/samples.txt $(VENV)/ready
	$(call INSTALL,$(IN_VENV)/python,requirements/samples.txt)
	@touch $@

$(SECOND)/ready: requirements/second.txt $(UV)
	rm -rf $(SECOND)
	$(PYTHON) -m venv $(SECOND)
	$(call INSTALL,$(SECOND)/bin/python,requirements/second.txt)
	@touch $@

$(BENCH)/ready: requirements/bench.txt $(UV)
	rm -rf $(BENCH)
	$(PYTHON) -m venv $(BENCH)
	$(call INSTALL,$(BENCH)/bin/python,requirements/bench.txt)
	@touch $@

$(TYPESCRIPT)/ready: requirements/typescript/package-lock.json
	rm -rf $(TYPESCRIPT)
	cp -R requirements/typescript $(TYPESCRIPT)
	npm ci --prefix $(TYPESCRIPT) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(SUPPLY)/ready: requirements/supply.txt $(UV)
	rm -rf $(SUPPLY)
	$(PYTHON) -m venv $(SUPPLY)
	$(call INSTALL,$(SUPPLY)/bin/python,requirements/supply.txt)
	@touch $@

include infra/build.mk
