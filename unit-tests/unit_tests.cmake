# The tests of single rooms: a folder here mirrors a folder of the tree.

# ThreadSanitizer leaves out tests of one thread that take it long. All sanitizers leave out more seeds of the same, and tests of figures
# that are the same without them: amplification, hits, bytes on disk.
set(left_out)
if(VARVE_SANITIZER)
  set(left_out *ModelTest*/4 *ModelTest*/5 *ModelTest*/6 *ModelTest*/7 LazyLevelingTest.Amplification* *SpaceAtRestTest*/100
      CompressionTest.*Half EvictorTest.HitsAre* EvictorTest.CountsOfUsesHit*)
endif()
if(VARVE_SANITIZER STREQUAL "thread")
  list(APPEND left_out *SegmentIteratorTest* SegmentCorruptionTest* SegmentBuilder* *SegmentGetTest* *.ABatchOfAMillionOperationsIsWhole
       *SegmentSharedKeysTest* SegmentReadsTest.AHit* SegmentMemoryTest.* BufferEstimatesTest.* DamagedDictionaryTest.*
       *ImportExportTest* *RedisFilesTest* *KillTest* CompressionTest.* RecompressionTest.* KeyHistoryTest.* HistoryTest.AHorizon*
       HistoryEndsTest.Over* ChangeFeedTest.TheBytes* *.ALargeValueSurvives EvictorByHandTest.AKeyOfTheLastT* TreeTest.*
       ChildrenTest.APage* ChildrenTest.ManyNames* ChildrenTest.WhatLies* ChildrenTest.ADirectory* ChangesTrimTest.WhatIsNo*
       UndoTest.AHundred* ServerTest.LargeValues* ExpiryInClonesTest.ALargeKey* EngineTest.LimitsAre* HistoryTest.EveryVersion*
       *ModelTest*/2 *ModelTest*/3 FullDiskTest.* LogRecoveryTest.* EngineRecoveryTest.* WatchRangeTest.LimitsAndMistakes
       MetadataCommandsTest.* StoreCapabilityTest.* ForeignClientsTest.* *SpaceAtRestTest* EngineTimesTest.OldMarks*
       PowerCutChangePurgeTest.* DictionaryTest.* SampleCoverTest.*)
endif()

# ThreadSanitizer finds nothing in code that one thread runs alone, so its builds leave out the tests in these folders.
# AddressSanitizer's builds have them all.
set(folders_of_one_thread "db/(compression|difference|format|hbase|history|iterators|values|version)"
                          "server/(access|commands|config|reference|requests|status|user_commands)")

# Takes the tests in `folders_of_one_thread` out of the list `variable` where the build is for ThreadSanitizer.
function(varve_leave_out_one_thread variable)
  if(VARVE_SANITIZER STREQUAL "thread")
    list(JOIN folders_of_one_thread "|" folders)
    list(FILTER ${variable} EXCLUDE REGEX "/unit-tests/(${folders})/[^/]*_test\\.cc$")
    set(${variable} ${${variable}} PARENT_SCOPE)
  endif()
endfunction()

varve_test_program(util LINK varve_util)
varve_test_lanes(util_tests)

varve_test_program(structure LINK varve_structure)
varve_test_lanes(structure_tests)

varve_test_program(layering LINK varve_util)
varve_test_lanes(layering_tests)

varve_test_program(tools LINK varve_tools)
varve_test_lanes(tools_tests SLOW *.AnyCall*MayFail *.AKillAtAnyMoment* *.APowerCutAtAnyMoment* RewindTest.EveryVersion*)

# Models, crashes, scans under load, and what waits for the background. AddressSanitizer sees the buffers flushed in every test,
# ThreadSanitizer sees them at their usual size; elsewhere the tests run in both ways (below).
set(small_buffers VARVE_TEST_WRITE_BUFFER=64KiB)
set(environment)
if(VARVE_SANITIZER MATCHES "address")
  set(environment ${small_buffers})
endif()
varve_test_sources(sources db ALL)
list(FILTER sources EXCLUDE REGEX "/unit-tests/db/hbase_rpc/")
varve_leave_out_one_thread(sources)
varve_test_program(db LINK varve_tools varve_hbase SOURCES ${sources}
                   PRECOMPILE unit-tests/testing/test_store.h unit-tests/testing/fault_file_system.h db/engine/engine.h)
varve_test_lanes(db_tests COST 100 SHARDS 4 QUICK_SHARDS 2 LEFT_OUT ${left_out} ENVIRONMENT ${environment}
                 SLOW *ModelTest* *AgainstAModel* *EqualsAModel* ReadersTest.* *ConcurrencyTest.* ClonesTest.* CompactionTest.*
                      FullDiskTest.* LogRecoveryTest.* EngineRecoveryTest.* SegmentCorruptionTest.* EngineCountTest.*
                      EngineExpiryTest.* ValueSeparationTest.* *BackgroundTest.* *BurstTest.* MergeWriterTest.ReadersFind*
                      LogTest.EverySecond*)
# Every engine test runs a second time with write buffers so small that flush and compaction happen in each.
list(JOIN left_out ":" filter)
varve_test_entry(db_tests_small_buffers PROGRAM db_tests FILTER "-${filter}" SHARDS 4 LABELS long unit again COST 30
                 ENVIRONMENT ${small_buffers})

# The client of HBase against a server that is made up; cluster_tests.cmake has its tests against a cluster.
if(VARVE_HAS_HBASE)
  varve_test_sources(sources db/hbase_rpc ALL)
  list(FILTER sources EXCLUDE REGEX "/hbase_cluster_test.cc$")
  varve_test_program(hbase_rpc LINK varve_hbase_rpc SOURCES ${sources})
  varve_test_lanes(hbase_rpc_tests)
endif()

# Programs that are started and killed, clocks, and clients that mean harm.
varve_test_sources(sources server ALL)
list(FILTER sources EXCLUDE REGEX "/hit_ratio_test.cc$")  # system_tests.cmake has it
varve_leave_out_one_thread(sources)
varve_test_program(server SOURCES ${sources} LINK varve_server varve_client STARTS server_main client_main WAITS
                   PRECOMPILE unit-tests/server/test_server.h unit-tests/server/command_fixture.h)
varve_test_lanes(server_tests COST 100 SHARDS 2 QUICK_SHARDS 2 LEFT_OUT ${left_out}
                 SLOW *KillTest.* SlicesTest.* *LimitsTest.* *LimitTest.* ProgramTest.* AccessTest.* HostileClientsTest.* SaveTest.*
                      SharedRoundsTest.* UnreadRepliesTest.* *StartTest.* PassedSocketsTest.* ConfigTest.TimeoutHolds* RedisLinkTest.*
                      *RedisCopyTest.* FollowRedisTest.*)

# The client's tests start servers, and run the examples.
varve_test_program(client LINK varve_cli util STARTS server_main client_main WAITS  # forkpty is in libutil
                   PRECOMPILE client/client.h unit-tests/testing/server_process.h)
target_compile_definitions(client_tests PRIVATE VARVE_EXAMPLES="$<TARGET_FILE_DIR:example_blocking>")
add_dependencies(client_tests example_blocking example_pipelined example_asynchronous)
list(JOIN left_out ":" filter)
varve_test_entry(client_tests PROGRAM client_tests FILTER "-${filter}" SHARDS 2 LABELS test unit COST 20)
