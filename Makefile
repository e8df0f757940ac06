# The commands of this repository. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help demo test verify fix docs soak soak-cluster namespaces fuzz crosscheck release dist compare surface random

help: ## List the commands.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## Build, and start five regions on this machine. DEMO_ARGS="--wan none" and the like go to `rhumb demo`.
	@echo "On two cores the first build takes about 8 minutes, a later one what has changed."
	cargo build --package rhumb
	@$${CARGO_TARGET_DIR:-target}/debug/rhumb demo $(DEMO_ARGS)

test: ## All tests.
	@echo "On two cores this takes over half an hour the first time, 9 minutes of it to build before the first test."
	.ci/test

verify: ## The read-only gate: format, lints, documentation, what it names, that builds share what they compile, that the fuzz targets compile, and the tests of `make compare`.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features rhumb-sql/fuzzing -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps
	@# With a path to libFuzzer that is not there: to check takes neither that nor a C++ compiler. Those of fuzz/sql would take minutes.
	CUSTOM_LIBFUZZER_PATH=/none cargo check --locked --manifest-path fuzz/Cargo.toml --bins --examples
	.ci/units
	.ci/documents
	.ci/reference
	python3 -m unittest discover compare

fix: ## Put right what `verify` would complain about, as far as a machine can.
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	cargo fmt --all

docs: ## A book of all documents, target/book/html, its links and anchors checked. Takes mdbook.
	@docs/book.py

soak: ## A thousand seeds of every scenario of the simulator with all faults on, and the largest model. SEEDS=100000 for a night.
	cargo test --package rhumb-quota --test model_avantan -- --ignored
	cargo test --package rhumb-replicated-commit --package rhumb-catenae --package rhumb-quad --package rhumb-replicated-log --test model -- --ignored
	cargo test --package rhumb-sqlsim --test planted -- --ignored
	cargo build --package rhumb
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim replicated-commit --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim placed-replicas --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim moving-replicas --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim one-site --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim catenae --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim crossing-chains --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim catenae-namespaces --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim paxos-commit --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim replicated-log --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim quad --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim quad-cores-lost --seeds $${SEEDS:-1000}
	$${CARGO_TARGET_DIR:-target}/debug/rhumb sim samya --seeds $${SEEDS:-1000}
	for protocol in replicated-commit catenae quad; do $${CARGO_TARGET_DIR:-target}/debug/rhumb sim sql-$$protocol --seeds $${SEEDS:-1000} || exit 1; done

soak-cluster: ## An hour of real processes under faults, all protocols. MINUTES=20 for less, SEED=7 for the same faults again.
	SOAK_MINUTES=$${MINUTES:-60} SOAK_SEED=$${SEED:-$$(date +%s)} cargo test --package rhumb --test soak -- --nocapture

namespaces: ## Three machines as network namespaces, made by `rhumb init` and `rhumb join`. As root; takes iproute2, psql and curl.
	cargo build --package rhumb
	.ci/namespaces target/debug/rhumb

fuzz: ## Every fuzz target for a minute. SECONDS=600 for longer, TARGETS="frame row" for some of them.
	@fuzz/run $(or $(SECONDS),60) $(TARGETS)

crosscheck: ## The planner against HiGHS, an integer programming solver. Takes cmake, a C++ compiler and libclang, and some minutes.
	cargo test --manifest-path crosscheck/Cargo.toml

surface: ## Statements on PostgreSQL 15 and on Rhumb: records both results in crates/sql/tests/surface/scripts, and writes docs/surface.md. Takes PostgreSQL 15.
	@crates/sql/tests/surface/with-postgres cargo test --package rhumb-sql --test surface -- --nocapture every_statement
	@git --no-pager diff --stat -- crates/sql/tests/surface/scripts docs/surface.md

random: ## Random queries on PostgreSQL 15 and on Rhumb, held against each other. RANDOM_QUERIES=100000, and RANDOM_SEED=7 for others. Takes PostgreSQL 15.
	@crates/sql/tests/surface/with-postgres cargo test --package rhumb-sql --test surface -- --ignored --nocapture random_queries

COMMA := ,
# On Linux, relocations in their packed form: 3.6 MB less. It takes glibc 2.36 where the binary runs.
PACKED := $(if $(filter Linux,$(shell uname -s)),-C link-arg=-Wl$(COMMA)-z$(COMMA)pack-relative-relocs)

release: ## The binary for real use, optimized: target/dist/rhumb, and its symbols beside it.
	@echo "On two cores the first build takes about 18 minutes."
	cargo rustc --release --package rhumb --bin rhumb -- $(PACKED)
	@dist/separate.py $${CARGO_TARGET_DIR:-target}/release/rhumb

dist: $(if $(BINARY),,release) ## Pack it for machines without Rust: a tarball and a container image, in target/dist. BINARY=target/debug/rhumb for another build.
	@dist/package.py $(or $(BINARY),$${CARGO_TARGET_DIR:-target}/release/rhumb)
	@dist/check.py $${CARGO_TARGET_DIR:-target}/dist

compare: $(if $(BINARY),,release) ## Rhumb beside PostgreSQL, etcd and Redis, half an hour. COMPARE_ARGS="update redis --rounds 9" and the like. BINARY as for `dist`.
	@compare/compare.py --binary $(or $(BINARY),$${CARGO_TARGET_DIR:-target}/release/rhumb) $(COMPARE_ARGS)
