# Each target sets up what it needs: Python 3.11 or newer and make are enough.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
COMPILING := $(VENV)/.compiling
SERVER := $(VENV)/.server
EXAMPLE := $(VENV)/.example
SPARK  := $(VENV)/.spark
NODE   := $(VENV)/.node

.PHONY: up example test explain-sweep slow pipeline compiled wheel test-compiled machine shipped check format lint types fast mutants pins promises sweep histories explore spec soak chaos roll pyright spark bench mixes instructions bench-workers bench-console profile crowd simbench fuzz fuzz-web docs site clean help

# Thousands of processes are started by the tests. Each would compile all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# Spark is 800 MB with all that it needs: only who tests the pipeline waits for it.
$(SPARK): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,spark,readers]'
	@touch $@

# ioredis and node-redis, for the tests with them; without node they are skipped.
$(NODE): $(STAMP) tests/cluster/javascript/package-lock.json
	$(BIN)/python -m tests.cluster.nodejs
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# What runs nodes needs none of what develops them.
$(SERVER): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[server]'
	@touch $@

# In the compiled form if it was built of this source; `up` tells which form runs.
up: $(SERVER) ## run a three-node cluster on loopback until Ctrl-C
	@PYTHONSAFEPATH=1 PYTHONPATH="$$($(BIN)/python -m compiling.layout)" \
		$(BIN)/disque-trio up --nodes 3 --port 7711

$(EXAMPLE): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[example]'
	@touch $@

example: $(EXAMPLE) ## a small shop, with a worker and a node that are killed
	@$(BIN)/python -m examples.shop.run

# What runs in one process shares the cores first; the rest, which often waits, takes three.
test: $(SPARK) $(NODE) ## every check, and the tests but for the slow ones
	$(MAKE) --jobs=2 --output-sync pipeline lint types machine shipped instructions
	$(BIN)/python -m pytest -n 3 -m 'not soak and not pins and not slow' --durations=60 --durations-min=5 \
		--ignore=tests/statemachine --ignore=tests/pipeline --ignore=$(SHIPPED)

# In one process: a JVM and its processes are many.
pipeline: $(SPARK)
	$(BIN)/python -m pytest -m 'not spark and not slow' tests/pipeline

$(COMPILING): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[compiled]'
	@touch $@

compiled: $(COMPILING) ## the compiled form, in build/compiled; needs a C compiler
	$(BIN)/python -m compiling.build

wheel: $(COMPILING) ## a wheel of the compiled form, in dist; needs a C compiler
	DISQUE_FORM=compiled $(BIN)/python -m pip wheel --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation --wheel-dir dist .
	@ls -t dist/*.whl | head -1

# The folder stands before the source, and Python must not look into the current one first.
AS_COMPILED := PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/compiled:$(CURDIR)

test-compiled: export PYTHONSAFEPATH = 1
test-compiled: export DISQUE_FORM = compiled
# Nothing of the tcp engine is compiled, and it plays in real time, in `make test`.
test-compiled: compiled ## tests of what is compiled, in that form; forty runs of the simulator in both forms
	PYTHONPATH=$(CURDIR)/build/compiled $(BIN)/python -m pytest -q -n 2 -m 'not pure and not soak and not pins and not slow' \
		tests/compiling/test_form.py tests/compiling/test_wheel.py tests/statemachine tests/wire tests/driver tests/node tests/net \
		tests/tracing tests/sim/checkers tests/sim/engines tests/sim/model tests/sim/workload \
		tests/sim/test_determinism.py tests/cluster/test_conformance.py \
		--ignore=tests/sim/engines/test_tcp_engine.py
	$(BIN)/python -m compiling.digests --seeds 40
	$(MAKE) instructions FORM=compiled

machine: $(STAMP)
	$(BIN)/python -m pytest -p tests.line_coverage -m 'not slow' tests/statemachine
	$(BIN)/coverage report --include='disque_trio/statemachine/*' --fail-under=100 --skip-covered --show-missing

SHIPPED := tests/sim/scenarios/test_shipped.py

shipped: $(STAMP)
	$(BIN)/python -m pytest -m 'not slow' $(SHIPPED)

check: $(STAMP) ## what to run before a commit; less than a minute
	$(MAKE) --jobs=2 --output-sync lint types fast

# In one process: to share these many small tests out among several takes half as much time again.
fast: $(STAMP)
	$(BIN)/python -m pytest -q tests/statemachine tests/wire \
		tests/test_tidy.py tests/test_style.py tests/test_citations.py tests/test_pages.py tests/test_docs.py

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(STAMP) ## format and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin -p disque_trio

sweep: $(STAMP) $(filter compiled,$(FORM)) ## seeds 0 to SEEDS (300) of the one swarm, of all features and faults; OUT=folder goes on where it stopped; FORM=compiled
	$(if $(filter compiled,$(FORM)),$(AS_COMPILED)) $(BIN)/python -m disque_trio sim sweep scenarios/everything.toml \
		--require-marks --seeds 0:$(or $(SEEDS),300) $(if $(OUT),--out $(OUT))

slow: $(SPARK) $(NODE) ## the tests that `make test` leaves out: sweeps, and most of many similar tests
	$(BIN)/python -m pytest -n 3 -m 'slow and not spark' --durations=60 --durations-min=5

pins: $(STAMP) ## run every plan that once found something
	$(BIN)/python -m pytest -q -m pins tests/sim/test_pins.py

explore: $(STAMP) ## visits every state of small clusters; SCOPES='requeue moving' SECONDS=600 for each
	$(BIN)/python -m disque_trio sim explore $(SCOPES) --seconds $(or $(SECONDS),600)

promises: $(STAMP) ## ignores options one at a time, until the judge notices each
	$(BIN)/python -m tests.sim.promises

mutants: $(STAMP) ## mistakes, one at a time, until the judge finds each; DRAWN=300 drawn ones; ONLY='name ...' SEEDS=200 MINUTES= BUDGET=
	$(BIN)/python -m tests.sim.mutants $(ONLY) --seeds $(or $(SEEDS),200) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(BUDGET),--budget $(BUDGET)) $(if $(DRAWN),--drawn $(DRAWN) --draw $(or $(DRAW),0)) $(MUTANTS)

histories: $(STAMP) ## SEEDS (200) of the one swarm, judged by rows and by what clients saw; ONLY='scenarios/unique.toml ...'
	$(BIN)/python -m tests.sim.histories $(ONLY) --seeds $(or $(SEEDS),200)

spec: $(STAMP) ## checks the specification in docs/spec with TLC, and holds seeds 0 to SEEDS (10) against it; ONLY='Job-once ...' models only
	$(BIN)/python -m tests.spec $(ONLY)
	$(if $(ONLY),,$(BIN)/python -m tests.spec.validating 0:$(or $(SEEDS),10))
	$(if $(ONLY),,$(BIN)/python -m tests.spec.validating_keys 0:$(or $(SEEDS),10))

soak: $(STAMP) ## ten minutes of mixed load with a node killed every 20 s
	$(BIN)/python -m pytest -m soak -s --timeout=1200 tests/cluster

chaos: $(STAMP) ## MINUTES (10) of kills, power cuts, lost packets and cuts at five real nodes, judged by what their clients saw; SEED= PROXIES=1
	$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(if $(PROXIES),--proxies)

roll: $(STAMP) ## rolls a cluster from the commit OLD (85a2abcb) to this version and back, under load
	$(BIN)/python -m tests.rolling $(or $(OLD),85a2abcb)

fuzz: $(STAMP) ## MINUTES (10) of hostile bytes at a real cluster, and half as long at each parser
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10)

fuzz-web: $(STAMP) ## MINUTES (10) of hostile bytes at a web port
	$(BIN)/python -m tests.fuzz web --minutes $(or $(MINUTES),10)

pyright: $(STAMP) ## what users' type checkers make of the clients, by pyright too
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[types]'
	$(BIN)/python -m pytest -q tests/client/test_typed.py

spark: $(SPARK) ## the data pipeline at full size, on a Spark cluster on loopback
	$(BIN)/python -m pytest -m spark -s --timeout=1800 tests/pipeline

bench: $(STAMP) $(filter compiled,$(FORM)) ## the product beside other queues that are installed, and AGAINST=PATH; ONLY=case,... ROUNDS=3 FORM=compiled
	$(if $(filter compiled,$(FORM)),$(AS_COMPILED)) $(BIN)/python -m benchmarks --json bench.json --rounds $(or $(ROUNDS),3) \
		$(if $(AGAINST),--against $(AGAINST)) $(if $(ONLY),--only '$(ONLY)') $(BENCH)

bench-workers: $(STAMP) $(filter compiled,$(FORM)) ## our worker library beside others, with redis-server; ONLY=load,... ROUNDS=3 FORM=compiled
	$(if $(filter compiled,$(FORM)),$(AS_COMPILED)) $(BIN)/python -m benchmarks jobs --json bench-workers.json \
		--rounds $(or $(ROUNDS),3) $(if $(ONLY),--only '$(ONLY)') $(BENCH)

mixes: $(STAMP) $(filter compiled,$(FORM)) ## resident memory against maxmemory in ten mixes of jobs; ONLY=mix,... FORM=compiled
	$(if $(filter compiled,$(FORM)),$(AS_COMPILED)) $(BIN)/python -m benchmarks mixes --json mixes.json \
		$(if $(ONLY),--only '$(ONLY)') $(BENCH)

# Counts do not depend on what else the machine does. Without valgrind nothing is counted.
instructions: $(STAMP) $(filter compiled,$(FORM)) ## instructions of each operation beside those recorded; ONLY=case,... RECORD='reason' FORM=compiled
	$(if $(filter compiled,$(FORM)),$(AS_COMPILED)) $(BIN)/python -m benchmarks instructions \
		$(if $(ONLY),--only '$(ONLY)') $(if $(RECORD),--record '$(RECORD)') $(BENCH)

profile: $(STAMP) ## where a node's time goes, case by case; ONLY=case,...
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[profile]'
	$(BIN)/python -m benchmarks profile $(if $(ONLY),--only '$(ONLY)') $(BENCH)

crowd: $(STAMP) ## what a client waits among 11,000 others, slow readers and a flood of connections
	$(BIN)/python -m benchmarks crowd

# The second run has few queues and 10,000 jobs a second: what a console costs that looks on.
bench-console: $(STAMP) ## the console in Chromium with 100,000 queues and 2 million jobs; what it costs the node
	$(BIN)/python -m benchmarks console
	$(BIN)/python -m benchmarks console --no-browser --queues 100 --jobs 1000 --rate 10000

explain-sweep: $(STAMP) ## do the rules of `explain` and the simulator agree?
	$(BIN)/python -m tests.explain.sweep 0:$(or $(SEEDS),5)

simbench: $(STAMP) $(filter compiled,$(FORM)) ## speed of the simulator, cost of gossip, duplicates by cause
	$(if $(filter compiled,$(FORM)),$(AS_COMPILED)) $(BIN)/python -m benchmarks sim --json simbench.json
	$(BIN)/python -m benchmarks duplicates --seeds 0:50

docs: $(STAMP) ## write the generated pages anew
	$(BIN)/python -m disque_trio.docs docs
	$(BIN)/python -m disque_trio.sim.reference > docs/scenario-keys.md

site: $(STAMP) ## the documentation as a site, in site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
