# cmake -DPROGRAM=... -DDIRECTORY=... -DEXPECTED=... [-DPAGE=...] -P run_example.cmake
# Runs the program in an empty directory, and fails unless it exits with 0 and prints just what EXPECTED holds.
if(NOT PAGE)
  set(PAGE README.md)
endif()
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE result OUTPUT_VARIABLE output
                ERROR_VARIABLE errors)
file(READ ${EXPECTED} expected)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the example ended with ${result}:\n${output}${errors}")
endif()
if(NOT output STREQUAL expected)
  message(FATAL_ERROR "the example printed:\n${output}\nbut ${PAGE} says:\n${expected}")
endif()
