# The commands of everyday work. CMake does the building; this file only knows the presets and the order of steps.
#
#   make run      install what is missing, build, and serve 127.0.0.1:7777 with data in ./data
#   make check    build and run the unit tests, the rules of the tree and of its format: under a minute where all is built
#   make test     build everything and run the tests that take five minutes together
#   make test-all build everything and run every test
#   make test-system  of those, the tests of the whole: what starts programs and tries out crashes, damage and other clients
#   make test-cluster  the tests of servers over a cluster of HBase, which they install and run: twelve minutes, or under five minutes
#                 of them with CLUSTER=short
#   make build    build everything: servers, clients, benchmarks and tests, in build/release
#   make prove    a minute of kills, power cuts, lost disks, failing calls and bit flips against a fresh server, and one table of what was lost
#   make soak     everything at once under load for SOAK_SECONDS (3600), within its limits, and all data checked at the end
#   make asan     the tests under AddressSanitizer and UndefinedBehaviorSanitizer, built by clang, whose warnings and thread-safety
#                 analysis are errors; make asan-build and make tsan-build only build them
#   make fuzz     each fuzz target for FUZZ_SECONDS (30), two at a time; FUZZ_TARGETS names some of them
#   make tsan     the tests of what runs concurrently under ThreadSanitizer; TSAN_ROOMS names some of their folders
#   make clang    compile the libraries with clang: its warnings and thread-safety analysis are errors
#   make format   lay out the sources as .clang-format says;  make check-format  only tells
#   make tidy     clang-tidy over the libraries (slow)
#   make docs     the documentation as a site in build/site (DOCS_DIR), with every link checked
#   make docs-reference  docs/reference anew, from the program's tables of commands, settings and metrics
#   make install  the programs as varve-server and varve, their manual pages and completions, the library with its headers, CMake
#                 package and pkg-config file, the systemd units and an example configuration (DESTDIR, PREFIX)
#   make deb      Debian packages, in build/deb;  make test-deb  packs them a second time, which has to give the same files, and
#                 installs, upgrades and purges them in a chroot, as root
#   make clean    remove build/; data stays

JOBS ?= 2
CLUSTER ?= long
# Tests mostly wait for disks and programs.
TEST_JOBS ?= 3
FUZZ_SECONDS ?= 30
FUZZ_TARGETS ?=
SOAK_SECONDS ?= 3600
TSAN_ROOMS ?= util structure db server client
# The labels of what `make asan` leaves out.
ASAN_LEAVES ?= again
CMAKE_FLAGS ?=
PREFIX ?= /usr/local
DOCS_DIR ?= build/site
# `make check` takes what is there.
CHECK_PRESET ?= $(if $(wildcard build/dev/build.ninja),dev,$(if $(wildcard build/release/build.ninja),release,dev))
SOURCES = git ls-files -co --exclude-standard -- '*.h' '*.cc'

export CTEST_OUTPUT_ON_FAILURE = 1
export GTEST_BRIEF = 1
export ASAN_OPTIONS = detect_stack_use_after_return=1:strict_string_checks=1
export LSAN_OPTIONS = suppressions=$(CURDIR)/cmake/lsan_suppressions.txt:print_suppressions=0
export UBSAN_OPTIONS = print_stacktrace=1
export TSAN_OPTIONS = second_deadlock_stack=1:history_size=4

.PHONY: run build check test test-all test-system test-cluster test-packages prove soak asan asan-build fuzz tsan tsan-build clang format check-format tidy docs docs-reference packages deb test-deb install clean
.NOTPARALLEL:
.DEFAULT_GOAL := build

packages:
	@scripts/install_packages.sh

run: packages
	cmake --preset release $(CMAKE_FLAGS)
	cmake --build --preset release -j $(JOBS) --target server_main client_main
	exec build/release/server_main --bind=127.0.0.1 --port=7777 --dir=data

build: packages
	cmake --preset release $(CMAKE_FLAGS)
	cmake --build --preset release -j $(JOBS)

check: packages check-format
	cmake --preset $(CHECK_PRESET) $(CMAKE_FLAGS) >/dev/null
	cmake --build --preset $(CHECK_PRESET) -j $(JOBS) --target fast_tests
	scripts/run_tests.sh build/$(CHECK_PRESET) -j $(JOBS) -L '^fast$$'

# What tests of client libraries, power cuts and failing calls take; those that lack it are skipped and say so.
test-packages:
	@scripts/install_packages.sh packages-test.txt packages-docs.txt || echo "make: some tests will be skipped"

test: build test-packages
	scripts/run_tests.sh build/release -j $(TEST_JOBS) -LE '^(long|cluster)$$'

test-all: build test-packages
	scripts/run_tests.sh build/release -j $(TEST_JOBS) -LE '^cluster$$'

# With CMAKE_FLAGS=-DVARVE_TESTS=SYSTEM nothing else is built.
test-system: build test-packages
	scripts/run_tests.sh build/release -j $(TEST_JOBS) -LE '^(unit|exhaustive|cluster)$$'

# HBase's jars have to be there when the build is configured: its protocol lies in them.
test-cluster: packages
	@scripts/install_packages.sh packages-test.txt || echo "make: some tests will be skipped"
	@scripts/install_packages.sh packages-cluster.txt && scripts/hbase_cluster.sh jars || \
		echo "make: the tests of a cluster will be skipped"
	cmake --preset release $(CMAKE_FLAGS)
	cmake --build --preset release -j $(JOBS)
	scripts/run_tests.sh build/release -R '^cluster_$(CLUSTER)$$'

# Cutting power takes root (loop devices), failing calls takes strace; what can't be done is said in the table's place.
prove: packages
	@scripts/install_packages.sh packages-test.txt || echo "make prove: some parts will not be done"
	cmake --preset release $(CMAKE_FLAGS)
	cmake --build --preset release -j $(JOBS) --target prove_main
	build/release/prove_main

soak: packages
	cmake --preset release $(CMAKE_FLAGS)
	cmake --build --preset release -j $(JOBS) --target soak_main
	build/release/soak_main --seconds=$(SOAK_SECONDS)

asan-build: packages
	cmake --preset asan $(CMAKE_FLAGS)
	cmake --build --preset asan -j $(JOBS)

asan: asan-build
	scripts/run_tests.sh build/asan -j $(TEST_JOBS) -LE '^($(ASAN_LEAVES))$$'

# Reproduce a find with build/asan/TARGET_fuzz FILE, and put the file into unit-tests/fuzz/corpus/TARGET once it is mended.
fuzz: packages
	cmake --preset asan $(CMAKE_FLAGS)
	cmake --build --preset asan -j $(JOBS) --target fuzz_targets
	FUZZ_JOBS=$(JOBS) scripts/fuzz.sh build/asan $(FUZZ_SECONDS) $(FUZZ_TARGETS)

tsan-build: packages
	cmake --preset tsan $(CMAKE_FLAGS)
	cmake --build --preset tsan -j $(JOBS) --target $(TSAN_ROOMS:%=%_tests)

# Without address space randomisation, which ThreadSanitizer's fixed memory layout does not survive on newer kernels.
tsan: tsan-build
	setarch -R scripts/run_tests.sh build/tsan -j $(TEST_JOBS) -R '^($(subst $() ,|,$(strip $(TSAN_ROOMS))))_tests' -LE '^again$$'

clang: packages
	cmake --preset clang $(CMAKE_FLAGS)
	cmake --build --preset clang -j $(JOBS)

format: packages
	$(SOURCES) | xargs clang-format -i

check-format: packages
	@$(SOURCES) | xargs clang-format --dry-run -Werror

tidy: packages
	cmake --preset clang $(CMAKE_FLAGS)
	run-clang-tidy -quiet -j $(JOBS) -p build/clang

docs:
	@scripts/install_packages.sh packages-docs.txt
	scripts/docs/build_site.sh $(DOCS_DIR)

docs-reference: packages
	cmake --preset $(CHECK_PRESET) $(CMAKE_FLAGS) >/dev/null
	cmake --build --preset $(CHECK_PRESET) -j $(JOBS) --target server_tests
	VARVE_WRITE_REFERENCE=1 build/$(CHECK_PRESET)/server_tests --gtest_filter='*ReferenceTest.*'

deb:
	@scripts/install_packages.sh packages-deb.txt
	JOBS=$(JOBS) packaging/make_deb.sh build/deb

test-deb: deb
	packaging/test_deb.sh build/deb

# What was built is installed as it is, so that nothing is built as root.
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system
install:
	DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)
	sed 's|/usr/bin/|$(PREFIX)/bin/|g' packaging/varve-server.service | \
		install -D -m 644 /dev/stdin $(UNITS)/varve-server.service
	packaging/instance_unit.sh < $(UNITS)/varve-server.service | \
		install -D -m 644 /dev/stdin $(UNITS)/varve-server@.service
	install -D -m 644 packaging/varve-server.socket $(UNITS)/varve-server.socket
	install -D -m 644 packaging/varve.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/varve.conf
	test -e $(DESTDIR)/etc/varve/varve.toml || install -D -m 644 packaging/varve.toml $(DESTDIR)/etc/varve/varve.toml

clean:
	rm -rf build
