# Everything a developer needs. `make run` and `make test` work on a fresh machine with Python 3.11+.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
RUN    := $(VENV)/.run
JOBS   ?= auto
REPOS  ?= ../repositories
COMPILE := uv pip compile pyproject.toml --universal --generate-hashes --no-header -q
SCALE  := $(patsubst %,tests/faults/test_%.py,server_faults run_ends scale postgres_disk)
RUNTIME := $(patsubst %,tests/skills/test_%.py,catalogue exposure exposure_edits exposure_store library library_prompts lru_cache prompt registry variables) \
	$(patsubst %,tests/skills/sessions/test_%.py,agent_session explanations load_limits load_properties loads meta_tools tool_mapping triggered_skills)

.PHONY: help run dist test faults faults-scale check format trace bench bench-trail bench-ranking bench-discovery bench-catalog bench-skills bench-runtime bench-scale bench-team bench-guards bench-knowledge bench-asking bench-routing bench-idle simulate-scale coverage-skills lock reference docs pictures clean

help:            ## what can be made
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+: +##' $(MAKEFILE_LIST) | sed -E 's/: *.*## */\t/' | expand -t 18

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) tools/setup_venv.py $(VENV) requirements.lock --compile
	@touch $(RUN) $@

$(RUN): requirements-run.lock pyproject.toml
	@$(PYTHON) tools/setup_venv.py $(VENV) requirements-run.lock
	@touch $@

run: $(RUN)      ## install what running needs, show Clew on examples in two screens, and serve one until Ctrl-C
	@$(BIN)/clew demo start

dist: $(RUN)     ## build a wheel into dist/
	@rm -rf dist && $(BIN)/python -m hatchling build -t wheel -d dist

test: $(STAMP)   ## set up and run all tests
	@$(PYTHON) tools/setup_system.py
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

faults: $(STAMP) ## kill the team around every event of its work, from the plan to the merge (takes an hour or more)
	@$(BIN)/python -m pytest tests/faults/test_team_crash.py --full -n $(JOBS) $(ARGS)

faults-scale: $(STAMP) ## all rounds of faults on PostgreSQL and NATS: kills, crashes, cuts, clocks, 20 workers (takes 20 minutes)
	@$(BIN)/python -m pytest $(SCALE) --full -n 0 $(ARGS)

check: $(STAMP)  ## format, lint, types, layers (no tests)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

format: $(STAMP) ## rewrite the code in house style
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

trace: $(STAMP)  ## every requirement with its tests, and those without
	@$(BIN)/python tools/trace.py

coverage-skills: $(STAMP) ## that tests take every branch of the modules that decide what an agent has
	@$(BIN)/coverage run -m pytest -n 0 -p no:cacheprovider $(RUNTIME)
	@$(BIN)/coverage report

bench: bench-ranking bench-discovery bench-catalog bench-skills bench-runtime bench-team bench-guards bench-knowledge bench-asking bench-trail bench-scale ## all benchmarks, side by side with the peers

bench-trail: $(STAMP)   ## speed of the trail next to bare SQLite, Chroma, LanceDB, PostgreSQL
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/trail.py $(ARGS)

bench-ranking: $(STAMP) ## ranking quality on ../shared/data next to the single arms
	@$(BIN)/python benchmarks/ranking.py $(ARGS)

bench-discovery: $(STAMP) ## how well tools and skills are found, next to FTS5, FastMCP and pydantic-ai
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/discovery.py $(ARGS)

bench-catalog: $(STAMP) ## speed of ask and get next to FastMCP's search transform
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/catalog.py $(ARGS)

bench-skills: $(STAMP) ## speed of skills next to skills-ref, FastMCP's skills and pydantic-ai's toolsets
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/skills.py $(ARGS)

bench-runtime: $(STAMP) ## steps, crashes, contexts, sandbox and conversations of the runtime next to LangGraph and DBOS
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/runtime.py $(ARGS)

bench-scale: $(STAMP) ## a trail on PostgreSQL next to DBOS, LangGraph, bare psycopg and LanceDB; ends with 1 where a promise is not kept
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/scale.py $(ARGS)

bench-team: $(STAMP) ## speed of the team next to a supervisor in LangGraph; ends with 1 where a promise is not kept
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/team.py $(ARGS)

bench-guards: $(STAMP) ## whether forbidden calls of AgentDojo's attacks are refused in an agent, its child and grandchild
	@$(PYTHON) tools/setup_venv.py $(VENV)-bench requirements-bench.lock
	@$(VENV)-bench/bin/python benchmarks/guards.py $(ARGS)

bench-knowledge: $(STAMP) ## what is known: beliefs, calls, localisation, speed of the index; repositories in REPOS
	@$(BIN)/python benchmarks/knowledge_all.py --repos $(REPOS) $(ARGS)

bench-asking: $(STAMP) ## how well questions are answered, next to full text, its fusion with vectors, and ripgrep; repositories in REPOS
	@$(BIN)/python benchmarks/asking.py --repos $(REPOS) $(ARGS)
	@$(BIN)/python benchmarks/asking_messages.py --repos $(REPOS)
	@$(BIN)/python benchmarks/routing.py

bench-routing: $(STAMP) ## who takes a message, without a model: cross-validated on ../shared/data
	@$(BIN)/python benchmarks/routing.py $(ARGS)

bench-idle: $(STAMP) ## memory of idle sessions and open event streams, and whether each stream gets its event
	@$(BIN)/python benchmarks/idle.py $(ARGS)

simulate-scale: $(STAMP) ## where the next bottleneck of PostgreSQL and workers is, by a simulation that is first compared with measured points
	@$(BIN)/python benchmarks/simulate_scale.py $(ARGS)

reference: $(STAMP)     ## write docs/reference anew
	@$(BIN)/python tools/reference.py

pictures: $(STAMP)      ## draw docs/images anew from the output of commands
	@$(BIN)/python tools/pictures.py

docs: $(STAMP)          ## build the documentation to a searchable site in docs/_build/site
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/site
	@echo "Open docs/_build/site/index.html"

lock:            ## resolve and pin the dependencies anew, with hashes and without hosts
	$(COMPILE) --extra dev --extra checkout --extra minilm --extra deno --extra keyring --extra postgres --extra nats --extra otel -o requirements.lock
	$(COMPILE) --extra dev --extra checkout --extra deno --extra postgres --extra nats --extra bench -o requirements-bench.lock
	echo uv | uv pip compile - --universal --generate-hashes --no-header -q --no-annotate -o requirements-uv.lock
	$(COMPILE) --extra checkout --excludes tools/run_excludes.txt -c requirements.lock -o requirements-run.lock
	$(COMPILE) --extra checkout --extra postgres --extra nats --extra otel --excludes tools/run_excludes.txt -c requirements.lock -o requirements-server.lock

clean:           ## remove what make made
	rm -rf $(VENV) $(VENV)-bench dist docs/_build .pytest_cache .mypy_cache .ruff_cache
