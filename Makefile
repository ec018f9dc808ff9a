# The short way in: CMake and Ninja do the work. `make help` lists the targets.
BUILD ?= build
TYPE  ?= RelWithDebInfo
JOBS  ?= $(shell nproc)
ifneq ($(words $(BUILD)),1)
$(error BUILD names one folder, without spaces)
endif
FUZZ_SECONDS ?= 60

STAGE ?= ci
TRAIN ?= messages

.PHONY: all programs configure profiled demo check check-all scenarios bench interop arm64 fuzz install uninstall package format lint clean help

all: configure
	@cmake --build $(BUILD) -j $(JOBS)

programs: configure
	@cmake --build $(BUILD) -j $(JOBS) --target programs

# Once, again when flags or a type are given, and with those given last when packages have come since: some parts are
# left out where what they need is missing.
GIVEN := $(if $(filter-out file,$(origin TYPE)),-DCMAKE_BUILD_TYPE=$(TYPE)) $(CMAKE_FLAGS)
configure:
ifeq ($(strip $(GIVEN)),)
	@if ! test -f $(BUILD)/build.ninja; then cmake -S . -B $(BUILD) -G Ninja; \
	elif test /var/lib/dpkg/status -nt $(BUILD)/build.ninja; then cmake $(BUILD); fi
else
	@cmake -S . -B $(BUILD) -G Ninja $(GIVEN)
endif

# The same, optimised by what messages of perftest make the libraries do, or by what a simulation does (TRAIN=simulation).
profiled:
	@scripts/setup.sh build demo
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=$(TYPE) $(CMAKE_FLAGS) -DALBEDO_PROFILE=count
	@rm -rf $(BUILD)/profile
	@cmake --build $(BUILD) -j $(JOBS) --target programs
	@python3 scripts/train.py --build $(BUILD) --by $(TRAIN)
	@cmake -S . -B $(BUILD) -DALBEDO_PROFILE=use
	@cmake --build $(BUILD) -j $(JOBS) --target programs

demo:
	@scripts/setup.sh build demo
	@$(MAKE) --no-print-directory programs
	@python3 scripts/demo.py --build $(BUILD)

# Unit tests, virtual network, walls, and the short half of the end-to-end table.
check:
	@scripts/setup.sh build check
	@$(MAKE) --no-print-directory all
	@scripts/check.sh $(BUILD) quick $(JOBS)

# Everything: the whole table, the kill and crowd tests, UCX, libfabric and MPI, pyverbs, all scenarios, long searches, the kernel in QEMU.
check-all:
	@scripts/setup.sh build check
	@scripts/setup.sh stacks || echo 'make: without UCX, libfabric and MPI'
	@$(MAKE) --no-print-directory all
	@scripts/check.sh $(BUILD) all $(JOBS)

# Simulated scenarios, each checked against its expected result. STAGE=nightly: the long ones; all: both.
scenarios:
	@scripts/setup.sh build
	@$(MAKE) --no-print-directory all
	@python3 scripts/scenarios.py --build $(BUILD) --stage $(STAGE) --jobs $(JOBS)

bench:
	@scripts/setup.sh build bench
	@scripts/setup.sh stacks || echo 'make: without UCX and MPI'
	@$(MAKE) --no-print-directory all
	@python3 bench/bench.py --build $(BUILD) $(BENCH_FLAGS)

interop:
	@scripts/setup.sh build interop
	@$(MAKE) --no-print-directory all
	@interop/run.sh --build $(BUILD) $(INTEROP_FLAGS)

arm64:
	@scripts/setup.sh build arm64
	@$(MAKE) --no-print-directory programs
	@tests/arm64/run.sh $(BUILD)

# Not in $(BUILD): the fuzzers are built by clang, with sanitizers and without tests.
fuzz:
	@scripts/setup.sh build fuzz
	@BUILD=$(BUILD:/=)-fuzz fuzz/run.sh $(FUZZ_SECONDS)

# What is installed is for all users, whatever the umask is of who installs or packs it.
install: programs
	@umask 022; cmake --install $(BUILD) $(if $(PREFIX),--prefix "$$(realpath -m -- "$(PREFIX)")")

uninstall:
	@scripts/uninstall.sh "$$(realpath -m -- "$(or $(PREFIX),$(shell sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' $(BUILD)/CMakeCache.txt 2>/dev/null),/usr/local)")"

package:
	@scripts/setup.sh build package
	@$(MAKE) --no-print-directory programs
	@umask 022; cd $(BUILD) && cpack

format:
	@git ls-files '*.c' '*.h' | xargs -r clang-format -i

# clang-tidy refuses options of gcc that it does not know.
lint: configure
	@git ls-files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror
	@mkdir -p $(BUILD)/lint
	@sed -e 's/-mmemset-strategy=[^ "]*//' -e 's/-flto=auto -ffat-lto-objects//' $(BUILD)/compile_commands.json >$(BUILD)/lint/compile_commands.json
	@git ls-files '*.c' | grep -v -e '^fuzz/' -e '/mpi_' | xargs -r -P $(JOBS) -n 8 clang-tidy -p $(BUILD)/lint --quiet

clean:
	@rm -rf $(BUILD)

help:
	@echo 'make            release build: programs in build/bin, libraries in build/lib, tests and benchmarks'
	@echo 'make programs   the same without tests and benchmarks'
	@echo 'make profiled   make programs, twice: optimised by what messages of perftest make the libraries do (GCC);'
	@echo '                TRAIN=simulation: by what a simulation does, for a faster simulator'
	@echo 'make demo       two perftest programs, clean and with 1 % loss, transactions, a scenario (installs what is missing)'
	@echo 'make check      unit tests, virtual network, walls, short end-to-end table (installs what is missing)'
	@echo 'make check-all  the same, and the whole end-to-end table, kill and crowd tests, UCX, libfabric, MPI,'
	@echo '                pyverbs, all scenarios, long random searches, the kernel driver in QEMU'
	@echo 'make scenarios  simulated scenarios against their expected results (STAGE=ci, nightly, all)'
	@echo 'make bench      speed beside the raw limit of this machine, UCX and MPI beside TCP: JSON lines and a table'
	@echo 'make interop    against the Linux kernel rdma_rxe driver in QEMU'
	@echo 'make arm64      cross-built, under qemu: unit tests, traces and a talk with the native build'
	@echo 'make fuzz       fuzzers, for a bounded time'
	@echo 'make install    to /usr/local, or: make install PREFIX=/opt/albedo (DESTDIR is heeded, too)'
	@echo 'make uninstall  removes it, given the same PREFIX and DESTDIR'
	@echo 'make package    a Debian package of the same, in build/ (installs what is missing)'
	@echo 'make format     clang-format in place;   make lint: clang-format and clang-tidy, no change'
	@echo 'make clean      removes build/'
	@echo 'Variables: BUILD (folder), TYPE (CMake build type), CMAKE_FLAGS, JOBS, PREFIX,'
	@echo '           BENCH_FLAGS, INTEROP_FLAGS (passed on), FUZZ_SECONDS (each fuzzer, 60)'
