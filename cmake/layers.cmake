# The rooms as libraries. A layer says what it may see; anything else does not configure or does not compile.
# Lowest first: this line is the architecture.
set(LAMELLA_LAYERS core text dispatch draw kernels ops transforms verify mutate)

# To be precompiled: most of lamella.h, but no typed call, so that a new operator leaves it as it is.
set(LAMELLA_WITHOUT_FUNCTIONS <lamella/ops/operators.h> <lamella/transforms/autograd.h>
  <lamella/transforms/checkpoint.h> <lamella/transforms/custom.h> <lamella/transforms/jacobian.h>
  <lamella/transforms/linearize.h> <lamella/transforms/vmap.h>)

# include/NAME/lamella/NAME in the build: a link to the room, or, where the build adds headers, a folder of
# links.
function(lamella_show_headers name made)
  set(shown ${PROJECT_BINARY_DIR}/include/${name}/lamella/${name})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/${name}/lamella)
  if(IS_SYMLINK ${shown} AND made)   # of an older build: nothing may be written through it
    file(REMOVE ${shown})
  elseif(NOT IS_SYMLINK ${shown} AND NOT made)
    file(REMOVE_RECURSE ${shown})
  endif()
  if(NOT made)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${shown} SYMBOLIC)
    return()
  endif()
  file(MAKE_DIRECTORY ${shown})
  foreach(header IN LISTS ARGN)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name}/${header} ${shown}/${header} SYMBOLIC)
  endforeach()
endfunction()

# lamella_layer(NAME [MADE] USES layers... HIDES layers... HEADERS files... PRIVATE_HEADERS files...
#   PRECOMPILE headers... SOURCES files...)
# USES is visible to whoever uses this layer; HIDES is visible to this layer's own sources only.
# MADE: headers of this room are written by the build, beside the others, which are linked one by one then.
# PRECOMPILE saves reading headers again for each file; the dev preset does without, so no file relies on it.
function(lamella_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MADE" "" "USES;HIDES;HEADERS;PRIVATE_HEADERS;PRECOMPILE;SOURCES")
  list(FIND LAMELLA_LAYERS ${name} rank)
  foreach(dep IN LISTS arg_USES arg_HIDES)
    list(FIND LAMELLA_LAYERS ${dep} dep_rank)
    if(dep_rank LESS 0 OR NOT dep_rank LESS rank)
      message(FATAL_ERROR "layer '${name}' may not use '${dep}': the order is ${LAMELLA_LAYERS}")
    endif()
  endforeach()
  list(TRANSFORM arg_USES PREPEND lamella::)
  list(TRANSFORM arg_HIDES PREPEND lamella::)
  set(root ${PROJECT_BINARY_DIR}/include/${name})   # shows this folder only
  lamella_show_headers(${name} "${arg_MADE}" ${arg_HEADERS} ${arg_PRIVATE_HEADERS})
  if(arg_SOURCES)
    add_library(lamella_${name} STATIC ${arg_SOURCES})
    target_link_libraries(lamella_${name} PUBLIC ${arg_USES} PRIVATE ${arg_HIDES})
    target_include_directories(lamella_${name} PUBLIC $<BUILD_INTERFACE:${root}>)
    target_precompile_headers(lamella_${name} PRIVATE ${arg_PRECOMPILE})
  else()   # a room of headers alone
    add_library(lamella_${name} INTERFACE)
    target_link_libraries(lamella_${name} INTERFACE ${arg_USES})
    target_include_directories(lamella_${name} INTERFACE $<BUILD_INTERFACE:${root}>)
  endif()
  add_library(lamella::${name} ALIAS lamella_${name})
  if(arg_HEADERS)
    list(GET arg_HEADERS 0 first)
    set_property(GLOBAL PROPERTY lamella_header_of_${name} lamella/${name}/${first})   # cmake/checks.cmake
  endif()
  set_property(GLOBAL PROPERTY lamella_headers_of_${name} ${arg_HEADERS})   # cmake/install.cmake
  # So that the dev preset can compile each header alone. A set that is there must be installed, kernels' too.
  if(arg_SOURCES AND CMAKE_VERIFY_INTERFACE_HEADER_SETS)
    list(TRANSFORM arg_HEADERS PREPEND ${root}/lamella/${name}/)
    target_sources(lamella_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${arg_HEADERS})
  endif()
endfunction()

# The include paths a target sees, as a list of -I options for a test that calls the compiler itself.
function(lamella_compile_command out target)
  set(dirs $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
  set(includes "-I$<JOIN:${dirs},$<SEMICOLON>-I>")
  set(${out} ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only "${includes}" PARENT_SCOPE)
endfunction()

# lamella_must_not_compile(ROOM INCLUDES header TWIN room): ROOM's users cannot see the header, TWIN's can.
# lamella_must_not_compile(ROOM SOURCE file MESSAGE regex): with -DLAMELLA_WRONG the file is refused with that
# message, without it it compiles.
# The compiling twin shows that the refusal has the reason we think it has.
function(lamella_must_not_compile room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "INCLUDES;TWIN;SOURCE;MESSAGE" "")
  set(good_room ${room})
  if(arg_INCLUDES)
    set(good_room ${arg_TWIN})
    string(REPLACE "/" "_" label "${room}_${arg_INCLUDES}")
    set(source ${PROJECT_BINARY_DIR}/must_not_compile/${label}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${arg_INCLUDES}\"\n")
    set(arg_MESSAGE "${arg_INCLUDES}: No such file or directory|'${arg_INCLUDES}' file not found")
  else()
    get_filename_component(source ${arg_SOURCE} ABSOLUTE)
    get_filename_component(label ${arg_SOURCE} NAME_WE)
  endif()
  lamella_compile_command(wrong lamella_${room})
  lamella_compile_command(good lamella_${good_room})
  add_test(NAME layering.refused.${label} COMMAND ${wrong} -DLAMELLA_WRONG ${source} COMMAND_EXPAND_LISTS)
  add_test(NAME layering.twin_compiles.${label} COMMAND ${good} ${source} COMMAND_EXPAND_LISTS)
  set_tests_properties(layering.refused.${label} PROPERTIES
    PASS_REGULAR_EXPRESSION "${arg_MESSAGE}" LABELS house)
  set_tests_properties(layering.twin_compiles.${label} PROPERTIES LABELS house)
endfunction()

# lamella_link_whole(TARGET): every object of every layer, and the symbols shown to plug-ins: those of
# installed headers. The objects themselves, since a linker takes from an archive only what it misses; the
# archives bring their dependencies.
function(lamella_link_whole target)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  foreach(layer IN LISTS LAMELLA_LAYERS)
    get_target_property(type lamella_${layer} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:lamella_${layer}>)
    endif()
    target_link_libraries(${target} PRIVATE lamella_${layer})
  endforeach()
  get_property(objects GLOBAL PROPERTY lamella_isa_objects)
  target_sources(${target} PRIVATE ${objects})
endfunction()

# lamella_test_program(NAME SOURCES files... LINK libraries... SHARDED suite): GoogleTest; each test is one of
# ctest's. Those of the suite SHARDED, thousands that take milliseconds each, are 16 processes instead:
# NAME.suite.0 to 15.
function(lamella_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SHARDED" "SOURCES;LINK")
  if(NOT LAMELLA_HAVE_TESTS OR NOT arg_SOURCES)
    return()
  endif()
  include(GoogleTest)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE lamella::mutate lamella::text GTest::gtest GTest::gtest_main
    ${arg_LINK})
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> ${LAMELLA_WITHOUT_FUNCTIONS}
    <lamella/verify/case/law.h>)
  target_compile_definitions(${name} PRIVATE LAMELLA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE -O1)   # compiling tests takes longer than running them
  set(alone *)
  if(arg_SHARDED)
    set(alone -${arg_SHARDED}.*)
    foreach(shard RANGE 15)
      set(test ${name}.${arg_SHARDED}.${shard})
      add_test(NAME ${test} COMMAND ${name} --gtest_filter=${arg_SHARDED}.* --gtest_brief=1)
      set_tests_properties(${test} PROPERTIES TIMEOUT 600
        ENVIRONMENT "GTEST_TOTAL_SHARDS=16;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}. TEST_FILTER ${alone} DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
