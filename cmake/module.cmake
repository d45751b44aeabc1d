# Tests call optimized libraries and do little themselves: without optimization of their own they compile in half the time.
set(PITH_TEST_OPTIMIZATION -O0)

# Heavy third-party headers, compiled once and shared by all modules and tests.
add_library(pith_pch STATIC "${CMAKE_SOURCE_DIR}/cmake/pch.cc")
target_link_libraries(pith_pch PRIVATE pith_options nlohmann_json::nlohmann_json fmt::fmt spdlog::spdlog absl::statusor absl::strings
                      absl::flat_hash_map absl::flat_hash_set absl::span)
set(PITH_HEAVY_HEADERS <algorithm> <cmath> <cstdint> <cstring> <functional> <map> <memory> <optional> <string> <string_view> <utility>
                       <vector> <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
                       <absl/strings/string_view.h> <absl/types/span.h> <nlohmann/json.hpp>)
target_precompile_headers(pith_pch PRIVATE ${PITH_HEAVY_HEADERS})
if(PITH_TESTS)
  add_library(pith_test_pch STATIC "${CMAKE_SOURCE_DIR}/cmake/pch.cc")
  target_link_libraries(pith_test_pch PRIVATE pith_options nlohmann_json::nlohmann_json absl::statusor absl::strings
                        absl::flat_hash_map absl::span GTest::gmock)
  # Executables are compiled with -fPIE, and a precompiled header serves only the flags it was made with.
  set_target_properties(pith_test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(pith_test_pch PRIVATE -fPIE ${PITH_TEST_OPTIMIZATION})
  target_precompile_headers(pith_test_pch PRIVATE <algorithm> <cmath> <cstdint> <map> <memory> <string> <vector>
                            <absl/status/statusor.h> <gtest/gtest.h> <gmock/gmock.h> <nlohmann/json.hpp>)
endif()

# compile_as_test(TARGET): with the headers and the optimization of tests, which belong together.
function(compile_as_test TARGET)
  target_precompile_headers(${TARGET} REUSE_FROM pith_test_pch)
  target_compile_options(${TARGET} PRIVATE ${PITH_TEST_OPTIMIZATION})
endfunction()

add_custom_target(fuzzers)  # every fuzz target, or in ordinary builds every program that replays a corpus; fuzzers_<module>: one module's

# The interpreter of the tests' Python oracles: the virtual environment of scripts/setup --python when it is there.
set(PITH_TEST_PYTHON python3)
if(EXISTS "${CMAKE_SOURCE_DIR}/build/venv/bin/python")
  set(PITH_TEST_PYTHON "${CMAKE_SOURCE_DIR}/build/venv/bin/python")
endif()

# Most of a full build is spent on the same headers again and again: with PITH_UNITY, sources of a module are compiled several at a time.
# What stands in anonymous namespaces of files that share a batch must not clash; files whose names do are listed as ALONE. Not for the
# preset dev, where a change to one file would compile its whole batch.
option(PITH_UNITY "Compile several sources of a module at a time" OFF)
set(PITH_UNITY_BATCH 8)

# compile_in_batches(TARGET SOURCES... ALONE files...): kernels keep their flags per file, and so stay alone too.
function(compile_in_batches TARGET)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE" ${ARGN})
  if(NOT PITH_UNITY)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${PITH_UNITY_BATCH})
  foreach(source IN LISTS ARG_SOURCES)
    file(RELATIVE_PATH name "${CMAKE_CURRENT_SOURCE_DIR}" "${source}")
    if(name IN_LIST ARG_ALONE OR name MATCHES "^cpu/[a-z0-9_]+/")
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# add_module(NAME DEPS other_module... LIBS library... HEAVY_HEADERS <header>... ALONE file... TEST_LABEL label)
#   Builds libpith_NAME from every .cc below the calling folder except *_test.cc, *_bench.cc, *_fuzz.cc and main.cc, and one test
#   binary NAME_test from the *_test.cc beside them. DEPS are the only modules it may include (lint.layering checks it).
#   HEAVY_HEADERS that most of its files include are precompiled too, for this module alone. TEST_LABEL of its tests: `unit` without one.
function(add_module NAME)
  cmake_parse_arguments(ARG "" "TEST_LABEL" "DEPS;LIBS;TEST_DEPS;TEST_LIBS;HEAVY_HEADERS;ALONE" ${ARGN})
  if(NOT ARG_TEST_LABEL)
    set(ARG_TEST_LABEL unit)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|_fuzz|/main)\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND pith_ OUTPUT_VARIABLE dep_targets)
  list(TRANSFORM ARG_TEST_DEPS PREPEND pith_ OUTPUT_VARIABLE test_dep_targets)
  if(sources)
    add_library(pith_${NAME} STATIC ${sources})
    target_link_libraries(pith_${NAME} PUBLIC pith_options ${dep_targets} ${ARG_LIBS})
    if(ARG_HEAVY_HEADERS)
      target_precompile_headers(pith_${NAME} PRIVATE ${PITH_HEAVY_HEADERS} ${ARG_HEAVY_HEADERS})
    else()
      target_precompile_headers(pith_${NAME} REUSE_FROM pith_pch)
    endif()
    set_isa_flags(${sources})
    compile_in_batches(pith_${NAME} SOURCES ${sources} ALONE ${ARG_ALONE})
  else()
    add_library(pith_${NAME} INTERFACE)
    target_link_libraries(pith_${NAME} INTERFACE pith_options ${dep_targets} ${ARG_LIBS})
  endif()
  if(PITH_TESTS AND tests)
    add_executable(${NAME}_test ${tests})
    target_link_libraries(${NAME}_test PRIVATE pith_${NAME} ${test_dep_targets} ${ARG_TEST_LIBS} GTest::gmock GTest::gtest_main)
    compile_as_test(${NAME}_test)
    compile_in_batches(${NAME}_test SOURCES ${tests} ALONE ${ARG_ALONE})
    target_compile_definitions(${NAME}_test PRIVATE PITH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    # PROPERTIES comes last: it takes every word up to the next keyword, and words after that one's value are lost.
    gtest_discover_tests(${NAME}_test TEST_PREFIX ${NAME}. DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${ARG_TEST_LABEL} TIMEOUT 120 ENVIRONMENT "PITH_TEST_PYTHON=${PITH_TEST_PYTHON}")
  endif()
  add_custom_target(fuzzers_${NAME})
  add_dependencies(fuzzers fuzzers_${NAME})
  foreach(fuzzer IN LISTS fuzzers)
    add_fuzz_target("${fuzzer}" ${NAME})
  endforeach()
endfunction()

# add_fuzz_target(SOURCE MODULE): a libFuzzer binary with PITH_FUZZ, otherwise a program that replays tests/fuzz/<name>/ as the test
#   <module>.<name>.
function(add_fuzz_target SOURCE MODULE)
  get_filename_component(name "${SOURCE}" NAME_WE)
  set(corpus "${CMAKE_SOURCE_DIR}/tests/fuzz/${name}")
  if(PITH_FUZZ)
    add_executable(${name} "${SOURCE}")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(PITH_TESTS)
    add_executable(${name} "${SOURCE}" "${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc")
    add_test(NAME ${MODULE}.${name} COMMAND ${name} "${corpus}")
    set_tests_properties(${MODULE}.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  else()
    return()
  endif()
  target_link_libraries(${name} PRIVATE pith_${MODULE})
  add_dependencies(fuzzers_${MODULE} ${name})
endfunction()
