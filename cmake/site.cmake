# SPDX-License-Identifier: Apache-2.0
# `cmake --build BUILD --target docs_site` writes the pages as a site that needs no network to BUILD/site.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_custom_target(docs_site
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/make_site.py ${PROJECT_BINARY_DIR}/site
            --version ${PROJECT_VERSION}
    COMMENT "Pages as a site" VERBATIM)
endif()
