# Two commands matter: `make run` and `make test`. Both install what is missing (scripts/install-deps.sh) and need no
# server, container or configuration. `make help` lists the rest.

CARGO ?= cargo
# Where rustup puts cargo, for shells that were open before it was installed.
export PATH := $(PATH):$(HOME)/.cargo/bin
# More arguments for `make run` and `make bench`: make run ARGS="--split"
ARGS ?=
# Other servers than the system's for `make run`, `make test` and the chaos runs: newest (Redis 8, RabbitMQ 4, MySQL 9) or valkey.
SERVERS ?=
ifneq ($(SERVERS),)
ON_SERVERS = servers=$$(scripts/newest-servers.sh $(SERVERS)) && SECKILL_SERVERS="$$servers"
endif

.DEFAULT_GOAL := help
.PHONY: help run drop test proof record test-long upgrade hosts check model generated build build-at fmt bench load chaos traces chaos-loss soak corruption controls schemathesis check-deploy image image-test compose units-test dist deny doc example example-test clean-dev deps deps-test deps-long

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  %-16s %s\n", $$1, $$2 }'

# `run` and `test` share one build: the dev profile, with the fault points that the tests need (off unless FAILPOINTS is set).
# Both build the two programs, `seckill` and `seckill-bench`, which tests and the demo shop start.
run: deps ## Everything on this machine: private servers, all roles, a demo sale; Ctrl-C stops it
	$(CARGO) build --locked --features faults
	$(ON_SERVERS) target/debug/seckill dev $(ARGS)

# A red binary stops no other one: one run shows all that is red, and ends with an error.
test: deps-test ## The tests of CI, on private servers that the tests start; TESTS="--test it relay::" for some, SERVERS=newest|valkey
	$(CARGO) build --locked --features faults
	$(ON_SERVERS) scripts/in-memory.sh $(CARGO) test --locked --no-fail-fast $(TESTS)

record: deps-test ## The whole suite, and a record of it for docs/compatibility.md; SERVERS=newest|valkey
	@CARGO="$(CARGO)" scripts/record-run.py $(SERVERS)

test-long: deps-long ## What is long by nature: growth, strategies, every control, ten minutes of chaos, the model's larger spaces and paths of it
	$(CARGO) build --locked --features faults
	scripts/in-memory.sh $(CARGO) test --locked --test long
	SECKILL_MODEL=bigger $(CARGO) test --locked --test model -- --nocapture
	GENERATED_PATHS=10000 scripts/in-memory.sh $(CARGO) test --locked --test generated the_servers_do -- --nocapture
	CHAOS_CONTROLS=all $(CARGO) test --locked --test chaos a_run_without_a_mechanism_goes_red -- --nocapture
	CHAOS_MINUTES=$(or $(MINUTES),10) CHAOS_SEED=$(or $(SEED),random) $(CARGO) test --locked --test chaos \
		a_short_chaos_run_loses_nothing -- --exact --nocapture
	CHAOS_LINES=$(or $(LINES),1000000) CHAOS_SEED=$(or $(SEED),random) $(CARGO) test --locked --test chaos the_lines_of_many_runs -- --nocapture
	CHAOS_LOSS_FAULTS=$(or $(FAULTS),300) CHAOS_SEED=$(or $(SEED),random) scripts/in-memory.sh $(CARGO) test --locked --test chaos \
		data_that_go_back_or_vanish -- --nocapture

proof: deps-test ## Ten minutes for a sceptic: one short run of each kind of proof, and what came of it; SEED=…
	$(CARGO) build --locked --features faults
	@$(ON_SERVERS) CARGO="$(CARGO)" SEED="$(SEED)" scripts/proof.sh

upgrade: deps-test ## The version before beside this one: a rolling upgrade under load, and back; REV=ce132b6d, SERVERS=newest|valkey
	$(CARGO) build --locked --features faults
	$(ON_SERVERS) SECKILL_BEFORE="$$(CARGO="$(CARGO)" scripts/build-at.sh $(or $(REV),ce132b6d))" \
		scripts/in-memory.sh $(CARGO) test --locked --test upgrade

# Scenes by name, or with SEED= or MINUTES= faults at random. SCENES=power-cut,silent plays those whose name has one of these.
# ON=on_sentinel plays those with Sentinel and a replica of the database instead of clusters. WAY=balancer: haproxy in front of the
# apis, and on each host before broker and database. CASES=3 damages files of one host: so many of each server, ONLY=redis,mysql.
# The release program, as users have it, but with TRACED=1:
# three hosts' processes share this machine.
hosts: deps-test build ## Three hosts as network namespaces, any one vanishes: SCENES=power-cut,silent, or MINUTES=60 SEED=7 at random, or damaged files with CASES=3, TRACED=1; needs root
	@$(CARGO) test --locked --test hosts --no-run
	@CARGO="$(CARGO)" SCENES="$(SCENES)" HOSTS_SEED=$(SEED) HOSTS_MINUTES=$(MINUTES) HOSTS_WAY=$(WAY) \
		HOSTS_CASES=$(CASES) HOSTS_ONLY=$(ONLY) \
		scripts/hosts.sh $(if $(CASES),a_damaged_file,$(if $(SEED)$(MINUTES),faults_by_a_seed,$(or $(ON),each_scene)))

# cargo-deny reads every crate of Cargo.lock, also those of other systems, which no build downloads: `fetch` does, once.
# --all-targets are those that `cargo test` runs without being asked.
check: deps ## Formatting, lints, and the dependencies' licences and sources where cargo-deny is installed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --all-targets --locked -- -D warnings
	$(CARGO) clippy --test long --test containers --test upgrade --test hosts --test soak --locked -- -D warnings
	@if ! command -v cargo-deny >/dev/null; then \
		echo "cargo-deny is not installed: licences and sources of the dependencies are not checked"; \
	elif ! $(CARGO) fetch --locked --quiet; then \
		echo "crates of other targets were never downloaded and cannot be now: licences and sources are not checked"; \
	else \
		$(CARGO) deny --locked check --hide-inclusion-graph bans licenses sources; \
	fi

model: deps ## The protocol's model in larger configurations (a few minutes)
	SECKILL_MODEL=bigger $(CARGO) test --locked --test model -- --nocapture

generated: deps-test ## Paths of the model played on the servers (half an hour): PATHS=10000, SEED=…, ONLY="two leaders"
	$(ON_SERVERS) GENERATED_PATHS=$(or $(PATHS),10000) GENERATED_SEED=$(or $(SEED),20261127) GENERATED_ONLY="$(ONLY)" \
		scripts/in-memory.sh $(CARGO) test --locked --test generated the_servers_do -- --nocapture

# With the commit, which only the last step of the build reads (src/build_info.rs).
# `bench` and `build-at` build what is shipped instead (the profile dist), so that this is what is measured.
build: deps ## The release binaries, target/release/seckill and seckill-bench
	SECKILL_COMMIT=$$(scripts/commit.sh) $(CARGO) build --release --locked

build-at: deps ## The program of another commit as it is shipped, for `bench --against`: REV=d59404a4
	@CARGO="$(CARGO)" scripts/build-at.sh $(REV)

fmt: ## Formats the code
	$(CARGO) fmt --all

bench: deps ## Rates and latencies of this machine, and whether every sale added up
	SECKILL_COMMIT=$$(scripts/commit.sh) $(CARGO) build --profile dist --locked
	target/dist/seckill bench $(ARGS)

# No part of the tests: needs jmeter and jmeter-http, and the build that is there.
load: ## A crowd made by JMeter against a fresh stack, then the audit: BUYERS=2000 STOCK=1000 THREADS=50
	@BUYERS=$(BUYERS) STOCK=$(STOCK) THREADS=$(THREADS) scripts/load.sh

chaos: deps-test ## Faults on everything for MINUTES=…, from SEED=…; the report is target/chaos/report-SEED.md
	$(ON_SERVERS) CHAOS_SEED=$(or $(SEED),random) CHAOS_MINUTES=$(MINUTES) CHAOS_SECONDS=$(SECONDS) $(CARGO) test --locked --test chaos \
		a_short_chaos_run_loses_nothing -- --exact --nocapture

traces: deps-test ## Chaos of several kinds until its processes wrote LINES=1000000 lines, each explained; MINUTES=20 for a round of all kinds, SEED=…
	$(CARGO) build --locked --features faults
	$(ON_SERVERS) CHAOS_LINES=$(or $(LINES),1000000) CHAOS_MINUTES=$(or $(MINUTES),20) CHAOS_SEED=$(or $(SEED),random) $(CARGO) test --locked \
		--test chaos the_lines_of_many_runs -- --nocapture

chaos-loss: deps-test ## Redis, database and broker lose data, FAULTS=300 times, from SEED=…; the report is target/chaos/loss-SEED.md
	$(ON_SERVERS) CHAOS_SEED=$(or $(SEED),random) CHAOS_LOSS_FAULTS=$(or $(FAULTS),300) scripts/in-memory.sh $(CARGO) test --locked --test chaos \
		data_that_go_back_or_vanish -- --nocapture

DAMAGED := redis,rabbitmq,mysql
corruption: deps-test ## Files of a dead server are damaged, CASES=100 of each, ONLY=redis,rabbitmq,mysql; the report is target/chaos/damage-SEED.md
	$(CARGO) build --locked --features faults
	$(ON_SERVERS) CHAOS_SEED=$(or $(SEED),random) DAMAGE_CASES=$(or $(CASES),100) DAMAGE_SERVERS=$(or $(ONLY),$(DAMAGED)) scripts/in-memory.sh $(CARGO) test --locked \
		--test chaos damaged_files -- --nocapture

# RATE: purchases a second; without it the machine is measured first, and 30 % of what it bears is taken.
soak: deps-test ## The system for hours at a third of its load, a fault a minute; nothing may grow: MINUTES=120 RATE= SEED=; the report is target/chaos/soak-SEED.md
	$(CARGO) build --locked --features faults
	$(ON_SERVERS) SOAK_MINUTES=$(MINUTES) SOAK_RATE=$(RATE) SOAK_SEED=$(SEED) $(CARGO) test --locked --test soak nothing_grows -- --nocapture

controls: deps-test ## Chaos runs with one mechanism left out each; every one has to go red
	CHAOS_CONTROLS=$(or $(CONTROLS),all) $(CARGO) test --locked --test chaos a_run_without_a_mechanism_goes_red -- --nocapture

schemathesis: deps ## Generated requests against both APIs, by their own OpenAPI documents; needs python3 and PyPI
	$(CARGO) build --locked --features faults
	scripts/schemathesis.sh $(ARGS)

check-deploy: ## The shape of deploy/: Kubernetes, compose, systemd; needs python3 and PyPI
	@[ -x target/check-deploy/bin/python ] || { python3 -m venv target/check-deploy && target/check-deploy/bin/pip install --quiet pyyaml; }
	@[ -e target/check-deploy/bin/kubernetes-validate ] || target/check-deploy/bin/pip install --quiet kubernetes-validate \
		|| echo "kubernetes-validate could not be installed: the manifests are not held against the schemas"
	@target/check-deploy/bin/python scripts/check-deploy.py

image: ## The container image `seckill`; BASES=debian makes its base images from Debian packages (root, podman)
	@CARGO="$(CARGO)" scripts/image.sh

image-test: deps-test ## Builds the image and runs its roles and commands: read-only, without rights, SIGTERM; needs root; BASES=debian
	@$(CARGO) build --locked --features faults
	@CARGO="$(CARGO)" scripts/image-test.sh

compose: deps-test ## deploy/compose.yaml up, a sale, each container killed, all restarted; needs podman or docker; BASES=debian
	@$(CARGO) build --locked --features faults
	@CARGO="$(CARGO)" scripts/compose.sh

units-test: deps-test ## The units of deploy/systemd: ExecStart lines as they stand; BASES=debian: started by systemd; needs root
	@$(CARGO) build --locked --features faults
	@CARGO="$(CARGO)" scripts/units-test.sh

dist: deps ## A release in target/dist-VERSION: stripped programs, source, SBOM, SHA256SUMS
	@CARGO="$(CARGO)" scripts/dist.sh

deny: ## Advisories, licences and sources of the dependencies, and unused ones; needs cargo-deny, and cargo-machete if it is there
	$(CARGO) deny --locked check
	@! command -v cargo-machete >/dev/null || cargo-machete

doc: deps ## The code's documentation, target/doc/seckill/index.html
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --no-deps --locked --document-private-items

# The test starts nothing: the stack of `make run` does the work, in another terminal, and lives on. Without NAME it says which there are.
drop: deps-test ## A drop as a shop has it, tests/drops/NAME.json, with its crowd and its cheaters on the stack of `make run`; with ARGS=--split there roles are killed too: NAME=sneaker SEED=
	@DROP_NAME="$(NAME)" DROPS_SEED=$(SEED) $(CARGO) test --locked --quiet --test drops one_drop_on_the_stack -- --ignored --nocapture

# Needs node and npm besides; installs the packages of examples/shop/package-lock.json there.
example: deps ## A real shop (Vendure) with a real login around this system: examples/shop/README.md; Ctrl-C stops it
	$(CARGO) build --locked --features faults
	SECKILL=$(CURDIR)/target/debug/seckill examples/shop/start.sh

example-test: deps-test ## Buyers in a browser buy in that shop while roles are killed; then both systems' orders are compared
	$(CARGO) build --locked --features faults
	cd examples/shop && SECKILL=$(CURDIR)/target/debug/seckill node test.mjs

clean-dev: ## Forgets the data of `make run`; refuses while it runs
	@if [ -d .seckill ]; then flock --nonblock .seckill/lock rm -rf .seckill || { echo "stop seckill dev first" >&2; exit 1; }; fi

deps: # Installs what `make run` lacks; instant when nothing is missing
	@scripts/install-deps.sh run

deps-test: # The same for `make test`
	@scripts/install-deps.sh test

deps-long: # The same for `make test-long`
	@scripts/install-deps.sh long
