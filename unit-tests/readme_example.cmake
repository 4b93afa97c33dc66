# The library example of README.md is compiled, run, and held against the output that README.md claims for it.
#
# README.md marks the two blocks, each with a comment right above its fence:
#   <!-- example: library -->           above ```cpp    the whole program
#   <!-- example: library output -->    above ```text   what it prints, exactly
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
target_link_libraries(readme_example PRIVATE varve_db)
add_test(NAME readme_example
         COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:readme_example> -DDIRECTORY=${example_dir}/run
                 -DEXPECTED=${example_dir}/expected_output.txt -P ${CMAKE_CURRENT_SOURCE_DIR}/run_example.cmake)
set_tests_properties(readme_example PROPERTIES TIMEOUT ${VARVE_TEST_TIMEOUT})
