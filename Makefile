# What developers and the continuous integration run; each target sets up what it needs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

REDIS_SERVER ?= redis-server
REDIS_PY := 5.2.1
# Tests mostly wait for servers and clocks: more of them run at once than there are processors.
TEST_THREADS ?= 4
ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

# $(call limited,SECONDS) COMMAND: ends the command after that time, where the system can.
limited = $(if $(shell command -v timeout),timeout $(1))

comma := ,

# $(call timed,NAME,COMMAND): runs the command and prints how long it took.
timed = @start=$$SECONDS; $(2) && echo "$(1): $$((SECONDS - start)) s"

.PHONY: help
help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The servers are fetched while the compiler works.
.PHONY: test
test: ## Runs every test
	@$(MAKE) --no-print-directory setup & built=0; $(MAKE) --no-print-directory build || built=$$?; wait $$!; exit $$built
	@$(MAKE) --no-print-directory run

.PHONY: check
check: setup ## Runs what a change must pass beside the tests: lints, dependencies, models, and a minute of torture and fuzzing
	$(call timed,lint,$(MAKE) --no-print-directory lint)
	$(call timed,features,$(MAKE) --no-print-directory features)
	$(call timed,deny,$(MAKE) --no-print-directory deny)
	$(call timed,spec,$(MAKE) --no-print-directory spec SHORT=1)
	$(call timed,loom,$(MAKE) --no-print-directory loom SHORT=1)
	$(call timed,fuzz,$(MAKE) --no-print-directory fuzz SHORT=1)
	$(call timed,torture,$(MAKE) --no-print-directory torture QUICK=1)

.PHONY: setup
setup: ## Installs a Redis server, unless there is one, and fetches other servers and what clients in Python and Node need
	@command -v cargo >/dev/null || { echo 'Rust 1.88 or newer is missing: see https://rustup.rs' >&2; exit 1; }
	$(call timed,setup,$(MAKE) --no-print-directory redis zookeeper postgres mysql etcd clients)

.PHONY: redis
redis:
	@if command -v '$(REDIS_SERVER)' >/dev/null; then :; \
	elif [ '$(REDIS_SERVER)' != redis-server ]; then echo '$(REDIS_SERVER) is missing' >&2; exit 1; \
	elif command -v apt-get >/dev/null; then \
	    $(ROOT) apt-get update -q && DEBIAN_FRONTEND=noninteractive $(ROOT) apt-get install -qy redis-server; \
	elif command -v dnf >/dev/null; then $(ROOT) dnf install -y redis; \
	elif command -v apk >/dev/null; then $(ROOT) apk add redis; \
	elif command -v brew >/dev/null; then brew install redis; \
	else echo 'redis-server is missing: install Redis 6.2 or newer, or name a binary in REDIS_SERVER' >&2; exit 1; \
	fi

.PHONY: clients
clients:
	@target/python/bin/python -c 'import redis; assert redis.__version__ == "$(REDIS_PY)"' 2>/dev/null || \
	    { python3 -m venv target/python && $(call limited,60) target/python/bin/pip install --quiet \
	        --disable-pip-version-check --retries 1 --timeout 10 'redis==$(REDIS_PY)'; } || \
	    echo 'NOTICE: the client in Python cannot be tested: python3, its venv or redis-py cannot be had' >&2
	@cmp -s benches/peers/package-lock.json target/node/package-lock.json && [ -d target/node/node_modules/redlock ] || \
	    { command -v node >/dev/null && command -v npm >/dev/null && mkdir -p target/node && \
	        cp benches/peers/package.json benches/peers/package-lock.json target/node/ && \
	        (cd target/node && $(call limited,60) npm ci --silent --no-audit --no-fund); } || \
	    { rm -rf target/node; \
	      echo "NOTICE: Node's redlock is not tested beside ours: node, npm or the package cannot be had" >&2; }

.PHONY: etcd
etcd:
	@for package in etcd-server:etcd etcd-client:etcdctl; do \
	    binary=$${package#*:}; package=$${package%:*}; \
	    if [ -x target/etcd/usr/bin/$$binary ] || command -v $$binary >/dev/null; then continue; fi; \
	    mkdir -p target/etcd; \
	    { (cd target/etcd && $(call limited,60) apt-get download -qq $$package && dpkg -x $${package}_*.deb .) \
	        2>/dev/null; } || echo "NOTICE: what needs $$binary is not tested: the package $$package cannot be had" >&2; \
	done

# Unpacked here: nothing is installed, and no service is started.
ZOOKEEPER := libzookeeper-java libslf4j-java libdropwizard-metrics-java libcommons-io-java libsnappy-java libnetty-java
.PHONY: zookeeper
zookeeper: ## Fetches a ZooKeeper server for the tests, where Debian's packages can be had
	@if [ -e target/zookeeper/usr/share/java/zookeeper.jar ] || [ -e /usr/share/java/zookeeper.jar ]; then :; \
	elif command -v apt-get >/dev/null && command -v dpkg >/dev/null && mkdir -p target/zookeeper && cd target/zookeeper && \
	    { $(call limited,120) apt-get download -q $(ZOOKEEPER) >/dev/null 2>&1 || \
	        { $(ROOT) apt-get update -q >/dev/null && $(call limited,120) apt-get download -q $(ZOOKEEPER) >/dev/null; }; }; then \
	    for package in *.deb; do dpkg -x "$$package" . && rm "$$package"; done; \
	else echo 'NOTICE: locks on ZooKeeper cannot be tested: its packages cannot be had' >&2; fi
	@command -v java >/dev/null || echo 'NOTICE: locks on ZooKeeper cannot be tested: there is no Java' >&2

# Of what a server needs, the packages that the machine lacks; translations and compilers of queries are left out.
.PHONY: postgres
postgres: ## Fetches a PostgreSQL server and PgBouncer for the tests, where Debian's packages can be had
	@[ -n "$${POSTGRES_BIN:-}" ] || ls target/postgres/usr/lib/postgresql/*/bin/initdb /usr/lib/postgresql/*/bin/initdb \
	    >/dev/null 2>&1 || command -v initdb >/dev/null || $(call fetched,postgresql) || \
	    echo 'NOTICE: locks on PostgreSQL cannot be tested: its packages cannot be had' >&2
	@[ -x target/postgres/usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || $(call fetched,pgbouncer) || \
	    echo 'NOTICE: locks behind PgBouncer cannot be tested: its packages cannot be had' >&2

# $(call fetched,PACKAGE): unpacks a package below target/postgres, and libraries that it needs and the machine lacks.
missing = apt-get install -qq --print-uris --no-install-recommends $(1) 2>/dev/null | sed 's/^[^ ]* \([^_]*\)_.*/\1/' | \
    grep -E '^(postgresql-[0-9]+|postgresql-client-[0-9]+|pgbouncer|lib.*)$$' | grep -Ev '^lib(c6|c-bin|c-dev-bin|c-l10n|llvm.*|clang.*|.*perl.*)$$'
define fetched
{ command -v apt-get && command -v dpkg && mkdir -p target/postgres && \
    { names=$$($(call missing,$(1))) || { $(ROOT) apt-get update -q && names=$$($(call missing,$(1))); }; } && \
    (cd target/postgres && rm -f ./*.deb && $(call limited,120) apt-get download -q $$names && \
        for package in *.deb; do dpkg -x "$$package" . && rm "$$package"; done); } >/dev/null 2>&1
endef

# Started with a folder of data of its own; its client is left out.
MYSQL := mariadb-server-core mariadb-server mariadb-common
.PHONY: mysql
mysql: ## Fetches a MariaDB server for the tests, where Debian's packages can be had
	@[ -n "$${MYSQL_PREFIX:-}" ] || [ -x target/mysql/usr/sbin/mariadbd ] || [ -x /usr/sbin/mariadbd ] || \
	{ command -v apt-get && command -v dpkg && mkdir -p target/mysql && cd target/mysql && \
	    { $(call limited,120) apt-get download -q $(MYSQL) || \
	        { $(ROOT) apt-get update -q && $(call limited,120) apt-get download -q $(MYSQL); }; } && \
	    for package in *.deb; do dpkg -x "$$package" . && rm "$$package"; done; } >/dev/null 2>&1 || \
	    echo 'NOTICE: locks on MySQL cannot be tested: the packages of MariaDB cannot be had' >&2

# Debian's stable suites have MariaDB alone. A configuration of its own keeps the other suite out of the system's.
UNSTABLE = $(CURDIR)/target/mysql-unstable
UNSTABLE_APT = apt-get -q -o Dir::State=$(UNSTABLE)/apt/state -o Dir::State::status=$(UNSTABLE)/apt/status \
    -o Dir::Cache=$(UNSTABLE)/apt/cache -o Dir::Etc=$(UNSTABLE)/apt -o APT::Sandbox::User=
.PHONY: mysql-unstable
mysql-unstable:
	@[ -x $(UNSTABLE)/usr/sbin/mysqld ] || { rm -rf $(UNSTABLE) && mkdir -p $(UNSTABLE)/apt/state/lists/partial \
	    $(UNSTABLE)/apt/cache/archives/partial $(UNSTABLE)/apt/preferences.d && cd $(UNSTABLE) && touch apt/status && \
	    mirror=$$(apt-get indextargets --format '$$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1) && \
	    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $$mirror sid main" > apt/sources.list && \
	    $(call limited,120) $(UNSTABLE_APT) update && $(call limited,300) $(UNSTABLE_APT) download $$( \
	        $(UNSTABLE_APT) install -qq --print-uris --no-install-recommends mysql-server-core | \
	        sed 's/^[^ ]* \([^_]*\)_.*/\1/' | grep -Ev '^(perl.*|libperl.*|gcc-.*|libc-gconv.*)$$') && \
	    for package in *.deb; do dpkg -x "$$package" . && rm "$$package"; done && rm -r apt; } >/dev/null 2>&1 || \
	    echo "NOTICE: locks are not tested on MySQL, only on MariaDB: the packages of Debian's suite sid cannot be had" >&2

.PHONY: mysql-tests
mysql-tests: mysql-unstable ## Runs the tests of the store on MySQL, which `make test` runs on MariaDB; the server is Debian's, of the suite sid
	@if [ -x $(UNSTABLE)/usr/sbin/mysqld ]; then export MYSQL_PREFIX=$(UNSTABLE); \
	    $(CARGO_TEST) -p tests --test mysql && $(CARGO_TEST) -p tests --tests on_mysql::; fi

.PHONY: build
build: ## Builds everything that is tested
	$(call timed,build,cargo test --workspace --no-run)

FLOORS := cargo run -q -p tests --bin floors --features programs
.PHONY: lint
lint: ## Checks format, lints, documents and the direction of imports
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	$(FLOORS) -- lock-macros/src 'errors.rs < parse < validate < expand | fallback.rs < lib.rs < snapshots.rs'
	$(FLOORS) -- lock-runtime/src 'base < types < telemetry < backend | held < driver < api | simulation | fuzzing.rs < lib.rs'
	$(FLOORS) -- lock-runtime/src/backend/queue 'protocol < chains | pace.rs < chains.rs | claim.rs | quarantine.rs | replicas.rs | reports.rs | unclaimed.rs | waiters.rs < mod.rs < connection.rs | downgrading.rs | hand_over.rs | issuing.rs | messages.rs | order.rs | replies.rs | requests.rs | stages.rs < tests.rs < tests'
	$(FLOORS) -- lock-runtime/src/backend/redis 'lua < protocol < address.rs | findings.rs | opening.rs < sentinel < inspect | transport < connected.rs < mod.rs < queries.rs | cluster | redlock < target.rs | fuzzing.rs'
	$(FLOORS) -- lock-runtime/src/backend/postgres 'address.rs | asking.rs | protocol | sql < transport < findings.rs | functions.rs < diagnosis.rs < connection.rs < mod.rs < target.rs | fuzzing.rs'
	$(FLOORS) -- lock-runtime/src/backend/mysql 'address.rs | protocol | sql < transport < findings.rs | procedures.rs < diagnosis.rs < connection.rs < mod.rs < target.rs | fuzzing.rs'
	$(FLOORS) -- lock-runtime/src/backend/sql 'names.rs | parameters.rs | row.rs | session.rs | time_limit.rs | trouble.rs | upkeep.rs < refusals.rs | steps.rs < batch.rs < replies.rs < inspect | fuzzing.rs < pool.rs < mod.rs'
	$(FLOORS) -- lock-runtime/src/backend/etcd 'address.rs | protocol < queue < transport < findings.rs < diagnosis.rs | inspect.rs | fuzzing.rs < mod.rs'
	$(FLOORS) -- lock-runtime/src/backend/zookeeper 'address.rs | protocol < call.rs | session.rs < queue | transport < findings.rs < inspect.rs < diagnosis.rs < mod.rs < queries.rs | fuzzing.rs'
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --all-features --no-deps

# With fewer features some functions have nothing to await, to look at or to refuse.
STRICT := -- -D warnings -A clippy::unused_async -A clippy::unused_self -A clippy::unnecessary_wraps
.PHONY: features
features: ## Lints the runtime with fewer features
	cargo clippy -p lock-runtime --no-default-features $(STRICT)
	cargo clippy -p lock-runtime --no-default-features --features redis $(STRICT)
	cargo clippy -p lock-runtime --features metrics $(STRICT)
	cargo clippy -p lock-runtime --features tls $(STRICT)
	cargo clippy -p lock-runtime --no-default-features --features etcd $(STRICT)
	cargo clippy -p lock-runtime --no-default-features --features zookeeper,tls $(STRICT)
	cargo clippy -p lock-runtime --no-default-features --features postgres $(STRICT)
	cargo clippy -p lock-runtime --no-default-features --features mysql $(STRICT)

.PHONY: run
run: setup ## Runs the tests alone (REDIS_SERVER=valkey-server or a path: on another server)
	$(call timed,tests,RUST_TEST_THREADS=$(TEST_THREADS) WHOLE=semantics tests/run $(OTHER_STORES:%=--skip %))

# A table of tests has a row for each store. The same code serves most of what they share, and each has tests of its own.
OTHER_STORES := on_sentinel:: on_zookeeper:: on_etcd:: on_postgres:: on_pgbouncer:: on_mysql:: on_redlock:: on_setnx::
# All failures are seen at once.
CARGO_TEST = RUST_TEST_THREADS=$(TEST_THREADS) cargo test --no-fail-fast
.PHONY: stores
stores: setup ## Runs the tables of tests on the stores that `make test` leaves out of most of them
	$(call timed,stores,$(CARGO_TEST) --workspace --tests -- $(OTHER_STORES))

# The network may be out of reach: what needs it is skipped then, with a notice, and the rest is checked.
.PHONY: deny
deny: ## Checks the dependencies' licences, versions, sources and advisories
	@cargo deny --version >/dev/null 2>&1 || { echo 'installing cargo-deny: about three minutes'; \
	    $(call limited,300) cargo install --quiet --locked cargo-deny; } || echo 'cargo-deny could not be installed'
	@cargo deny --version >/dev/null 2>&1 || { echo 'NOTICE: dependencies not checked: no cargo-deny'; exit 0; }; \
	cargo deny check licenses bans sources && \
	if $(call limited,60) cargo deny fetch db >/dev/null 2>&1; then cargo deny check --disable-fetch advisories; \
	else echo 'NOTICE: advisories not checked: their database is out of reach'; fi

# What is slow, and need not run on every change. What a machine lacks is named in a line that begins with NOTICE.
.PHONY: release-check
release-check: package msrv minimal-versions feature-tests public-api crate-docs recipes-postgres ## Checks what a release needs beside `make test` and `make check`

.PHONY: package
package: ## Packages the published crates and runs a program that uses them, outside the workspace
	$(call timed,package,tests/release/package)

MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
.PHONY: msrv
msrv: ## Builds everything with the oldest supported compiler
	@rustup run $(MSRV) cargo --version >/dev/null 2>&1 || rustup toolchain install $(MSRV) --profile minimal >/dev/null 2>&1 || true; \
	if rustup run $(MSRV) cargo --version >/dev/null 2>&1; then \
	    CARGO_TARGET_DIR=target/release-check rustup run $(MSRV) cargo check --quiet --workspace --all-targets --all-features && \
	    echo 'msrv: Rust $(MSRV) builds everything'; \
	else echo 'NOTICE: Rust $(MSRV) not tried: rustup cannot install it here'; fi

.PHONY: minimal-versions
minimal-versions: ## Builds the published crates with the oldest dependencies that they allow
	$(call timed,minimal-versions,tests/release/minimal-versions)

# Without Redis nothing has to be awaited to connect.
.PHONY: feature-tests
feature-tests: ## Tests the runtime with each combination of its features
	@cargo hack --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-hack || true; \
	if cargo hack --version >/dev/null 2>&1; then \
	    powerset='-p lock-runtime --feature-powerset --exclude-features default'; \
	    cargo hack clippy $$powerset --all-targets $(STRICT) && \
	    LOCK_SEEDS=0..300 cargo hack test --quiet $$powerset --lib; \
	else echo 'NOTICE: combinations of features not tested: no cargo-hack'; fi

.PHONY: public-api
public-api: ## Compares the public API with docs/public-api.txt (UPDATE_SNAPSHOTS=1: writes it)
	@UPDATE_SNAPSHOTS=$(UPDATE_SNAPSHOTS) tests/release/public-api

# Labels of features are an unstable option of rustdoc: a compiler may change it.
.PHONY: crate-docs
crate-docs: ## Builds the documentation as docs.rs does, with labels of features
	RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS='--cfg docsrs -D warnings' \
	    cargo doc --quiet -p lock-macros -p lock-runtime --all-features --no-deps --target-dir target/release-check

# Not a part of `make test`: sqlx and Diesel take longer to build than the runtime.
RECIPES := --manifest-path examples/postgres/Cargo.toml
.PHONY: recipes-postgres
recipes-postgres: setup ## Runs the recipes with sqlx and Diesel on a PostgreSQL server
	cargo fmt $(RECIPES) --check
	cargo clippy --quiet $(RECIPES) --all-targets -- -D warnings
	cargo test --quiet $(RECIPES)

# The network is one of namespaces where this user may make them and iproute2 is there, else (or with NETWORK=proxies)
# TCP proxies: it says which. PROFILE names some of the profiles; stores other than Redis servers are built in on demand.
TORTURE = -q -p tests --bin torture --features programs$(if $(filter zookeeper etcd postgres mysql all,$(STORE)),$(comma)stores)
.PHONY: torture
torture: setup ## Breaks things for a minute a profile (QUICK=1: 10 s; STORE=redis, …, all; PROFILE=cutoff …) and checks
	cargo build $(TORTURE)
	cargo run $(TORTURE) -- $(if $(QUICK),--quick) \
	    $(if $(NETWORK),--network $(NETWORK)) $(if $(STORE),--store $(STORE)) $(PROFILE)

TORTURE_PEERS := -q -p tests --bin torture_peers --features programs,stores
.PHONY: torture-peers
torture-peers: setup protoc ## Breaks the same things under locks of other libraries for a minute each (SECONDS_EACH=N, LIBRARY=name)
	cargo build --quiet --manifest-path tests/peers/Cargo.toml --target-dir target/peers
	cargo build $(TORTURE_PEERS)
	cargo run $(TORTURE_PEERS) -- $(or $(SECONDS_EACH),60) $(LIBRARY)

# The rounds are noted in target/soak, so that an interrupted soak goes on, as long as the runtime does not change.
# Servers take a while to start, so rounds are long; clients are optimized, which leaves the processors to the servers.
.PHONY: soak
soak: setup ## Tortures until 1,000,000 grants were checked (STORE=etcd, …, all; GRANTS=N; PROFILE=tickets: adoptions; QUICK=1) and fills in docs/tested.md
	cargo build --release $(TORTURE)
	cargo run --release $(TORTURE) -- --grants $(or $(GRANTS),1000000) --seconds $(if $(QUICK),10,240) \
	    $(if $(NETWORK),--network $(NETWORK)) $(if $(STORE),--store $(STORE)) $(PROFILE)

.PHONY: torture-zookeeper
torture-zookeeper: setup ## Breaks servers of a ZooKeeper ensemble 50 times in each way (ROUNDS)
	LOCK_ROUNDS=$(or $(ROUNDS),50) cargo test -q -p tests --test zookeeper ensemble -- --nocapture
	$(if $(ROUNDS),LOCK_ROUNDS=$(ROUNDS)) cargo test -q -p tests --test zookeeper leader_cut_off -- --include-ignored --nocapture

FAILOVERS := -q -p tests --bin failovers --features programs
.PHONY: failovers
failovers: setup ## Replaces masters and moves slots, 60 each (COUNT=N, STORE=sentinel, cluster or slots) and counts double grants
	cargo build $(FAILOVERS)
	cargo run $(FAILOVERS) -- $(COUNT) $(STORE)

.PHONY: crashes
crashes: setup ## Kills servers of PostgreSQL and MariaDB and promotes standbys, 100 times each (ROUNDS=N), and stops 1,000 holders
	cargo test -q -p tests --test postgres --test mysql --no-run
	$(if $(ROUNDS),LOCK_ROUNDS=$(ROUNDS)) cargo test -q -p tests --test postgres --test mysql -- --ignored --nocapture --test-threads=2

.PHONY: elections
elections: setup ## Shows 1,000 observers 1,000 leaders (COUNT=N), in ten minutes for each of five stores (STORE=redis, postgres, mysql, etcd, zookeeper)
	LOCK_CHANGES=$(or $(COUNT),1000) cargo test -q -p tests --test elections changes::on_$(STORE) -- \
	    --include-ignored --nocapture --test-threads=2

.PHONY: torture-etcd
torture-etcd: setup ## Stops, kills and cuts off leaders of etcd for seven minutes under load and checks 10,000 grants
	cargo test -q -p tests --test etcd -- --ignored --nocapture

# Ten minutes at most.
MODEL = -q -p tests --bin model $(if $(filter postgres,$(STORE)),--features stores)
.PHONY: model
model: setup ## Compares 20 seeds' random operations with a model of locks (SEED=N or FROM..TO, STORE=postgres)
	cargo build $(MODEL)
	$(call limited,600) cargo run $(MODEL) -- $(if $(STORE),--store $(STORE)) $(SEED)

# On all processors, with up to four gigabytes of memory.
.PHONY: spec
spec: ## Searches models of the protocols to the end in ten minutes, and finds planted bugs (SHORT=1: what takes seconds)
	cargo build -q -p spec
	cargo run -q -p spec -- $(if $(SHORT),--short)
	$(if $(SHORT),,cargo test -q -p spec --test planted -- --include-ignored --nocapture --test-threads 1)

.PHONY: loom
loom: ## Tries the interleavings of two callers and the driver's thread (SHORT=1: with fewer interruptions, in seconds)
	$(if $(SHORT),,LOOM_MAX_PREEMPTIONS=$(or $(PREEMPTIONS),4)) cargo test -q -p spec --test interleavings

# Miri is slow: these go through thousands of cases, measure time, or read the settings of a socket.
UNINTERPRETED := simulation:: adaptive_spin:: a_brief_lease_that_is_delivered_late a_lookup_costs_the_same \
    every_slot_has_a_tag in_every_order leases_of_very_many_keys nobody_sleeps_who_may_enter \
    seeds_are_gone_back_to_when the_system_notices_a_silent_connection
.PHONY: miri
miri: ## Interprets the unit tests, which finds undefined behaviour and races in what they use (needs rustup)
	@cargo +nightly miri --version >/dev/null 2>&1 || \
	    rustup toolchain install nightly --profile minimal --component miri,rust-src
	CARGO_TARGET_DIR=target/miri MIRIFLAGS=-Zmiri-disable-isolation \
	    cargo +nightly miri test -q -p lock-runtime --lib -- $(UNINTERPRETED:%=--skip %)

.PHONY: simulate
simulate: ## Runs the protocol against a model of the server with 100,000 seeds (SEEDS=FROM..TO)
	LOCK_SEEDS=$(or $(SEEDS),0..100000) cargo test -q --release -p lock-runtime --lib simulation -- --nocapture

.PHONY: mutants
mutants: setup ## Breaks one promise at a time and prints the test that notices (FRESH=1: also what is known)
	tests/mutations/run

.PHONY: mutants-rust
mutants-rust: ## Changes one operator at a time in lease, watchdog, hold and queue, and lists what no test notices
	@cargo mutants --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-mutants
	LOCK_SEEDS=0..300 cargo mutants --output target

MDBOOK := 0.5.4
.PHONY: book
book: ## Builds the documents as a site with search, target/book/index.html, and checks links and blocks of code
	@target/mdbook/bin/mdbook --version 2>/dev/null | grep -qx 'mdbook v$(MDBOOK)' || { \
	    echo 'installing mdBook $(MDBOOK): about a minute'; \
	    CARGO_PROFILE_DEV_DEBUG=0 $(call limited,1800) cargo install --quiet --debug --locked --force --root target/mdbook \
	        --no-default-features --features search mdbook@$(MDBOOK); } || \
	    echo 'NOTICE: the site is not built, and its links are not checked: mdBook cannot be had' >&2
	@cargo run -q -p tests --bin book --features programs -- target/mdbook/bin/mdbook

# One that is installed already is used as it is.
EXPAND = PATH="$(CURDIR)/target/expand/bin:$$PATH" cargo expand
.PHONY: expand
expand: ## Shows what the attribute makes of the examples
	@$(EXPAND) --version >/dev/null 2>&1 || { \
	    echo 'installing cargo-expand into target/expand' >&2; \
	    cargo install --quiet --locked --root target/expand cargo-expand; }
	@for example in $(basename $(wildcard examples/*.rs examples/recipes/*.rs)); do \
	    echo "// $$example"; \
	    $(EXPAND) --quiet -p "$$(basename "$$(dirname "$$example")")" --example "$$(basename "$$example")"; \
	done

.PHONY: pictures
pictures: setup ## Draws the pictures of docs/lockctl.md anew, and prints what lockctl says meanwhile (CHROME_BINARY)
	cargo build -q -p lockctl
	lockctl/pictures/run

.PHONY: fuzz
fuzz: ## Feeds random input to what reads users, operators and servers, for a minute each (FUZZ_SECONDS; SHORT=1: two seconds)
	fuzz/run

.PHONY: cost
cost: ## Measures what the attribute costs: bytes, allocations, time of `cargo check`
	tests/cost/run

BENCH := cargo run --quiet --release --manifest-path benches/Cargo.toml --

.PHONY: bench
bench: setup bench-lint ## Measures the locks beside a bare client and other libraries in 10 minutes (QUICK=1: 2)
	$(BENCH) run $(if $(QUICK),--quick) $(if $(CASE),--only $(CASE))

# The crate etcd-client is built with it.
.PHONY: protoc
protoc:
	@if command -v protoc >/dev/null; then :; \
	elif command -v apt-get >/dev/null; then $(ROOT) apt-get install -qy protobuf-compiler; \
	else echo 'protoc is missing, which etcd-client is built with: install the Protocol Buffers compiler' >&2; exit 1; fi

.PHONY: bench-stores
bench-stores: setup protoc ## Measures the locks on ZooKeeper and etcd beside other libraries (CASE=zookeeper or etcd; AGED=1000000: only one lock of etcd after so many cycles)
	cargo run --quiet --release --manifest-path benches/Cargo.toml --features stores -- stores \
	    $(if $(CASE),--only $(CASE)) $(if $(AGED),--only aged --aged $(AGED))

.PHONY: bench-postgres
bench-postgres: setup ## Measures the locks on PostgreSQL beside bare lease statements and advisory locks (CASE=cycles, hot or snapshot)
	cargo run --quiet --release --manifest-path benches/Cargo.toml --features postgres -- postgres $(if $(CASE),--only $(CASE))

.PHONY: bench-cycle
bench-cycle: setup ## Shows where the time, instructions and allocations of one cycle go
	$(BENCH) cycle

.PHONY: bench-mysql
bench-mysql: setup ## Measures the locks on MariaDB beside bare lease statements and GET_LOCK (CASE=cycles or hot; MYSQL_PREFIX)
	cargo run --quiet --release --manifest-path benches/Cargo.toml --features mysql -- mysql $(if $(CASE),--only $(CASE))

.PHONY: bench-compile
bench-compile: ## Compiles 500 annotated functions and 500 plain ones, and compares time and size (FUNCTIONS, ROUNDS)
	benches/compile/run

.PHONY: bench-watching
bench-watching: setup ## Counts what metrics and spans add to the instructions of a cycle
	$(BENCH) watching
	cargo run --quiet --release --manifest-path benches/Cargo.toml --features watching -- watching

# Not a part of `make check`: what the bench compares with takes longer to build than all the rest.
.PHONY: bench-lint
bench-lint: ## Checks the format and lints of the bench and of the program that takes locks of other crates
	cargo fmt --manifest-path benches/Cargo.toml --check
	cargo clippy --quiet --manifest-path benches/Cargo.toml --all-targets -- -D warnings
	cargo fmt --manifest-path tests/peers/Cargo.toml --check
	cargo clippy --quiet --manifest-path tests/peers/Cargo.toml --target-dir target/peers --all-targets -- -D warnings

.PHONY: bench-test
bench-test: ## Tests the bench's statistics
	cargo test --quiet --release --manifest-path benches/Cargo.toml
