# The tests of the whole: damage, crashes, memory, hostile input, and other programs beside Varve. Where such a test tries out
# everything, it does so in the lane `long`, and a sample of it in the lane `test`.

# Every byte of a store is damaged in turn.
varve_test_program(corruption LINK varve_tools)
set(step 37)
if(VARVE_SANITIZER)
  set(step 101)
endif()
varve_test_entry(corruption_tests PROGRAM corruption_tests SHARDS 2 LABELS test COST 15
                 ENVIRONMENT VARVE_TEST_DAMAGE_STEP=${step})
if(NOT VARVE_SANITIZER)
  varve_test_entry(corruption_tests_every_byte PROGRAM corruption_tests SHARDS 4 LABELS long exhaustive COST 80)
endif()

# Crashes: states of a simulated disk, interleavings of simulated threads, and calls that fail; and a program that looks at any number
# of states. Under ThreadSanitizer the simulated threads would hide what it looks for.
if(NOT VARVE_SANITIZER STREQUAL "thread")
  varve_test_sources(helpers crash HELPERS)
  varve_test_sources(tests crash TESTS)
  add_library(varve_crash STATIC ${helpers})
  target_link_libraries(varve_crash PUBLIC varve_tools varve_testing ${CMAKE_DL_LIBS})
  varve_compile_quickly(varve_crash)
  if(VARVE_SANITIZER)
    target_compile_definitions(varve_crash PUBLIC VARVE_SANITIZED)  # ten times slower: a tenth of the work
  endif()
  varve_test_program(crash SOURCES ${tests} LINK varve_crash)
  set(failing_calls Faults/FaultInjectionTest.*)
  set(sampled *EIO_write_once *EIO_sync_once *ENOSPC_rename_for_good)
  list(JOIN sampled ":" sample)
  varve_test_entry(crash_tests PROGRAM crash_tests FILTER "-${failing_calls}" LABELS test whole COST 30 ENVIRONMENT VARVE_CRASH_STATES=500)
  varve_test_entry(crash_tests_failing_calls PROGRAM crash_tests FILTER "${sample}" LABELS test whole COST 10)
  varve_test_entry(crash_tests_every_call PROGRAM crash_tests FILTER "${failing_calls}:-${sample}" SHARDS 2 LABELS long COST 50)
  if(NOT VARVE_SANITIZER)
    varve_test_entry(crash_tests_states PROGRAM crash_tests FILTER "CrashStatesTest.*" LABELS long COST 30)
  endif()
  add_executable(crash_states_main crash/crash_states_main.cc)
  target_link_libraries(crash_states_main PRIVATE varve_crash absl::flags absl::flags_parse)
endif()

# Allocations that fail one by one. A program of its own, as it replaces operator new; sanitizers bring their own.
if(NOT VARVE_SANITIZER)
  varve_test_program(memory LINK varve_server varve_client)
  target_link_options(memory_tests PRIVATE -Wl,--wrap=calloc)
  varve_test_entry(memory_tests PROGRAM memory_tests SHARDS 2 LABELS test COST 30)
endif()

# Fuzz targets: the test program runs them over their corpus; where the compiler has libFuzzer (make fuzz), each also becomes a program
# of its own.
varve_test_program(fuzz LINK varve_server varve_cli varve_tools)
# Each target is a program of its own, too, and they name the same things alike.
set_target_properties(fuzz_tests PROPERTIES UNITY_BUILD OFF)
varve_test_lanes(fuzz_tests)
if(VARVE_FUZZ)
  add_custom_target(fuzz_targets)
  add_library(varve_fuzz_main OBJECT fuzz/fuzz_target.cc fuzz/libfuzzer_main.cc)
  target_link_libraries(varve_fuzz_main PUBLIC varve_server varve_cli varve_tools)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/*_fuzz.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE varve_fuzz_main)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_targets ${name})
  endforeach()
endif()

# Varve beside Redis: a short run among the tests, and a program for runs of any length.
varve_test_sources(helpers differential HELPERS)
varve_test_program(differential LINK varve_server STARTS server_main WAITS)
varve_test_entry(differential_tests PROGRAM differential_tests LABELS test whole COST 3)
add_executable(differential_main differential/differential_main.cc ${helpers})
target_link_libraries(differential_main PRIVATE varve_server absl::flags absl::flags_parse)
target_compile_definitions(differential_main PRIVATE VARVE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
varve_starts(differential_main server_main)

# Hits of a cache are figures, and sanitizers find nothing in them.
varve_test_program(hit_ratio SOURCES server/hit_ratio_test.cc LINK varve_client STARTS server_main WAITS)
varve_test_entry(hit_ratio_tests PROGRAM hit_ratio_tests LABELS long COST 15)

# The real server, killed and cut off again and again: short runs among the tests, and a program for runs of any length (make prove);
# and everything at once for as long as one likes (make soak).
varve_test_sources(helpers prove HELPERS)
list(FILTER helpers EXCLUDE REGEX "clock_shim|prove/cluster")
varve_test_sources(tests prove TESTS)
list(FILTER tests EXCLUDE REGEX "prove/cluster")
add_library(varve_prove STATIC ${helpers})
target_link_libraries(varve_prove PUBLIC varve_client)
varve_compile_quickly(varve_prove WAITS)
varve_test_program(prove SOURCES ${tests} LINK varve_prove STARTS server_main client_main WAITS)
add_library(clock_shim MODULE prove/clock_shim/clock_shim.cc)
add_dependencies(prove_tests clock_shim)
target_compile_definitions(prove_tests PRIVATE VARVE_CLOCK_SHIM="$<TARGET_FILE:clock_shim>")
set(kills ProveTest.AHundredKillsLoseNothing)
varve_test_entry(prove_tests PROGRAM prove_tests FILTER "-${kills}" LABELS test whole COST 40)
varve_test_entry(prove_tests_kills PROGRAM prove_tests FILTER "${kills}" LABELS long COST 60)
add_executable(prove_main prove/prove_main.cc)
target_link_libraries(prove_main PRIVATE varve_prove absl::flags absl::flags_parse)
varve_starts(prove_main server_main client_main)
add_executable(history_main prove/history_main.cc)
target_link_libraries(history_main PRIVATE varve_prove)
add_executable(failover_main prove/failover/failover_main.cc)
target_link_libraries(failover_main PRIVATE varve_prove)
add_executable(soak_main prove/soak/soak_main.cc)
target_link_libraries(soak_main PRIVATE varve_prove absl::flags absl::flags_parse)
varve_starts(soak_main server_main client_main)

# Declares an entry that is no test program: a command that ends with 77 where what it takes can't be had, which is no failure.
function(varve_test_command name)
  cmake_parse_arguments(command "" "COST" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${command_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77 COST ${command_COST} LABELS "${command_LABELS}")
endfunction()

if(NOT VARVE_SANITIZER)
  # The documentation becomes a site in which every link leads somewhere and nothing is taken from elsewhere.
  varve_test_command(docs_site LABELS test COST 10
                     COMMAND ${CMAKE_SOURCE_DIR}/scripts/docs/build_site.sh ${CMAKE_BINARY_DIR}/site)
  # What the pages show is what happens.
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/docs/*.md)
  varve_test_command(docs_transcripts LABELS test COST 10
                     COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/pages/run_transcripts.py $<TARGET_FILE:server_main> $<TARGET_FILE:client_main>
                             ${pages})
  # The runbook brings a lost machine back from its archive.
  varve_test_command(docs_runbook LABELS test COST 4
                     COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/pages/run_runbook.py $<TARGET_FILE:server_main> $<TARGET_FILE:client_main>
                             ${CMAKE_SOURCE_DIR}/docs/backup.md)

  # Histories of concurrent clients, checked by porcupine.
  varve_test_command(linearizability LABELS long COST 40
                     COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/prove/linearizability/run.sh $<TARGET_FILE:history_main>
                             $<TARGET_FILE:server_main> ${CMAKE_BINARY_DIR}/linearizability)
  # The same of clients that follow the primary over failovers, and of readers of a follower.
  foreach(mode sync follower)
    varve_test_command(linearizability_${mode} LABELS long COST 60
                       COMMAND ${CMAKE_COMMAND} -E env "HISTORY_ARGUMENTS=30 ${mode}"
                               ${CMAKE_CURRENT_SOURCE_DIR}/prove/linearizability/run.sh $<TARGET_FILE:failover_main>
                               $<TARGET_FILE:server_main> ${CMAKE_BINARY_DIR}/linearizability_${mode})
  endforeach()

  # Everything at once under a load of some clients, watched and checked (make soak does it for an hour). prove_tests has some
  # seconds of it.
  varve_test_command(soak LABELS long exhaustive COST 200 COMMAND soak_main --seconds=120 --data_mib=64 --memory_mib=128 --disk_mib=512)
  set_tests_properties(soak PROPERTIES TIMEOUT ${VARVE_TEST_TIMEOUT})

  # Servers over a cluster of HBase, which the entry starts by itself (make test-cluster); the other lanes leave it out.
  if(VARVE_HAS_HBASE)
    varve_test_sources(sources prove/cluster ALL)
    list(FILTER sources EXCLUDE REGEX "group_caller")
    varve_test_program(cluster SOURCES ${sources} LINK varve_client STARTS server_main client_main WAITS)
    add_executable(cluster_history_main prove/cluster/cluster_history_main.cc prove/cluster/group_caller.cc)
    target_link_libraries(cluster_history_main PRIVATE varve_prove)
  endif()
  foreach(form short long)
    varve_test_command(cluster_${form} LABELS cluster COST 300
                       COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/prove/cluster/run.sh ${form} ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/cluster)
    set_tests_properties(cluster_${form} PROPERTIES TIMEOUT ${VARVE_TEST_TIMEOUT} RUN_SERIAL ON)
  endforeach()

  # Client libraries of others, and Redis' tools, with default settings (unit-tests/clients). They are installed into the build
  # directory from their registries; where that can't be, the test is skipped and says why.
  foreach(library redis-py node-redis ioredis go-redis jedis redis-tools)
    varve_test_command(clients_${library} LABELS long clients COST 10
                       COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/clients/run_client.sh ${library} $<TARGET_FILE:server_main>
                               ${CMAKE_BINARY_DIR}/clients)
  endforeach()

  # What packages and containers are made of: units, completions, an image and manifests (unit-tests/packages). `make test-deb` tries
  # the packages themselves.
  set(packages ${CMAKE_CURRENT_SOURCE_DIR}/packages)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/packages)
  varve_test_command(packages_units LABELS test COST 2 COMMAND ${packages}/check_units.sh $<TARGET_FILE:server_main> ${made}/units)
  varve_test_command(packages_completion LABELS test COST 2
                     COMMAND ${packages}/check_completion.sh $<TARGET_FILE:server_main> $<TARGET_FILE:client_main> ${made}/completion)
  varve_test_command(packages_commit LABELS test COST 1 COMMAND ${packages}/check_commit.sh ${CMAKE_COMMAND} ${made}/commit)
  varve_test_command(packages_containers LABELS long COST 10 COMMAND ${packages}/lint_containers.sh ${made}/linters)

  # The server's web page in a headless Chromium.
  varve_test_command(page LABELS test COST 20
                     COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/page/run.sh $<TARGET_FILE:server_main> ${CMAKE_BINARY_DIR}/page)

  # Redis' own tests of what Redis knows of strings (unit-tests/redis_suite/skips.txt says what is left out and why).
  varve_test_command(redis_suite LABELS long clients COST 90
                     COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/redis_suite/run.sh $<TARGET_FILE:server_main> ${CMAKE_BINARY_DIR}/redis_suite)
endif()

# Every row of the engine's and the server's benchmarks runs, and the figures can be drawn.
if(TARGET engine_benchmark)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  foreach(program engine_benchmark server_benchmark)
    varve_test_command(${program} LABELS long COST 60
                       COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DPLOT=${CMAKE_SOURCE_DIR}/benchmark/plot
                               -DPYTHON=${Python3_EXECUTABLE} -DDIRECTORY=${CMAKE_CURRENT_BINARY_DIR}/${program}
                               -P ${CMAKE_CURRENT_SOURCE_DIR}/benchmark/run_${program}.cmake)
  endforeach()
endif()

# One server beside two over a store that answers after a delay; the program fails where one of them answers wrongly, or not at all.
if(TARGET scale_benchmark)
  varve_test_command(scale_benchmark LABELS long COST 5 COMMAND $<TARGET_FILE:scale_benchmark> --seconds=0.2 --turns=1)
endif()
