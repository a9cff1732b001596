# NOTE: [typed API] The functions by which operators are called are written at build time, from the rows of
# ops/*.cpp: a header and a source for each FAMILY, in the folder in which ops shows its headers, and
# functions.h, which includes them all. docs/decisions/0023 says why so.
function(lamella_typed_api)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FAMILIES;WRITER")
  add_executable(lamella_typed_api_writer EXCLUDE_FROM_ALL ${arg_WRITER})
  target_link_libraries(lamella_typed_api_writer PRIVATE lamella::dispatch)
  set(shown ${PROJECT_BINARY_DIR}/include/ops/lamella/ops)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/typed_api)
  set(blank ${made}/blank/lamella/ops)   # what rows include before it is there
  file(MAKE_DIRECTORY ${shown}/functions)
  file(CONFIGURE OUTPUT ${blank}/functions.h CONTENT "")
  set(dirs $<TARGET_PROPERTY:lamella_ops,INCLUDE_DIRECTORIES>)
  set(defined $<TARGET_PROPERTY:lamella_ops,COMPILE_DEFINITIONS>)
  set(all "// The typed API: every operator as functions, and operators on tensors.\n#pragma once\n\n")
  foreach(family IN LISTS arg_FAMILIES)
    file(CONFIGURE OUTPUT ${blank}/functions/${family}.h CONTENT "")
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/${family}.cpp)
    set(header ${shown}/functions/${family}.h)
    add_custom_command(OUTPUT ${header} ${made}/${family}.cpp
      COMMAND ${CMAKE_CXX_COMPILER} -E -std=c++20 -w -MD -MF ${made}/${family}.d -MT ${header}
        -I${made}/blank "-I$<JOIN:${dirs},;-I>" "$<$<BOOL:${defined}>:-D$<JOIN:${defined},;-D>>"
        ${source} -o ${made}/${family}.i
      COMMAND lamella_typed_api_writer ${family} ${source} ${made}/${family}.i ${header} ${made}/${family}.cpp
      DEPENDS lamella_typed_api_writer ${source} DEPFILE ${made}/${family}.d
      COMMENT "Typed API of ${family}" VERBATIM COMMAND_EXPAND_LISTS)
    string(APPEND all "#include \"lamella/ops/functions/${family}.h\"\n")
    list(APPEND headers functions/${family}.h)
    list(APPEND files ${header})
    list(APPEND sources ${made}/${family}.cpp)
  endforeach()
  file(CONFIGURE OUTPUT ${shown}/functions.h CONTENT "${all}" @ONLY)
  add_custom_target(lamella_typed_api DEPENDS ${files})   # for who includes without linking: plug-ins
  add_dependencies(lamella_ops lamella_typed_api)
  target_sources(lamella_ops PRIVATE ${sources} ${files})
  if(CMAKE_VERIFY_INTERFACE_HEADER_SETS)   # as lamella_layer does with the others
    target_sources(lamella_ops PUBLIC FILE_SET HEADERS FILES ${shown}/functions.h ${files})
  endif()
  set_property(GLOBAL PROPERTY lamella_made_headers_of_ops functions.h ${headers})   # cmake/install.cmake
endfunction()
