# cmake -DPROGRAM=... -DPLOT=... -DPYTHON=... -DDIRECTORY=... -P run_server_benchmark.cmake
# Runs every row of server_benchmark on every server for next to no time, and has benchmark/plot read what came of it. The program
# checks all replies by itself; here each row has to be there, with figures that can be true. No figure is too small to pass. Rows with
# data larger than memory need more data than a test should make; many connections need leave to open as many files.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
function(run rows)
  execute_process(COMMAND ${PROGRAM} --keys=2000 --seconds=0.05 --repetitions=1 --rest_seconds=0.05 --dir=${DIRECTORY}
                          --benchmark_out=${rows} --benchmark_out_format=json ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "server_benchmark ended with ${result}:\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${DIRECTORY}/rows.json)
string(REGEX MATCHALL "\n\\| [^\n]* not run[^\n]*" missing "${output}")
foreach(row ${missing})
  if(NOT row MATCHES "times the memory|needs more open files")
    message(FATAL_ERROR "a row was not run:${row}")
  endif()
endforeach()
if(NOT output MATCHES "Goals: [0-9]+ of [0-9]+ reached")
  message(FATAL_ERROR "nothing is said of goals:\n${output}")
endif()

file(READ ${DIRECTORY}/rows.json json)
string(JSON count LENGTH "${json}" benchmarks)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON row GET "${json}" benchmarks ${i})
  string(JSON name GET "${row}" name)
  string(JSON skipped ERROR_VARIABLE none GET "${row}" error_message)
  if(skipped)
    continue()
  endif()
  string(JSON figure GET "${row}" figure)
  if(NOT figure GREATER 0)
    message(FATAL_ERROR "${name}: ${figure} can't be true")
  endif()
  string(JSON p50 ERROR_VARIABLE none GET "${row}" p50_us)
  if(none)
    continue()
  endif()
  foreach(counter p99_us p999_us server_cpu_us client_busy requests_per_second)
    string(JSON ${counter} GET "${row}" ${counter})
  endforeach()
  if(p50 GREATER p99_us OR p99_us GREATER p999_us)
    message(FATAL_ERROR "${name}: percentiles ${p50}, ${p99_us}, ${p999_us}")
  endif()
endforeach()

run(${DIRECTORY}/redis_benchmark.json --client=redis-benchmark "--rows=^(SET|GET|MSET10|MGET10|INCR|RANGE50)/100B/P16/always$")
if(output MATCHES "not run")
  message(FATAL_ERROR "redis-benchmark did not drive a row:\n${output}")
endif()

# The help names the rows that the program itself has, and none of another program.
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT output MATCHES "P16" OR output MATCHES "read_in_order")
  message(FATAL_ERROR "the help of server_benchmark does not name its rows:\n${output}")
endif()

if(NOT PYTHON)
  return()
endif()
execute_process(COMMAND ${PYTHON} ${PLOT} ${DIRECTORY}/rows.json --print "--rows=^(open/)?SET/100B/P1/always" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT result EQUAL 0 OR NOT output MATCHES "SET, 100 B, sync always, no pipeline: .*Varve / best peer [0-9]"
   OR NOT output MATCHES "p99 over load .*Varve: [0-9].*null server: [0-9]")
  message(FATAL_ERROR "benchmark/plot ended with ${result}:\n${output}${errors}")
endif()

get_filename_component(folder ${PLOT} DIRECTORY)
execute_process(COMMAND ${PYTHON} ${folder}/table ${DIRECTORY}/rows.json "--rows=^(open/)?SET/100B/P1/always" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT result EQUAL 0 OR NOT output MATCHES "\\| SET, 100 B, sync always, no pipeline .*[0-9]×")
  message(FATAL_ERROR "benchmark/table ended with ${result}:\n${output}${errors}")
endif()
