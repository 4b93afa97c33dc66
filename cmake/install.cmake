# What `cmake --install` puts below the prefix: the programs, under the names that packages give them, with their manual pages and
# completions for shells (component `programs`), and the library with its headers, its
# CMake package (find_package(varve), target varve::varve) and its pkg-config file (component `library`).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(PROGRAMS $<TARGET_FILE:server_main> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME varve-server COMPONENT programs)
install(PROGRAMS $<TARGET_FILE:client_main> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME varve COMPONENT programs)
include(${CMAKE_CURRENT_LIST_DIR}/manual.cmake)
set(completion_dir ${CMAKE_SOURCE_DIR}/packaging/completion)
foreach(program varve varve-server)
  install(FILES ${completion_dir}/${program}.bash RENAME ${program} COMPONENT programs
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
endforeach()
# zsh looks into site-functions of /usr/local; Debian's packages have a folder of their own, which debian/rules names.
set(VARVE_ZSH_FOLDER site-functions CACHE STRING "The folder below share/zsh for the completion of zsh")
install(FILES ${completion_dir}/_varve DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/${VARVE_ZSH_FOLDER} COMPONENT programs)

install(TARGETS varve EXPORT varve_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/varve DESTINATION include COMPONENT library FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/varve)
install(EXPORT varve_targets FILE varve-targets.cmake NAMESPACE varve:: DESTINATION ${package_dir} COMPONENT library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/varve-config.cmake.in ${CMAKE_BINARY_DIR}/varve-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/varve-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/varve-config.cmake ${CMAKE_BINARY_DIR}/varve-config-version.cmake
        DESTINATION ${package_dir} COMPONENT library)

# The prefix is found from where the file lies, so that an installation may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE varve_prefix_from_pkgconfig)
configure_file(${CMAKE_CURRENT_LIST_DIR}/varve.pc.in ${CMAKE_BINARY_DIR}/varve.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/varve.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
