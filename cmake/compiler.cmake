# Flags shared by every target, as the interface library `varve_flags`, and the build options.

set(VARVE_TESTS ON CACHE STRING "Build the tests: ON, OFF, or SYSTEM for those of the whole alone, without those of single rooms")
option(VARVE_BENCHMARKS "Build the benchmarks and the peers they compare with" ON)
option(VARVE_WERROR "Treat warnings as errors; off by default, as other compilers warn of other things" OFF)
set(VARVE_SANITIZER "" CACHE STRING "Sanitizers to build with: address, undefined, thread, or address,undefined")

option(VARVE_FUZZ "Build the fuzz targets, and everything so that it counts what a run covers; clang alone can" OFF)

set(VARVE_TOGETHER OFF CACHE STRING "Compile the sources of each folder together: OFF, TESTS, or ON for all; what a source forgot to include is then not found")

set(VARVE_PCH OFF CACHE STRING "Precompile what most files include of others: OFF, TESTS, or ON for all; what a source forgot to include is then not found")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the checkout, so that every checkout on a machine shares one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR})
  if(VARVE_PCH)
    # What ccache asks for before it keeps precompiled headers, and what is compiled with them. Comments count: a precompiled header
    # knows its headers by the bytes of their files, and where it was made of files that had other comments, `#pragma once` fails.
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_COMMENTS=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Assertions check invariants in every build but the one that is shipped and measured (util/base/assert.h).
set(VARVE_ASSERTIONS_DEFAULT ON)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(VARVE_ASSERTIONS_DEFAULT OFF)
endif()
option(VARVE_ASSERTIONS "Evaluate VARVE_ASSERT" ${VARVE_ASSERTIONS_DEFAULT})

add_library(varve_flags INTERFACE)
if(VARVE_ASSERTIONS)
  target_compile_definitions(varve_flags INTERFACE VARVE_ASSERTIONS)
endif()
target_include_directories(varve_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_options(varve_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-unused-parameter -Wno-missing-field-initializers -Wno-dangling-else -g1 -fno-omit-frame-pointer)
# Binaries and core dumps name files from the root of the repository, wherever it was built.
target_compile_options(varve_flags INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(VARVE_WERROR)
  target_compile_options(varve_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(varve_flags INTERFACE -Wthread-safety -Wthread-safety-beta)
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Release")
  # Hardening as Debian's own packages are built.
  target_compile_options(varve_flags INTERFACE -fstack-protector-strong -fstack-clash-protection -fcf-protection
                                               -D_FORTIFY_SOURCE=2 -Wformat -Werror=format-security)
  target_link_options(varve_flags INTERFACE -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()

if(VARVE_PCH AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(varve_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
elseif(VARVE_PCH)
  target_compile_options(varve_flags INTERFACE -fpch-preprocess)
endif()

# Precompiles headers for the target: those that most files take, and the ones given. With VARVE_PCH=TESTS only where TEST stands.
function(varve_precompile target)
  cmake_parse_arguments(precompile "TEST" "" "" ${ARGN})
  if(VARVE_PCH STREQUAL "TESTS" AND NOT precompile_TEST)
    return()
  endif()
  if(VARVE_PCH)
    target_precompile_headers(${target} PRIVATE <algorithm> <atomic> <chrono> <functional> <map> <memory> <optional> <string>
                              <string_view> <thread> <utility> <vector> <absl/status/statusor.h>
                              <absl/synchronization/mutex.h> <absl/types/span.h> <fmt/format.h>
                              ${precompile_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# Has the sources of each folder of the target compiled together. Twelve at most are one unit, so that both cores have work. With
# VARVE_TOGETHER=TESTS only where TEST stands.
function(varve_compile_together target)
  cmake_parse_arguments(together "TEST" "" "" ${ARGN})
  if(NOT VARVE_TOGETHER OR (VARVE_TOGETHER STREQUAL "TESTS" AND NOT together_TEST))
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(last_folder "")
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL last_folder)
      set(last_folder ${folder})
      set(count 0)
    endif()
    math(EXPR part "${count} / 12")
    math(EXPR count "${count} + 1")
    string(MD5 group "${folder}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
endfunction()

if(VARVE_SANITIZER)
  target_compile_options(varve_flags INTERFACE -fsanitize=${VARVE_SANITIZER} -fno-sanitize-recover=all)
  target_link_options(varve_flags INTERFACE -fsanitize=${VARVE_SANITIZER})
  # It links these large programs in a fifth of the time.
  find_program(LLD ld.lld)
  if(LLD)
    target_link_options(varve_flags INTERFACE -fuse-ld=lld)
  endif()
endif()
if(VARVE_SANITIZER MATCHES "address|thread")
  # For tests that measure memory or bound it. Compilers have macros of their own for this, but not the same.
  target_compile_definitions(varve_flags INTERFACE VARVE_WATCHED_MEMORY)
endif()
if(VARVE_FUZZ)
  target_compile_options(varve_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(VARVE_SANITIZER STREQUAL "thread")
  find_package(absl REQUIRED)
  find_package(fmt REQUIRED)
  add_library(varve_tsan_absl_mutex STATIC ${CMAKE_SOURCE_DIR}/cmake/tsan_absl_mutex.cc)
  target_compile_options(varve_tsan_absl_mutex PRIVATE -fsanitize=thread)
  target_link_libraries(varve_tsan_absl_mutex PUBLIC absl::synchronization fmt::fmt ${CMAKE_DL_LIBS})
  target_link_libraries(varve_flags INTERFACE varve_tsan_absl_mutex)
endif()
