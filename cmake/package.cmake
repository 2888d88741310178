# SPDX-License-Identifier: Apache-2.0
# `cpack --config build/release/CPackConfig.cmake` makes orrery_*.deb (command, configurations, manual), orrery-dev_*.deb
# (headers, static libraries) and, where the prefix is /usr, python3-orrery_*.deb: other prefixes are not where
# Debian's interpreter looks. tools/release.sh makes packages that lintian finds nothing in.
set(CPACK_GENERATOR DEB)
# Packages and what they are made of go to the build folder, wherever cpack is run.
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_depends.cmake)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
# There is no address: .invalid is reserved for that (RFC 2606), and lintian refuses localhost.
set(CPACK_PACKAGE_CONTACT "The Orrery authors <orrery@orrery.invalid>")
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME orrery)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "simulator of training and serving large models
 Predicts how long a training step of a large model takes on many
 accelerators, what limits it and whether it fits in memory, which
 parallelisation is fastest and what an inference engine delivers, by
 simulating the step event by event.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME orrery-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "orrery (= ${PROJECT_VERSION}), libfmt-dev, libyaml-dev, nlohmann-json3-dev, libexpected-dev, libpugixml-dev, libprotobuf-dev, libsqlite3-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "headers and static libraries of orrery
 What programs need that simulate training and serving of large models
 through find_package(orrery).")
set(packages orrery runtime orrery-dev development)
if(ORRERY_PYTHON AND ORRERY_PYTHON_FOLDER STREQUAL "lib/python3/dist-packages")
  list(APPEND CPACK_COMPONENTS_ALL python)
  list(APPEND packages python3-orrery python)
  math(EXPR next "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-orrery)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "orrery (= ${PROJECT_VERSION}), python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${next})")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-numpy)
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "simulator of training and serving large models - Python 3
 The module orrery: questions as functions, results as objects and
 NumPy arrays.")
endif()

# Each package has its copyright and changelog; gzip -n names no date.
set(changelog ${PROJECT_BINARY_DIR}/changelog.gz)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS packaging/changelog)
execute_process(COMMAND gzip -n9c ${PROJECT_SOURCE_DIR}/packaging/changelog OUTPUT_FILE ${changelog})
while(packages)
  list(POP_FRONT packages package component)
  install(FILES packaging/copyright ${changelog} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endwhile()
include(CPack)
