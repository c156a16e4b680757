# The front door. `make help` lists the targets; the build behind it is CMake (CMakeLists.txt, cmake/).
SHELL := /bin/bash
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
# Tests run at a time, and labels to run (a regular expression: unit, kernels, exact, regress, e2e, fuzz, python, style, install).
CHECK_JOBS ?= 2
CHECK_LABEL ?= .
CMAKE_ARGS ?=
VENV ?= $(CURDIR)/build/venv

# configure FOLDER, ARGUMENTS: Ninja where it is installed; a folder that was configured keeps what it has.
define configure
@generator=(); if [[ ! -e $(1)/CMakeCache.txt ]] && command -v ninja >/dev/null; then generator=(-G Ninja); fi; \
    cmake -S . -B $(1) "$${generator[@]}" -DOUTRIDER_VENV=$(VENV) $(2) $(CMAKE_ARGS) >$(1).configure.log 2>&1 \
    || { cat $(1).configure.log; exit 1; }; rm -f $(1).configure.log
endef
compile = @cmake --build $(1) --parallel $$(nproc)
run_tests = @ctest --test-dir $(1) --output-on-failure --no-label-summary --parallel $(CHECK_JOBS) -L '$(CHECK_LABEL)'

.PHONY: all help setup venv build demo check bench asan ubsan tsan fuzz arm format tidy install clean

all:
	$(call configure,$(BUILD),)
	$(call compile,$(BUILD)) --target outrider

help:
	@echo 'make            build $(BUILD)/outrider'
	@echo 'make demo       build, then run the demonstration that comes with the source'
	@echo 'make check      build everything and run all tests (CHECK_LABEL=unit, kernels, exact, ...: only those)'
	@echo 'make bench      build, then measure this machine'
	@echo 'make asan       the tests under AddressSanitizer; ubsan, tsan: under the other two'
	@echo 'make fuzz       each parser under libFuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make arm        cross build for 64-bit ARM, tests under qemu'
	@echo 'make format     clang-format all C files; tidy: clang-tidy them'
	@echo 'make install    into PREFIX=$(PREFIX) (DESTDIR is respected)'
	@echo 'make clean      remove build folders'
	@echo 'make demo, check, fuzz and arm install missing Debian packages first and say so.'

setup:
	@tools/setup build check

demo:
	@tools/setup build
	@$(MAKE) --no-print-directory all
	$(BUILD)/outrider demo

build:
	$(call configure,$(BUILD),-DOUTRIDER_TESTS=ON)
	$(call compile,$(BUILD))

venv:
	@tools/venv $(VENV)

check: setup
	@$(MAKE) --no-print-directory build venv
	$(call run_tests,$(BUILD))

bench: all
	$(BUILD)/outrider bench

asan: SANITIZE := address
ubsan: SANITIZE := undefined
tsan: SANITIZE := thread
asan ubsan tsan: setup
	$(call configure,build-$@,-DOUTRIDER_TESTS=ON -DOUTRIDER_SANITIZE=$(SANITIZE))
	$(call compile,build-$@)
	$(call run_tests,build-$@)

fuzz:
	@tools/setup build fuzz
	$(call configure,build-fuzz,-DOUTRIDER_FUZZ=ON -DCMAKE_C_COMPILER=clang)
	$(call compile,build-fuzz)
	@tools/run_fuzz build-fuzz $(FUZZ_SECONDS) $(CHECK_JOBS)

arm:
	@tools/setup build check arm
	@tools/arm_packages build-arm-packages
	$(call configure,build-arm,-DOUTRIDER_TESTS=ON -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/aarch64-linux-gnu.cmake -DOUTRIDER_ARM_PACKAGES=$(CURDIR)/build-arm-packages)
	$(call compile,build-arm)
	$(call run_tests,build-arm)

format:
	@find include src tests tools -name '*.[ch]' -print0 | xargs -0 clang-format -i

tidy: build
	@find src -name '*.c' -not -path 'src/kernels/arm/*' -not -path 'src/kernels/cuda/*' -print0 | xargs -0 -n 8 clang-tidy --quiet -p $(BUILD)

install: all
	$(call compile,$(BUILD))
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build build-asan build-ubsan build-tsan build-fuzz build-arm build-arm-packages
