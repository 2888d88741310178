# SPDX-License-Identifier: Apache-2.0
# Man page and shell completions, made from the command's own --help so that they cannot go stale.
find_package(Python3 COMPONENTS Interpreter)
set(ORRERY_MANUAL_FOLDER ${PROJECT_BINARY_DIR}/manual)
if(NOT Python3_FOUND)
  return()
endif()

set(manual_files ${ORRERY_MANUAL_FOLDER}/orrery.1 ${ORRERY_MANUAL_FOLDER}/orrery.bash
                 ${ORRERY_MANUAL_FOLDER}/_orrery ${ORRERY_MANUAL_FOLDER}/orrery.fish)
add_custom_command(OUTPUT ${manual_files}
  COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/make_manual.py $<TARGET_FILE:orrery>
          ${PROJECT_SOURCE_DIR}/docs/orrery.1.in ${PROJECT_VERSION} ${ORRERY_MANUAL_FOLDER}
  DEPENDS orrery ${PROJECT_SOURCE_DIR}/tools/make_manual.py ${PROJECT_SOURCE_DIR}/docs/orrery.1.in
  COMMENT "Man page and shell completions" VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual_files})
set(manual_page ${ORRERY_MANUAL_FOLDER}/orrery.1)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")  # as Debian wants it; gzip -n names no date
  set(manual_page ${ORRERY_MANUAL_FOLDER}/orrery.1.gz)
  add_custom_command(OUTPUT ${manual_page} COMMAND gzip -n9c ${ORRERY_MANUAL_FOLDER}/orrery.1 > ${manual_page}
                     DEPENDS ${ORRERY_MANUAL_FOLDER}/orrery.1)
  add_custom_target(manual_compressed ALL DEPENDS ${manual_page})
  add_dependencies(manual_compressed manual)
endif()
install(FILES ${manual_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
install(FILES ${ORRERY_MANUAL_FOLDER}/orrery.bash RENAME orrery
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${ORRERY_MANUAL_FOLDER}/_orrery
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT runtime)
install(FILES ${ORRERY_MANUAL_FOLDER}/orrery.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
