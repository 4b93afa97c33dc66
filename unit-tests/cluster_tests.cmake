# The tests of single rooms that a cluster of HBase runs as well (VARVE_TEST_HBASE_QUORUM names it, and `scripts/hbase_cluster.sh up`
# starts one). Every build that can reach a cluster has them, so that the lane over a cluster needs no other tests of single rooms.

# What every store keeps to, the engine among them.
varve_test_program(store LINK varve_hbase)
varve_test_lanes(store_tests)

# The client of HBase against a cluster. Without one, its tests are skipped.
if(VARVE_HAS_HBASE)
  add_executable(hbase_rpc_cluster_tests db/hbase_rpc/hbase_cluster_test.cc)
  target_link_libraries(hbase_rpc_cluster_tests PRIVATE varve_hbase_rpc GTest::gmock)
  varve_compile_quickly(hbase_rpc_cluster_tests WAITS)
  varve_test_entry(hbase_rpc_cluster_tests PROGRAM hbase_rpc_cluster_tests LABELS cluster COST 30)
  set_tests_properties(hbase_rpc_cluster_tests PROPERTIES SKIP_RETURN_CODE 77)
endif()
