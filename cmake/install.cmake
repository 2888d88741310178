# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. Component `runtime`: the command, its shipped configurations, man
# page and completions. Component `development`: headers, static libraries, find_package(orrery).
include(CMakePackageConfigHelpers)

install(TARGETS orrery RUNTIME COMPONENT runtime)
if(EXISTS ${PROJECT_SOURCE_DIR}/configs)
  install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/orrery COMPONENT runtime)
endif()
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

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
