# SPDX-License-Identifier: Apache-2.0
# One library target per folder of src/, linked only to lower folders (docs/architecture.md).

# Warnings are errors where tests are built, by g++ or clang: who only uses the program is not stopped by one that his
# compiler's next version adds. Those of memcpy's bounds are off: when optimising, g++ 12 reports them falsely for
# "text" + std::string (https://gcc.gnu.org/PR105651), with precompiled headers even in the library's own
# code; the sanitizers look there. Nor does it see that an empty std::optional is not read (PR80635). None of
# them reaches a project that links the installed libraries.
add_library(orrery_options INTERFACE)
set_target_properties(orrery_options PROPERTIES EXPORT_NAME options)
target_compile_features(orrery_options INTERFACE cxx_std_20)
target_compile_options(orrery_options INTERFACE
  "$<BUILD_INTERFACE:-Wall;-Wextra;-Wconversion;-Wshadow;$<$<BOOL:${ORRERY_TESTS}>:-Werror>;$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-maybe-uninitialized>>")
if(ORRERY_UNITY)  # names of one file's own are not another's
  target_compile_options(orrery_options INTERFACE $<BUILD_INTERFACE:-Wno-shadow>)
endif()
if(ORRERY_QUICK_BUILD)  # what is optimised compiles in a sixth less time
  target_compile_options(orrery_options INTERFACE "$<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -inline-threshold=100>>")
endif()
if(ORRERY_PYTHON)  # the module is a shared library; no name of ours is replaced when a program is loaded
  target_compile_options(orrery_options INTERFACE $<BUILD_INTERFACE:-fPIC> $<BUILD_INTERFACE:-fno-semantic-interposition>)
endif()
target_include_directories(orrery_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/orrery>)
target_link_libraries(orrery_options INTERFACE tl::expected)
install(TARGETS orrery_options EXPORT orrery)
if(ORRERY_SANITIZE)
  # A null, misaligned or foreign pointer stops at the address check, too: looking for it at every access makes
  # half as much code again.
  set(sanitize -fsanitize=${ORRERY_SANITIZE} -fno-sanitize=null,alignment,object-size,vptr -fno-sanitize-recover=all)
  if(ORRERY_FUZZ)  # edges, without the operands of comparisons: those are in the dictionary
    list(APPEND sanitize -fsanitize-coverage=inline-8bit-counters,pc-table)
  endif()
  if(NOT ORRERY_SANITIZE STREQUAL thread)
    # The tests' own code goes without: it is what is compiled most, and not what is looked at.
    string(REPLACE "," "$<COMMA>" sanitize "${sanitize}")
    set(sanitize "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:ORRERY_TEST>>>:${sanitize}>")
  endif()
  target_compile_options(orrery_options INTERFACE "${sanitize}" -fno-omit-frame-pointer)
  target_link_options(orrery_options INTERFACE -fsanitize=${ORRERY_SANITIZE})
endif()

# orrery_odr(target) lets the link of `odr` see all that the target defines.
function(orrery_odr target)
  if(ORRERY_ODR)
    target_compile_options(${target} PRIVATE -flto -ffat-lto-objects)
    set_property(GLOBAL APPEND PROPERTY ORRERY_ODR_OBJECTS $<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,gch$>)
  endif()
endfunction()
if(ORRERY_ODR)  # programs and the indices of archives take the machine code, which is the same with and without
  target_link_options(orrery_options INTERFACE $<BUILD_INTERFACE:-fno-lto>)
  set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> --plugin /dev/null qc <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_CXX_ARCHIVE_FINISH "<CMAKE_RANLIB> --plugin /dev/null <TARGET>")
endif()

# orrery_precompile(target KIND HEADERS...) compiles the headers once for the first target of a kind and all
# that come later: half of the time of an unoptimised source, a quarter of an optimised one. Sources include what
# they use all the same; clang-tidy looks at them without (tools/run_tidy.py). With ORRERY_COLD_BUILD the rooms' own
# headers are among them, with what their types instantiate: a third less to build all, and a change of one builds all.
function(orrery_precompile target kind)
  get_property(first GLOBAL PROPERTY ORRERY_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY ORRERY_PRECOMPILED_${kind} ${target})
  endif()
endfunction()
set(orrery_common_headers <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <numeric> <optional> <set>
    <span> <string> <string_view> <utility> <vector> <tl/expected.hpp> <fmt/format.h>)
if(ORRERY_COLD_BUILD)
  list(APPEND orrery_common_headers <bit> <chrono> <deque> <filesystem> <fstream> <iostream> <list> <queue> <random> <ranges>
       <sstream> <unordered_map> <unordered_set> <variant> <fmt/ranges.h>
       <base/collect.h> <base/csv.h> <base/fields.h> <base/file.h> <base/format.h> <base/listed_names.h> <base/lists.h>
       <machine/machine.h> <machine/network/flit/open_loop.h> <collective/cost.h> <workload/interop/interop.h>
       <simulate/simulate.h> <serving/metrics.h> <study/estimate_step.h> <study/run.h> <study/trust.h> <study/validate.h>
       <planner/full/search.h>)
endif()

# orrery_unity(target) compiles its sources together, in batches of equal size and at most 32: every batch reads its
# headers again. With ORRERY_COLD_BUILD all are one batch, which takes up to a quarter less time, and a change of one
# source as long. A folder in one batch cannot define a name twice.
function(orrery_unity target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  set(size ${count})
  if(NOT ORRERY_COLD_BUILD)
    math(EXPR batches "(${count} + 31) / 32")
    math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ORRERY_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# orrery_optimise(target [COLD|WARM]) sets the optimisation of release builds and the precompiled headers, which must
# agree with it. COLD: what reads, prints and hands on spends no time that a user would see; it compiles in half of the
# time with one step less: -O1 where the rest has -O3, -O0 where the rest has -O1 (preset check). WARM: the same, but in
# preset check, where its tests would take longer than its compilation saves, it has -O1, too. Builds that state one
# optimisation for all (asan) keep it, and precompile once.
function(orrery_optimise target)
  cmake_parse_arguments(ARG "COLD;WARM" "" "" ${ARGN})
  if(ARG_WARM AND NOT ORRERY_QUICK_BUILD)
    set(ARG_COLD TRUE)
  endif()
  if(ARG_COLD AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE $<IF:$<BOOL:${ORRERY_QUICK_BUILD}>,-O0,-O1>)
    orrery_precompile(${target} cold_modules ${orrery_common_headers})
  else()
    set_property(TARGET ${target} PROPERTY ORRERY_OPTIMISED TRUE)
    orrery_precompile(${target} modules ${orrery_common_headers})
  endif()
endfunction()

# orrery_optimised_first(target LIBRARIES...) links the optimised ones of the libraries, and of theirs, before the
# target's own objects. The linker keeps the first copy of a template's or inline function's instance: were it that of
# unoptimised code, optimised code would call it, and simulations take twice the time.
function(orrery_optimised_first target)
  set(todo ${ARGN})
  set(seen)
  set(files)
  while(todo AND ORRERY_QUICK_BUILD)
    list(POP_FRONT todo library)
    if(TARGET ${library} AND library MATCHES "^orrery_" AND NOT library IN_LIST seen)
      list(APPEND seen ${library})
      get_target_property(optimised ${library} ORRERY_OPTIMISED)
      if(optimised)
        string(APPEND files " $<TARGET_FILE:${library}>")
      endif()
      get_target_property(more ${library} INTERFACE_LINK_LIBRARIES)
      list(APPEND todo ${more})
    endif()
  endwhile()
  if(files)
    target_link_options(${target} PRIVATE "SHELL:-Wl,--whole-archive${files} -Wl,--no-whole-archive")
  endif()
endfunction()

# orrery_module(machine/compute [COLD|WARM] DEPENDS base graph EXTERNAL yaml)
# makes target orrery_machine_compute of src/machine/compute/*.cc, installed with its headers.
function(orrery_module folder)
  cmake_parse_arguments(ARG "COLD;WARM" "" "DEPENDS;EXTERNAL" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  if(sources)
    set(scope PUBLIC)
    add_library(orrery_${name} STATIC ${sources})
    target_link_libraries(orrery_${name} PRIVATE fmt::fmt ${ARG_EXTERNAL})
    if(ARG_COLD)
      orrery_optimise(orrery_${name} COLD)
    elseif(ARG_WARM)
      orrery_optimise(orrery_${name} WARM)
    else()
      orrery_optimise(orrery_${name})
    endif()
    orrery_odr(orrery_${name})
    orrery_unity(orrery_${name})
  else()
    set(scope INTERFACE)
    add_library(orrery_${name} INTERFACE)
  endif()
  target_link_libraries(orrery_${name} ${scope} orrery_options)
  foreach(dependency ${ARG_DEPENDS})
    string(REPLACE "/" "_" dependency ${dependency})
    target_link_libraries(orrery_${name} ${scope} orrery_${dependency})
  endforeach()
  set_target_properties(orrery_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS orrery_${name} EXPORT orrery ARCHIVE COMPONENT development)
  if(sources AND ORRERY_ODR)  # intermediate code is for this compiler alone
    install(CODE "execute_process(COMMAND ${CMAKE_OBJCOPY} --wildcard --remove-section=.gnu.lto_* --remove-section=.gnu.debuglto_*
                  \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/liborrery_${name}.a COMMAND_ERROR_IS_FATAL ANY)"
            COMPONENT development)
  endif()
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.h)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/orrery/${folder} COMPONENT development)
  set_property(GLOBAL APPEND PROPERTY ORRERY_MODULES orrery_${name})
endfunction()

# orrery_protobuf(workload/chakra chakra) compiles src/workload/chakra/chakra.proto when building and adds
# the code to the module. `#include "chakra.pb.h"` finds it in this build only: no installed header needs it.
function(orrery_protobuf folder name)
  string(REPLACE "/" "_" module orrery_${folder})
  set(generated ${PROJECT_BINARY_DIR}/generated/${folder})
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(OUTPUT ${generated}/${name}.pb.cc ${generated}/${name}.pb.h
    COMMAND protobuf::protoc --cpp_out=${generated} -I ${PROJECT_SOURCE_DIR}/src/${folder} ${name}.proto
    DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/${name}.proto VERBATIM)
  # Not ours to warn about.
  set_source_files_properties(${generated}/${name}.pb.cc PROPERTIES COMPILE_OPTIONS -w
                              SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${module} PRIVATE ${generated}/${name}.pb.cc ${generated}/${name}.pb.h)
  target_include_directories(${module} SYSTEM PUBLIC $<BUILD_INTERFACE:${generated}>)
endfunction()

# orrery_algorithms(target [MORE_FILES...]) gives the target the list of collective algorithms: a row of each
# src/collective/algorithm_NAME.cc, and of more files so named. What a program brings along stands for the library's.
function(orrery_algorithms target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/collective/algorithm_*.cc)
  set(declared)
  set(listed)
  foreach(file ${files} ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    string(REPLACE algorithm_ "" name ${name})
    string(APPEND declared "AlgorithmRow ${name}_row();\n")
    list(APPEND listed "${name}_row()")
  endforeach()
  list(JOIN listed ", " listed)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_algorithms.cc)
  file(CONFIGURE OUTPUT ${list} CONTENT [[
#include "collective/algorithm.h"
namespace orrery::collective {
@declared@
std::vector<AlgorithmRow> algorithm_files() { return {@listed@}; }
}
]] @ONLY)
  target_sources(${target} PRIVATE ${list} ${ARGN})
  set_source_files_properties(${list} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # an object that another can stand for
endfunction()

# orrery_texts(emit runtime_text.h kName file ...) makes `#include "emit/runtime_text.h"` of the module: the texts of
# files of its folder runtime/, or of any folder by its path from there, which the command writes.
function(orrery_texts folder header)
  set(text "// Made by CMake.\n#pragma once\n#include <string_view>\nnamespace orrery::${folder} {\n")
  while(ARGN)
    list(POP_FRONT ARGN name file)
    set(source ${PROJECT_SOURCE_DIR}/src/${folder}/runtime/${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(READ ${source} content)
    string(APPEND text "inline constexpr std::string_view ${name} = R\"text(${content})text\";\n")
  endwhile()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${folder}/${folder}/${header} CONTENT "${text}}\n" @ONLY)
  target_include_directories(orrery_${folder} SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/generated/${folder})
endfunction()
