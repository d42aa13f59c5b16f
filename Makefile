# make help lists the targets. Each creates what it needs; nothing is installed outside .venv.

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
PINS  := $(VENV)/pins.txt
LOWEST := .venv-lowest

# make package installs the wheel alone, beside the packages of .venv; make NO_DEPS= package installs all that it needs.
NO_DEPS := --no-deps

# The first Python on the PATH that is new enough; override with: make PYTHON=/path/to/python demo
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,$(shell \
	$(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))

# Setting up compiles nothing, since most modules are never imported. What is imported is compiled once, also where the
# environment forbids that.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest faults lint bench bench-scale results notebooks docs package jar clean

# A process runs whole files, in the order of tests/conftest.py.
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(READY) ## index, train and compare on the embedded collection: one table, one picture
	$(BIN)/python -m pipelines.quickstart

test: $(READY) ## run the tests in a few minutes, in as many processes as there are cores, but no more than four
	$(PYTEST) -n logical --maxprocesses 4 -m "not long"

# The longer tests often wait for processes that they start, so one more process runs them than there are cores.
test-all: test ## run the tests, and then those that take longer
	$(PYTEST) -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --maxprocesses 4 -m long

test-lowest: ## run the tests with the oldest versions that pyproject.toml allows, in an environment of their own
	@test -x $(LOWEST)/bin/uv || { "$(PYTHON)" -m venv $(LOWEST) && $(LOWEST)/bin/python -m pip install --quiet uv; }
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
		--editable '.[dev,notebooks]'
	$(LOWEST)/bin/python -m pytest -W ignore -m "not long"

faults: $(READY) ## attack everything with hostile frames, kills, damage, full disks and many at once; takes hours
	PT_NEURAL_FAULTS=long $(BIN)/python -m pytest tests/faults

lint: $(READY) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(READY) ## measure speed beside peers; set PT_NEURAL_COLLECTIONS to a folder of collections for real data
	@mkdir -p build && rm -f build/ratios.csv
	@for script in $(filter-out benchmarks/quality.py,$(wildcard benchmarks/*.py)); do \
		echo "== $$script"; PT_NEURAL_RATIOS=build/ratios.csv $(BIN)/python $$script || exit 1; done
	$(BIN)/python benchmarks/parts/picture.py build/ratios.csv build/speed.png

bench-scale: $(READY) ## measure speed, memory and disk at 100,000 and a million documents; takes an hour
	$(BIN)/python benchmarks/growth.py --large
	$(BIN)/python benchmarks/retrieval_blocks.py --documents 1000000 5000000 20000000

results: $(READY) ## repeat the runs of RESULTS.md, on the collections of PT_NEURAL_COLLECTIONS; takes hours; goes on where it stopped
	$(BIN)/python -m pipelines.results --again

notebooks: $(READY) ## execute the notebooks and store their outputs
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

docs: $(VENV)/.docs ## build the documentation into build/docs
	@rm -rf build/pages && mkdir -p build && cp -r pt_neural/pt_docs build/pages && cp -r notebooks build/pages/notebooks
	$(BIN)/python -m sphinx -W --keep-going -n -q build/pages build/docs
	@echo "open build/docs/index.html"

package: $(VENV)/.package ## build wheel and sdist into build/dist, and use the wheel in an empty environment
	rm -rf build/dist build/empty
	$(BIN)/python -m build --outdir build/dist .
	"$(PYTHON)" -m venv build/empty
	[ -z "$(NO_DEPS)" ] || $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$(build/empty/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"
	build/empty/bin/python -m pip install --quiet $(NO_DEPS) build/dist/*.whl
	build/empty/bin/python -c 'from importlib.metadata import metadata; print(metadata("pt-neural").get_payload())' \
		> build/dist/README.md
	$(BIN)/python -m readme_renderer build/dist/README.md > build/dist/README.html
	cd build/empty && bin/python ../../.ci/smallest_use.py

jar: $(READY) ## compile the Java of pt_neural/lucene/java; needs a JDK 21 or newer
	$(BIN)/python -m pt_neural.lucene.java.compile

clean: ## remove the virtual environment and the caches of the tools
	rm -rf $(VENV) $(LOWEST) .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "pt_neural needs Python 3.11 or newer and found none on the PATH;" \
		"install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1)' || { \
		echo "$(PYTHON) is not Python 3.11 or newer; name another: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import shutil, sys; free = shutil.disk_usage(".").free / 1e9; \
		free >= 5 or sys.exit(f"the environment needs about 5 GB of disk, and {free:.1f} GB are free here")'
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment;" \
		"on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	@grep -v '^torch==' constraints.txt > $(VENV)/hashed.txt
	@sed -e '/^ *--hash/d' -e 's/ *\\$$//' constraints.txt > $(PINS)
	$(BIN)/python -m pip install --quiet --no-compile --no-deps --require-hashes --requirement $(VENV)/hashed.txt
	$(BIN)/python -m pip install --quiet --no-compile --constraint $(PINS) --editable '.[dev,notebooks]'
	@touch $(READY)

$(VENV)/.package: $(READY)
	$(BIN)/python -m pip install --quiet --no-compile --constraint $(PINS) --editable '.[package]'
	@touch $@

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --no-compile --constraint $(PINS) --editable '.[docs]'
	@touch $@
