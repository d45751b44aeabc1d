# The two commands of a newcomer are `make demo` and `make test`; the rest is for developers. See README.md.
space := $(subst ,, )
JOBS := $(shell nproc)
BUILD = cmake --preset $(1) $(2) > build/$(1).log || { cat build/$(1).log; exit 1; }; cmake --build --preset $(1) -j $(JOBS)
CTEST = ctest --preset $(1) -j $(JOBS)

.PHONY: all test demo bench asan asan-parsers tsan fuzz format clean
.DEFAULT_GOAL := all

build:
	@mkdir -p build

# The binary, without tests.
all: | build
	@scripts/setup
	@$(call BUILD,release) --target pith
	@echo build/release/pith

# Everything the CI runs.
test: | build
	@scripts/setup --python --lint
	@$(call BUILD,release)
	@$(call CTEST,release)

# Converts, quantizes, measures, serves and asks a real model; leaves a report in demo-output/.
demo: all
	@scripts/demo

# Micro benchmarks. Run on an idle machine.
bench: | build
	@scripts/setup
	@$(call BUILD,release) --target bench
	@for program in build/release/bench/*_bench; do echo "== $$program"; $$program || exit 1; done

# Unit and fuzz tests under AddressSanitizer and UndefinedBehaviorSanitizer, and under ThreadSanitizer.
asan tsan: | build
	@scripts/setup
	@$(call BUILD,$@)
	@$(call CTEST,$@)

# The same for the modules that read files, unit tests and fuzz corpora (of base the JSON corpus): what the CI has time for. None of them is
# above kernels, whose sanitized build alone takes minutes; the fuzz targets of higher modules (config.json, request bodies) are left to
# `make asan`.
PARSERS = tensor quantization artifact tokenizer
asan-parsers: | build
	@scripts/setup
	@$(call BUILD,asan) --target $(PARSERS:%=%_test) $(PARSERS:%=fuzzers_%) fuzzers_base
	@$(call CTEST,asan) -R "^(base\.json_fuzz|($(subst $(space),|,$(PARSERS)))\.)"

# Each fuzz target for FUZZ_SECONDS, starting from its committed corpus; new inputs go to build/fuzz/corpus.
FUZZ_SECONDS ?= 60
fuzz: | build
	@scripts/setup --fuzz
	@$(call BUILD,fuzz) --target fuzzers
	@scripts/run_fuzzers build/fuzz $(FUZZ_SECONDS)

format:
	@scripts/setup --lint
	@scripts/check_format.py --fix

clean:
	rm -rf build demo-output
