# The messages of HBase's remote calls, as the library varve_hbase_protocol: protoc makes them from the .proto files that lie in HBase's
# jars. They are read in the build folder alone and are no part of this tree. Sets VARVE_HAS_HBASE where that works; elsewhere the
# store over HBase is left out, with a message.
#
#   VARVE_HBASE        AUTO: build the store over HBase where it can be built; ON: fail where it can't; OFF: leave it out
#   VARVE_HBASE_JARS   the folder of the jars, into which `scripts/hbase_cluster.sh jars` puts them
set(VARVE_HBASE AUTO CACHE STRING "The store over HBase: AUTO, ON or OFF")
set(VARVE_HBASE_JARS ${CMAKE_SOURCE_DIR}/build/hbase-jars CACHE PATH "The folder with the jars of HBase, which hold its .proto files")

set(VARVE_HAS_HBASE OFF)

function(varve_without_hbase why)
  if(VARVE_HBASE STREQUAL "ON")
    message(FATAL_ERROR "VARVE_HBASE is ON, but ${why}")
  endif()
  message(STATUS "Varve is built without its store over HBase: ${why}")
endfunction()

if(VARVE_HBASE STREQUAL "OFF")
  varve_without_hbase("VARVE_HBASE is OFF")
  return()
endif()

find_package(Protobuf QUIET)
if(NOT Protobuf_FOUND OR NOT TARGET protobuf::protoc OR NOT TARGET protobuf::libprotobuf)
  varve_without_hbase("there is no protobuf (packages protobuf-compiler and libprotobuf-dev)")
  return()
endif()

file(GLOB shaded_jar ${VARVE_HBASE_JARS}/hbase-protocol-shaded-2.*.jar)
file(GLOB plain_jar ${VARVE_HBASE_JARS}/hbase-protocol-2.*.jar)
list(LENGTH shaded_jar shaded_jars)
list(LENGTH plain_jar plain_jars)
if(NOT shaded_jars EQUAL 1 OR NOT plain_jars EQUAL 1)
  varve_without_hbase("the jars of HBase's protocol are not in ${VARVE_HBASE_JARS} (`scripts/hbase_cluster.sh jars` fetches them)")
  return()
endif()

# MultiRowMutation.proto lies in the plain jar alone, the others in the shaded one, which is what servers speak. There Java's protobuf
# has another package, which is the usual one here.
set(protocol_dir ${CMAKE_BINARY_DIR}/generated/hbase_protocol)
set(protos AccessControl Cell Client ClusterId ClusterStatus Comparator ErrorHandling FS Filter HBase LockService MapReduce Master
           MultiRowMutation Procedure Quota RPC RecentLogs Registry Replication Snapshot Tracing ZooKeeper)
file(MAKE_DIRECTORY ${protocol_dir}/shaded ${protocol_dir}/plain)
file(ARCHIVE_EXTRACT INPUT ${shaded_jar} DESTINATION ${protocol_dir}/shaded PATTERNS *.proto)
file(ARCHIVE_EXTRACT INPUT ${plain_jar} DESTINATION ${protocol_dir}/plain PATTERNS MultiRowMutation.proto)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shaded_jar} ${plain_jar})
set(proto_files)
set(sources)
set(headers)
foreach(proto ${protos})
  set(file ${protocol_dir}/shaded/${proto}.proto)
  if(proto STREQUAL "MultiRowMutation")
    set(file ${protocol_dir}/plain/${proto}.proto)
  endif()
  if(NOT EXISTS ${file})
    varve_without_hbase("${proto}.proto is not in the jars of HBase's protocol")
    return()
  endif()
  file(READ ${file} text)
  string(REPLACE "org/apache/hbase/thirdparty/google/protobuf/" "google/protobuf/" text "${text}")
  file(CONFIGURE OUTPUT ${protocol_dir}/${proto}.proto CONTENT "${text}" @ONLY)
  list(APPEND proto_files ${protocol_dir}/${proto}.proto)
  list(APPEND sources ${protocol_dir}/${proto}.pb.cc)
  list(APPEND headers ${protocol_dir}/${proto}.pb.h)
endforeach()

add_custom_command(OUTPUT ${sources} ${headers}
                   COMMAND protobuf::protoc --proto_path=${protocol_dir} --cpp_out=${protocol_dir} ${proto_files}
                   DEPENDS ${proto_files} COMMENT "Making the messages of HBase's protocol" VERBATIM)
add_library(varve_hbase_protocol STATIC ${sources} ${headers})
target_include_directories(varve_hbase_protocol SYSTEM PUBLIC ${protocol_dir} ${Protobuf_INCLUDE_DIRS})
target_link_libraries(varve_hbase_protocol PUBLIC protobuf::libprotobuf)
# Nobody here can mend what protoc writes, and most of it is run once in a while.
target_compile_options(varve_hbase_protocol PRIVATE -w $<$<CONFIG:Release>:-O2>)
set(VARVE_HAS_HBASE ON)
