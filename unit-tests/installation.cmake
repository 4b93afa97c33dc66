# cmake -DSTEP=... -DBUILD=... -DPREFIX=... -DCOMPILER=... -DLIBDIR=... -DSOURCE=... -DEXPECTED=... -P installation.cmake
#
# Holds an installation of the library against what README.md says of it. The steps:
#   install      installs the library of the build BUILD into the empty directory PREFIX
#   headers      compiles each public header alone, and fails if one includes anything but public headers, absl and the
#                standard library
#   cmake        builds the example in SOURCE, outside the tree, through find_package(varve), and runs it
#   pkg-config   the same without CMake
# Nothing but PREFIX and the system's own directories is looked at, so a header that needs a private one doesn't compile.

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

function(run_example program directory)
  run(${CMAKE_COMMAND} -DPROGRAM=${program} -DDIRECTORY=${directory} -DEXPECTED=${EXPECTED}
      -P ${CMAKE_CURRENT_LIST_DIR}/run_example.cmake)
endfunction()

if(STEP STREQUAL "install")
  file(REMOVE_RECURSE ${PREFIX})
  unset(ENV{DESTDIR})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} --component library)
elseif(STEP STREQUAL "headers")
  file(GLOB headers RELATIVE ${PREFIX}/include ${PREFIX}/include/varve/*.h)
  list(LENGTH headers count)
  if(count LESS 12)
    message(FATAL_ERROR "only ${count} headers are installed: ${headers}")
  endif()
  foreach(header ${headers})
    file(STRINGS ${PREFIX}/include/${header} includes REGEX "^ *# *include")
    foreach(line ${includes})
      if(NOT line MATCHES "^#include (\"(varve|absl)/[a-z_/]+\\.h\"|<[a-z_]+>)$")
        message(FATAL_ERROR "${header} includes something private: ${line}")
      endif()
    endforeach()
    file(WRITE ${PREFIX}/alone.cc "#include <${header}>\n")
    run(${COMPILER} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wno-unused-parameter -I${PREFIX}/include
        ${PREFIX}/alone.cc)
  endforeach()
elseif(STEP STREQUAL "cmake")
  file(REMOVE_RECURSE ${PREFIX}/outside)
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${PREFIX}/outside -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  run(${CMAKE_COMMAND} --build ${PREFIX}/outside)
  run_example(${PREFIX}/outside/cities ${PREFIX}/outside/run)
elseif(STEP STREQUAL "pkg-config")
  set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
  execute_process(COMMAND pkg-config --cflags --libs varve RESULT_VARIABLE result OUTPUT_VARIABLE flags ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "pkg-config: ${errors}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${COMPILER} -std=c++20 ${SOURCE}/cities.cc -o ${PREFIX}/cities ${flags})
  run_example(${PREFIX}/cities ${PREFIX}/run)
else()
  message(FATAL_ERROR "no such step: ${STEP}")
endif()
