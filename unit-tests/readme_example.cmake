# The library example of README.md is compiled, run, and held against the output that README.md claims for it: in this tree,
# and outside of it against an installation, once through find_package and once through pkg-config.
#
# README.md marks the blocks, each with a comment right above its fence:
#   <!-- example: library -->            above ```cpp    the whole program
#   <!-- example: library output -->     above ```text   what it prints, exactly
#   <!-- example: library in CMake -->   above ```cmake  how it is built
# A README without them is an error. Until there is a README there is nothing to check.
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/README.md)
  return()
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/README.md)

# Writes the block below `marker` to `path`, but only if it changed, so that nothing is rebuilt for nothing.
function(varve_extract_block marker fence path)
  file(READ ${CMAKE_SOURCE_DIR}/README.md readme)
  set(opening "<!-- ${marker} -->\n```${fence}\n")
  string(FIND "${readme}" "${opening}" start)
  if(start EQUAL -1)
    message(FATAL_ERROR "README.md has no block that opens with these two lines:\n${opening}")
  endif()
  string(LENGTH "${opening}" opening_length)
  math(EXPR start "${start} + ${opening_length}")
  string(SUBSTRING "${readme}" ${start} -1 rest)
  string(FIND "${rest}" "\n```" length)
  if(length EQUAL -1)
    message(FATAL_ERROR "README.md: the block \"${marker}\" is not closed")
  endif()
  math(EXPR length "${length} + 1")
  string(SUBSTRING "${rest}" 0 ${length} block)
  file(CONFIGURE OUTPUT ${path} CONTENT "${block}" @ONLY)
endfunction()

set(example_dir ${CMAKE_CURRENT_BINARY_DIR}/readme_example)
varve_extract_block("example: library" cpp ${example_dir}/readme_example.cc)
varve_extract_block("example: library output" text ${example_dir}/expected_output.txt)

add_executable(readme_example ${example_dir}/readme_example.cc)
target_link_libraries(readme_example PRIVATE varve::varve)
add_test(NAME readme_example
         COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:readme_example> -DDIRECTORY=${example_dir}/run
                 -DEXPECTED=${example_dir}/expected_output.txt -P ${CMAKE_CURRENT_SOURCE_DIR}/run_example.cmake)
set_tests_properties(readme_example PROPERTIES TIMEOUT ${VARVE_TEST_TIMEOUT} LABELS test)

# Sanitizers want flags of their users, which an installation doesn't pass on.
if(NOT VARVE_SANITIZER)
  varve_extract_block("example: library in CMake" cmake ${example_dir}/outside/CMakeLists.txt)
  configure_file(${example_dir}/readme_example.cc ${example_dir}/outside/cities.cc COPYONLY)
  set(installation -DBUILD=${CMAKE_BINARY_DIR} -DPREFIX=${example_dir}/installation -DCOMPILER=${CMAKE_CXX_COMPILER}
                   -DLIBDIR=${CMAKE_INSTALL_LIBDIR} -DSOURCE=${example_dir}/outside
                   -DEXPECTED=${example_dir}/expected_output.txt)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/installation.cmake)
  add_test(NAME installation COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=install -P ${script})
  add_test(NAME installed_headers COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=headers -P ${script})
  add_test(NAME installed_cmake_package COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=cmake -P ${script})
  add_test(NAME installed_pkg_config COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=pkg-config -P ${script})
  set_tests_properties(installation PROPERTIES FIXTURES_SETUP installation LABELS test)
  set_tests_properties(installed_headers installed_cmake_package installed_pkg_config
                       PROPERTIES FIXTURES_REQUIRED installation TIMEOUT ${VARVE_TEST_TIMEOUT} LABELS test)
endif()
