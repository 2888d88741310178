# SPDX-License-Identifier: Apache-2.0
# The interpreter for which the Python package is built. Debian's, for which its packages are, whatever stands first on
# PATH; -DPython_EXECUTABLE names another. Without its headers or pybind11 there is no package, and no test of it.
if(ORRERY_PYTHON AND ORRERY_SANITIZE)
  set(ORRERY_PYTHON OFF)  # the interpreter is not instrumented
endif()
if(ORRERY_PYTHON)
  if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python_EXECUTABLE /usr/bin/python3)
  endif()
  find_package(Python 3.9 COMPONENTS Interpreter Development.Module)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 2.9 QUIET)
  if(NOT Python_Development.Module_FOUND OR NOT pybind11_FOUND)
    message(STATUS "no pybind11-dev or python3-dev: the Python package is not built, its tests are left out")
    set(ORRERY_PYTHON OFF)
  endif()
endif()

# Debian's interpreter looks in dist-packages, of its version under every prefix but its own; others in site-packages.
if(ORRERY_PYTHON AND NOT ORRERY_PYTHON_FOLDER)
  string(FIND "${Python_SITELIB}" dist-packages debian)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND NOT debian EQUAL -1)
    set(ORRERY_PYTHON_FOLDER lib/python3/dist-packages)
  else()
    set(ORRERY_PYTHON_FOLDER lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages)
    if(NOT debian EQUAL -1)
      string(REPLACE site-packages dist-packages ORRERY_PYTHON_FOLDER ${ORRERY_PYTHON_FOLDER})
    endif()
  endif()
endif()
