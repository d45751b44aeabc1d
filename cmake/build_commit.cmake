# Writes OUTPUT, a header that names the commit of SOURCE_DIR, when it would change: cmake -DSOURCE_DIR=... -DOUTPUT=... -P build_commit.cmake
execute_process(COMMAND git -C "${SOURCE_DIR}" rev-parse --short=8 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")  # a source archive
endif()
set(text "#define PITH_BUILD_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT before STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()
