# The package: built by the SAM CLI without Docker or credentials, and tried out as AWS runs it.

export ARCHITECTURE ?= arm64
BUILD_DIR ?= .aws-sam/build

SAM := .venv-sam/bin/sam
SAM_READY := .venv-sam/ready
RUNTIME_CLIENT := build/runtime-client
PACKAGES := build/package
export SAM_CLI_TELEMETRY := 0

.PHONY: build packages deploy named-environment deploy-package artefacts package-test deploy-emulated package-before bench-cold

build: $(SAM_READY) ## build what is deployed (ARCHITECTURE=x86_64 for that one)
	bin=$$(infra/find-python313) && export PATH="$$bin:$$PATH" && \
	$(SAM) build --build-dir "$(BUILD_DIR)" --parameter-overrides "Architecture=$(ARCHITECTURE)" && \
	python3.13 infra/finish_build.py "$(BUILD_DIR)" "$(ARCHITECTURE)"

WATCH_MINUTES ?= 10

# Run by the Python of the SAM CLI, which has all that it needs. $(1): the built package, $(2): the verb.
DEPLOY = .venv-sam/bin/python -m infra.operate.deploy "$(ENV)" --template "$(1)/template.yaml" \
  --sam ".venv-sam/bin/python -m infra.operate.sam_with_triggers" --watch-minutes "$(WATCH_MINUTES)" \
  --stack "$(STACK)" --parameters '$(PARAMETERS)' --tables '$(TABLES)' --replace-failed "$(REPLACE_FAILED)" \
  --again 'make $(2) ENV=$(ENV)$(if $(STACK), STACK=$(STACK))$(if $(PACKAGE), PACKAGE=$(PACKAGE))'

deploy: named-environment build ## build and deploy an environment of samconfig.toml (ENV=dev, staging or prod; STACK=name; PARAMETERS="Name=value ..."; REPLACE_FAILED=yes; WATCH_MINUTES=0 does not wait for alarms; TABLES="Wheel=name ..." of a deleted stack)
	$(call DEPLOY,$(BUILD_DIR),$@)

named-environment:
	@test -n "$(ENV)" || { echo "ENV is missing: make deploy ENV=dev (or staging, or prod)" >&2; false; }

deploy-package: named-environment $(SAM_READY) ##o deploy a package of a release (PACKAGE=file.zip ENV=staging; else as deploy) as it is, asking nothing
	rm -rf build/deployed
	python3 -m zipfile -e "$(or $(PACKAGE),$(error PACKAGE=... is missing))" build/deployed
	$(call DEPLOY,build/deployed,$@) --no-questions

packages:
	$(MAKE) build ARCHITECTURE=arm64 BUILD_DIR=$(PACKAGES)/arm64
	$(MAKE) build ARCHITECTURE=x86_64 BUILD_DIR=$(PACKAGES)/x86_64

artefacts: $(VENV)/ready packages sbom ##m build what a release consists of into build/release
	rm -rf build/wheel
	$(IN_CLIENT)/python -m hatchling build --target wheel --directory "$(CURDIR)/build/wheel"
	@$(IN_VENV)/python -m infra.release.artefacts build build/release

package-test: $(VENV)/ready $(RUNTIME_CLIENT) packages ##m boot the built functions in the real Lambda runtime; needs Python 3.13
	PACKAGES="$(PACKAGES)" RUNTIME_CLIENT="$(RUNTIME_CLIENT)" PYTHON313_BIN="$$(infra/find-python313)" \
	$(IN_VENV)/python -m pytest tests/package

MACHINE := $(patsubst aarch64,arm64,$(shell uname -m))

EMULATED := .venv-emulated

deploy-emulated: $(VENV)/ready $(EMULATED)/ready ##m build, deploy to an emulator of AWS by sam deploy, let tasks fire there, and delete it (BEFORE=commit: an update from that one, else from itself); needs Python 3.13 and an idle machine
	$(MAKE) build ARCHITECTURE=$(MACHINE) BUILD_DIR=$(PACKAGES)/$(MACHINE)
	$(if $(BEFORE),$(MAKE) package-before)
	PACKAGE="$(PACKAGES)/$(MACHINE)" BEFORE="$(if $(BEFORE),build/package-before,$(PACKAGES)/$(MACHINE))" SAM="$(SAM)" EMULATOR_PYTHON="$(EMULATED)/bin/python" \
	$(IN_VENV)/python -m pytest tests/emulated

package-before: $(SAM_READY)
	rm -rf build/before build/package-before && mkdir -p build/before
	git archive "$(BEFORE)" | tar -x -C build/before
	bin=$$(infra/find-python313) && export PATH="$$bin:$$PATH" ARCHITECTURE=$(MACHINE) && cd build/before && \
	"$(CURDIR)/$(SAM)" build --build-dir "$(CURDIR)/build/package-before" --parameter-overrides "Architecture=$(MACHINE)" && \
	python3.13 infra/finish_build.py "$(CURDIR)/build/package-before" $(MACHINE)

bench-cold: $(VENV)/ready ##m build, and print what each function costs until its first event, beside a bare boto3
	@$(MAKE) build ARCHITECTURE=$(MACHINE) BUILD_DIR=$(PACKAGES)/$(MACHINE) >&2
	@$(IN_VENV)/python -m bench.cold_starts --build $(PACKAGES)/$(MACHINE) \
	  --python "$$(infra/find-python313)/python3.13"

$(SAM_READY): requirements/sam.txt $(UV)
	rm -rf .venv-sam
	bin=$$(infra/find-python313) && "$$bin/python3.13" -m venv .venv-sam
	$(call INSTALL,.venv-sam/bin/python,requirements/sam.txt)
	touch "$@"

# It runs the functions itself, so it has to be the Python that Lambda has.
$(EMULATED)/ready: requirements/second.txt $(UV)
	rm -rf $(EMULATED)
	bin=$$(infra/find-python313) && "$$bin/python3.13" -m venv $(EMULATED)
	$(call INSTALL,$(EMULATED)/bin/python,requirements/second.txt)
	touch "$@"

# Plays the Lambda base image in package-test; no part of the package.
$(RUNTIME_CLIENT): requirements/runtime.txt $(SAM_READY)
	rm -rf "$@"
	$(call INSTALL,.venv-sam/bin/python,requirements/runtime.txt --target "$@")
	touch "$@"
