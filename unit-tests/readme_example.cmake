# The library examples of the pages are compiled, run, and held against the output that the pages claim for them; that of README.md
# also outside of this tree against an installation, once through find_package and once through pkg-config.
#
# A page marks the blocks of an example NAME, each with a comment right above its fence:
#   <!-- example: NAME -->            above ```cpp    the whole program
#   <!-- example: NAME output -->     above ```text   what it prints, exactly
#   <!-- example: NAME in CMake -->   above ```cmake  how it is built
# A page without them is an error.

# Writes the block of `page` below `marker` to `path`, but only if it changed, so that nothing is rebuilt for nothing.
function(varve_extract_block page marker fence path)
  set_property(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${page})
  file(READ ${CMAKE_SOURCE_DIR}/${page} readme)
  set(opening "<!-- ${marker} -->\n```${fence}\n")
  string(FIND "${readme}" "${opening}" start)
  if(start EQUAL -1)
    message(FATAL_ERROR "${page} has no block that opens with these two lines:\n${opening}")
  endif()
  string(LENGTH "${opening}" opening_length)
  math(EXPR start "${start} + ${opening_length}")
  string(SUBSTRING "${readme}" ${start} -1 rest)
  string(FIND "${rest}" "\n```" length)
  if(length EQUAL -1)
    message(FATAL_ERROR "${page}: the block \"${marker}\" is not closed")
  endif()
  math(EXPR length "${length} + 1")
  string(SUBSTRING "${rest}" 0 ${length} block)
  file(CONFIGURE OUTPUT ${path} CONTENT "${block}" @ONLY)
endfunction()

# Declares the test NAME, which runs the program `example` of `page`.
function(varve_page_example name page example)
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${name})
  varve_extract_block(${page} "example: ${example}" cpp ${directory}/${name}.cc)
  varve_extract_block(${page} "example: ${example} output" text ${directory}/expected_output.txt)
  add_executable(${name} ${directory}/${name}.cc)
  target_link_libraries(${name} PRIVATE varve::varve)
  add_test(NAME ${name}
           COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> -DDIRECTORY=${directory}/run -DPAGE=${page}
                   -DEXPECTED=${directory}/expected_output.txt -P ${CMAKE_CURRENT_SOURCE_DIR}/run_example.cmake)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${VARVE_TEST_TIMEOUT} LABELS test)
endfunction()

varve_page_example(readme_example README.md library)
varve_page_example(feed_example README.md feed)
varve_page_example(embed_example docs/embed.md transaction)

# Sanitizers want flags of their users, which an installation doesn't pass on.
if(NOT VARVE_SANITIZER)
  set(example_dir ${CMAKE_CURRENT_BINARY_DIR}/readme_example)
  varve_extract_block(README.md "example: library in CMake" cmake ${example_dir}/outside/CMakeLists.txt)
  configure_file(${example_dir}/readme_example.cc ${example_dir}/outside/cities.cc COPYONLY)
  set(installation -DBUILD=${CMAKE_BINARY_DIR} -DPREFIX=${example_dir}/installation -DCOMPILER=${CMAKE_CXX_COMPILER}
                   -DLIBDIR=${CMAKE_INSTALL_LIBDIR} -DSOURCE=${example_dir}/outside
                   -DEXPECTED=${example_dir}/expected_output.txt)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/installation.cmake)
  add_test(NAME installed_programs COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DPREFIX=${example_dir}/programs
                                           -DSTEP=programs -P ${script})
  add_test(NAME installation COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=install -P ${script})
  add_test(NAME installed_headers COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=headers -P ${script})
  add_test(NAME installed_cmake_package COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=cmake -P ${script})
  add_test(NAME installed_pkg_config COMMAND ${CMAKE_COMMAND} ${installation} -DSTEP=pkg-config -P ${script})
  set_tests_properties(installed_programs PROPERTIES LABELS test)
  set_tests_properties(installation PROPERTIES FIXTURES_SETUP installation LABELS test)
  set_tests_properties(installed_headers installed_cmake_package installed_pkg_config
                       PROPERTIES FIXTURES_REQUIRED installation TIMEOUT ${VARVE_TEST_TIMEOUT} LABELS test)
endif()
