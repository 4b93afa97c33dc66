# The manual pages, made by scdoc from packaging/man and from what the programs say of themselves. Without scdoc there are none.
find_program(SCDOC scdoc)
if(NOT SCDOC)
  return()
endif()

set(pages varve-server.8 varve.1 varve.toml.5)
set(man_script ${CMAKE_SOURCE_DIR}/packaging/man/page.sh)
set(manual)
foreach(page ${pages})
  set(made ${CMAKE_BINARY_DIR}/man/${page})
  add_custom_command(OUTPUT ${made}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
                     COMMAND ${man_script} ${page} $<TARGET_FILE:server_main> $<TARGET_FILE:client_main> ${PROJECT_VERSION} > ${made}.scd
                     COMMAND ${SCDOC} < ${made}.scd > ${made}
                     DEPENDS ${man_script} ${CMAKE_SOURCE_DIR}/packaging/man/${page}.scd server_main client_main
                     VERBATIM)
  list(APPEND manual ${made})
  string(REGEX REPLACE ".*\\." "" section ${page})
  install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT programs)
endforeach()
add_custom_target(manual ALL DEPENDS ${manual})
