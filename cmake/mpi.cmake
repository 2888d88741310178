# SPDX-License-Identifier: Apache-2.0
# The programs that run under MPI, once for each library of it: their binary interfaces differ. Found are those of
# Debian; elsewhere -DORRERY_MPI_INCLUDE_openmpi=FOLDER -DORRERY_MPI_LIBRARY_openmpi=FILE
# -DORRERY_MPIEXEC_openmpi=PROGRAM name one, and the same for mpich.
set(orrery_mpi_root /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
find_path(ORRERY_MPI_INCLUDE_openmpi mpi.h PATHS ${orrery_mpi_root}/openmpi/include NO_DEFAULT_PATH)
find_library(ORRERY_MPI_LIBRARY_openmpi mpi PATHS ${orrery_mpi_root}/openmpi/lib NO_DEFAULT_PATH)
find_program(ORRERY_MPIEXEC_openmpi mpiexec.openmpi)
find_path(ORRERY_MPI_INCLUDE_mpich mpi.h PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich NO_DEFAULT_PATH)
find_library(ORRERY_MPI_LIBRARY_mpich mpich)
find_program(ORRERY_MPIEXEC_mpich mpiexec.mpich)

# ORRERY_MPIS: the libraries that are here.
set(ORRERY_MPIS)
if(ORRERY_MPI AND NOT ORRERY_SANITIZE)  # they leak
  foreach(library openmpi mpich)
    if(ORRERY_MPI_INCLUDE_${library} AND ORRERY_MPI_LIBRARY_${library} AND ORRERY_MPIEXEC_${library})
      list(APPEND ORRERY_MPIS ${library})
    else()
      message(STATUS "no ${library}: its programs are not built, their tests are left out")
    endif()
  endforeach()
endif()

# orrery_mpi(target library) compiles and links a target with that library. Its own C++ interface, which MPI 3 has
# given up, is left out.
function(orrery_mpi target library)
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_include_directories(${target} SYSTEM PRIVATE ${ORRERY_MPI_INCLUDE_${library}})
  target_link_libraries(${target} PRIVATE ${ORRERY_MPI_LIBRARY_${library}})
endfunction()

# orrery_mpi_program(name library SOURCES... LINK...) makes mpi/LIBRARY/NAME in the build folder; `cmake --install BUILD
# --component mpi` puts it into libexec/orrery/LIBRARY, where the command looks.
function(orrery_mpi_program name library)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  set(target ${name}_${library})
  add_executable(${target} ${ARG_SOURCES})
  orrery_mpi(${target} ${library})
  orrery_optimise(${target})
  orrery_unity(${target})
  target_link_libraries(${target} PRIVATE orrery_options ${ARG_LINK})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/mpi/${library})
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/orrery/mpi/${library} COMPONENT mpi EXCLUDE_FROM_ALL)
endfunction()
