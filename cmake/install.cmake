# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. Component `runtime`: the command, its shipped configurations, man
# page and completions. Component `development`: headers, static libraries, find_package(orrery).
include(CMakePackageConfigHelpers)

install(TARGETS orrery RUNTIME COMPONENT runtime)
if(EXISTS ${PROJECT_SOURCE_DIR}/configs)
  install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery COMPONENT runtime)
endif()
install(DIRECTORY docs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery COMPONENT runtime)
# Shipped descriptions name their schema for editors, by a path that holds in a checkout too.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/links)
file(CREATE_LINK ../schema ${PROJECT_BINARY_DIR}/links/schema SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/links/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery/docs COMPONENT runtime)
install(FILES README.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")  # Debian has it in /usr/share/common-licenses
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
endif()
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime USE_SOURCE_PERMISSIONS
        PATTERN *.in EXCLUDE PATTERN site EXCLUDE)

# A program that links the installed library looks for configurations under the prefix it was found in.
set(shared $<INSTALL_PREFIX>/${CMAKE_INSTALL_DATADIR}/orrery)
install(FILES cmake/installed_configs.cc DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery COMPONENT development)
target_sources(orrery_base INTERFACE $<INSTALL_INTERFACE:${shared}/installed_configs.cc>)
target_compile_definitions(orrery_base INTERFACE
                           "$<INSTALL_INTERFACE:ORRERY_INSTALLED_CONFIGS=\"${shared}/configs\">")

# orrery::orrery is all modules at once; each is also there by its own name, as orrery::simulate.
get_property(modules GLOBAL PROPERTY ORRERY_MODULES)
add_custom_target(shipped DEPENDS orrery ${modules})
if(TARGET manual)
  add_dependencies(shipped manual)
endif()
add_library(orrery_library INTERFACE)
set_target_properties(orrery_library PROPERTIES EXPORT_NAME orrery)
target_link_libraries(orrery_library INTERFACE ${modules})
install(TARGETS orrery_library EXPORT orrery)

set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/orrery)
install(EXPORT orrery NAMESPACE orrery:: FILE orrery-targets.cmake DESTINATION ${folder} COMPONENT development)
configure_package_config_file(cmake/orrery-config.cmake.in orrery-config.cmake INSTALL_DESTINATION ${folder})
write_basic_package_version_file(orrery-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/orrery-config.cmake ${PROJECT_BINARY_DIR}/orrery-config-version.cmake
        DESTINATION ${folder} COMPONENT development)
