# SPDX-License-Identifier: Apache-2.0
# cpack runs this before it makes packages. It finds the packages of the shared libraries that ours need. Left to itself cpack
# asks `file` about each of 800 files which of them are programs; here dpkg-shlibdeps is asked about the programs alone.
cmake_policy(VERSION 3.25)

# add_shared_libraries(COMPONENT PATTERN): appends to the component's Depends what its programs, named by PATTERN, need.
function(add_shared_libraries component pattern)
  file(GLOB programs ${CPACK_TEMPORARY_DIRECTORY}/${component}/${pattern})
  if(NOT programs)
    message(FATAL_ERROR "no ${pattern} in component ${component}")
  endif()
  file(WRITE ${CPACK_TEMPORARY_DIRECTORY}/debian/control "")  # dpkg-shlibdeps wants one
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C dpkg-shlibdeps --ignore-missing-info -O ${programs}
                  WORKING_DIRECTORY ${CPACK_TEMPORARY_DIRECTORY} OUTPUT_VARIABLE found ERROR_VARIABLE mistakes
                  RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "dpkg-shlibdeps ${programs}: ${mistakes}")
  endif()
  string(REGEX REPLACE "^.*Depends=" "" found "${found}")
  string(TOUPPER ${component} name)
  string(JOIN ", " depends ${CPACK_DEBIAN_${name}_PACKAGE_DEPENDS} ${found})
  set(CPACK_DEBIAN_${name}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
endfunction()

add_shared_libraries(runtime usr/bin/orrery)
if("python" IN_LIST CPACK_COMPONENTS_ALL)
  add_shared_libraries(python usr/lib/python3/dist-packages/orrery/*.so)
endif()
