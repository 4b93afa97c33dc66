# cmake -DPROGRAM=... -DPLOT=... -DPYTHON=... -DDIRECTORY=... -P run_engine_benchmark.cmake
# Runs every row of engine_benchmark for every engine with next to no data, and has benchmark/plot read what came of it. The program
# checks all values by itself; here each row has to be there with a figure of Varve's and of a peer's. Rows with data larger than
# memory need more data than a test should make, and are left out by the program.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} --scale=0.0002 --rest_seconds=0.05 --dir=${DIRECTORY} --benchmark_out=${DIRECTORY}/rows.json
                        --benchmark_out_format=json
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "engine_benchmark ended with ${result}:\n${output}${errors}")
endif()
# A peer that is not there is "not run" in each row; Varve and one peer at least are there.
string(REGEX MATCHALL "\n\\| [^|\n]* \\| (not run [^\n]*|[^|\n]* \\|( not run \\|)+[^|\n]*\n)" missing "${output}")
foreach(row ${missing})
  if(NOT row MATCHES "times the memory")
    message(FATAL_ERROR "a row was not run:${row}")
  endif()
endforeach()
if(NOT output MATCHES "Geometric mean of the ratios")
  message(FATAL_ERROR "there is no geometric mean:\n${output}")
endif()

# The help names the rows that the program itself has, and none of another program.
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT output MATCHES "fill_in_order" OR NOT output MATCHES "seek" OR output MATCHES "/P16/always")
  message(FATAL_ERROR "the help of engine_benchmark does not name its rows:\n${output}")
endif()

if(NOT PYTHON)
  return()
endif()
execute_process(COMMAND ${PYTHON} ${PLOT} ${DIRECTORY}/rows.json --print --rows=multiget16/100B RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT result EQUAL 0 OR NOT output MATCHES "MultiGet of 16, 100 B .*Varve / best peer [0-9]")
  message(FATAL_ERROR "benchmark/plot ended with ${result}:\n${output}${errors}")
endif()

get_filename_component(folder ${PLOT} DIRECTORY)
execute_process(COMMAND ${PYTHON} ${folder}/table ${DIRECTORY}/rows.json "--rows=multiget16/100B" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT result EQUAL 0 OR NOT output MATCHES "\\| MultiGet of 16, 100 B .*[0-9]×")
  message(FATAL_ERROR "benchmark/table ended with ${result}:\n${output}${errors}")
endif()

# The program itself knows which Python has Debian's matplotlib.
execute_process(COMMAND ${PLOT} ${DIRECTORY}/rows.json --pictures=${DIRECTORY}/pictures RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(errors MATCHES "packages-plot.txt")
  message("no pictures: ${errors}")
  return()
endif()
if(NOT result EQUAL 0)
  message(FATAL_ERROR "benchmark/plot ended with ${result}:\n${output}${errors}")
endif()
foreach(question reads writes batches get scan seek ycsb)
  if(NOT EXISTS ${DIRECTORY}/pictures/engine_${question}.svg)
    message(FATAL_ERROR "benchmark/plot has not drawn ${question}:\n${output}${errors}")
  endif()
endforeach()
