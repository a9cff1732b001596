# What every file is compiled with.
# One process image, whose symbols plug-ins use: initial-exec thread-locals cost one load.
# No contraction: a result may not depend on which compiler flag lets a multiply and an add fuse.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-ftls-model=initial-exec;-ffp-contract=off>")
# Variables, so of this tree's own targets alone. NOTE: [exported symbols] in core/export.h
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(LAMELLA_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)   # for ccache as well
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # quadmath.h lies with GCC; behind everything else, so that only what Clang does not have comes from there
  execute_process(COMMAND g++ -print-file-name=include OUTPUT_VARIABLE gcc_include
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  add_compile_options("SHELL:-idirafter ${gcc_include}" -Wno-unknown-pragmas -Wno-bitwise-instead-of-logical)
endif()
if(LAMELLA_SANITIZE)
  add_compile_options(-fsanitize=${LAMELLA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LAMELLA_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND LAMELLA_SANITIZE MATCHES address)
    add_compile_definitions(__SANITIZE_ADDRESS__=1)   # as GCC says it
  endif()
endif()
if(LAMELLA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
