# The package: built by the SAM CLI without Docker or credentials, and tried out as AWS runs it.
#   make build [ARCHITECTURE=x86_64]     what `make deploy` uploads, in .aws-sam/build
#   make deploy [ARCHITECTURE=x86_64]    the guided deploy; its answers are kept in samconfig.toml
#   make package-test                    both architectures built, this machine's booted

AWS_SAM_CLI := aws-sam-cli==1.170.0
AWSLAMBDARIC := awslambdaric==4.2.2
ARCHITECTURE ?= arm64
BUILD_DIR ?= .aws-sam/build

SAM := .venv-sam/bin/sam
SAM_MADE := .venv-sam/made-$(AWS_SAM_CLI)
RUNTIME_CLIENT := build/$(AWSLAMBDARIC)
PACKAGES := build/package
export SAM_CLI_TELEMETRY := 0

.PHONY: build deploy package-test lint-template

$(SAM_MADE):
	rm -rf .venv-sam
	bin=$$(infra/find-python313) && "$$bin/python3.13" -m venv .venv-sam
	.venv-sam/bin/pip install --quiet "$(AWS_SAM_CLI)"
	touch "$@"

# Plays the Lambda base image in package-test; no part of the package.
$(RUNTIME_CLIENT): $(SAM_MADE)
	rm -rf "$@"
	.venv-sam/bin/pip install --quiet --target "$@" "$(AWSLAMBDARIC)"

build: $(SAM_MADE)
	bin=$$(infra/find-python313) && export PATH="$$bin:$$PATH" && \
	$(SAM) build --build-dir "$(BUILD_DIR)" --parameter-overrides "Architecture=$(ARCHITECTURE)" && \
	python3.13 infra/finish_build.py "$(BUILD_DIR)" "$(ARCHITECTURE)"

deploy: build
	$(SAM) deploy --guided

package-test: $(RUNTIME_CLIENT)
	$(MAKE) build ARCHITECTURE=arm64 BUILD_DIR=$(PACKAGES)/arm64
	$(MAKE) build ARCHITECTURE=x86_64 BUILD_DIR=$(PACKAGES)/x86_64
	PACKAGES="$(PACKAGES)" RUNTIME_CLIENT="$(RUNTIME_CLIENT)" PYTHON313_BIN="$$(infra/find-python313)" \
	.venv/bin/python -m pytest tests/package

lint-template:
	.venv/bin/cfn-lint template.yaml
