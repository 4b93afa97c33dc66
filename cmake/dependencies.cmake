# Every library Varve stands on, all from Debian packages (packages.txt); docs/decisions/0001-dependencies-from-debian.md says why each.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

# TLS, and passwords, which are kept as SHA-256. The server and the client library need it.
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)

# Line editing of client_main's prompt.
find_path(EDIT_INCLUDE histedit.h REQUIRED)
find_library(EDIT_LIBRARY edit REQUIRED)
add_library(varve_edit INTERFACE)
target_include_directories(varve_edit SYSTEM INTERFACE ${EDIT_INCLUDE})
target_link_libraries(varve_edit INTERFACE ${EDIT_LIBRARY})

# The archives of `varve bundle`.
find_package(LibArchive REQUIRED)
add_library(varve_archive INTERFACE)
target_link_libraries(varve_archive INTERFACE LibArchive::LibArchive)

# Compressed values (db/compression), and the change files of archives (tools/archive).
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
add_library(varve_zstd INTERFACE)
target_include_directories(varve_zstd SYSTEM INTERFACE ${ZSTD_INCLUDE})
target_link_libraries(varve_zstd INTERFACE ${ZSTD_LIBRARY})

find_path(LZ4_INCLUDE lz4.h REQUIRED)
find_library(LZ4_LIBRARY lz4 REQUIRED)
add_library(varve_lz4 INTERFACE)
target_include_directories(varve_lz4 SYSTEM INTERFACE ${LZ4_INCLUDE})
target_link_libraries(varve_lz4 INTERFACE ${LZ4_LIBRARY})

# XXH3 is used header-only, so that hashing of short keys is inlined.
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(varve_xxhash INTERFACE)
target_include_directories(varve_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})
target_compile_definitions(varve_xxhash INTERFACE XXH_INLINE_ALL)

# Header-only, and included in one file alone, as it takes long to compile.
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
add_library(varve_toml INTERFACE)
target_include_directories(varve_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})

find_path(ASIO_INCLUDE asio.hpp REQUIRED)
add_library(varve_asio INTERFACE)
target_include_directories(varve_asio SYSTEM INTERFACE ${ASIO_INCLUDE})
target_compile_definitions(varve_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(varve_asio INTERFACE Threads::Threads)
