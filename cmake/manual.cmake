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
install(FILES ${ORRERY_MANUAL_FOLDER}/orrery.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
install(FILES ${ORRERY_MANUAL_FOLDER}/orrery.bash RENAME orrery
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${ORRERY_MANUAL_FOLDER}/_orrery
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT runtime)
install(FILES ${ORRERY_MANUAL_FOLDER}/orrery.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
