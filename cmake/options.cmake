# Compiler settings shared by every target. ISA flags live in isa.cmake, per folder, and nowhere else.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1")

add_library(pith_options INTERFACE)
target_include_directories(pith_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
# Contraction would make results depend on the compiler's mood; kernels ask for FMA explicitly.
target_compile_options(pith_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off
                       -fno-math-errno -ffunction-sections -fdata-sections)
target_link_options(pith_options INTERFACE -Wl,--gc-sections)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(pith_options INTERFACE -march=x86-64-v2)
endif()
if(PITH_WERROR)
  target_compile_options(pith_options INTERFACE -Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(pith_options INTERFACE PITH_DCHECK=1)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT PITH_SANITIZE)
  # The sloppiness lets ccache work with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;${CCACHE_PROGRAM}")
endif()
