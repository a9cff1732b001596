# One text, three instruction sets: each file given here is compiled once per backend into kernels.

set(LAMELLA_BACKENDS scalar avx2 avx512)
set(LAMELLA_FLAGS_scalar)
set(LAMELLA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(LAMELLA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512)
separate_arguments(LAMELLA_ISA_OPTIONS UNIX_COMMAND
  "${LAMELLA_ISA_FLAGS} -fstack-protector-strong -fno-math-errno -fno-trapping-math -ffp-contract=off")
find_program(LAMELLA_OBJCOPY objcopy REQUIRED)
find_program(LAMELLA_NM nm REQUIRED)

# lamella_isa_sources(files...)  LAMELLA_BACKEND is the namespace to write the file's functions in.
function(lamella_isa_sources)
  if(NOT ARGN)
    return()
  endif()
  foreach(backend IN LISTS LAMELLA_BACKENDS)
    set(target lamella_kernels_${backend})
    add_library(${target} OBJECT ${ARGN})
    target_link_libraries(${target} PRIVATE lamella::core)
    target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/include/kernels)
    target_compile_definitions(${target} PRIVATE LAMELLA_BACKEND=${backend})
    target_compile_options(${target} PRIVATE ${LAMELLA_ISA_OPTIONS} ${LAMELLA_FLAGS_${backend}})
    if(LAMELLA_SANITIZE MATCHES undefined AND NOT backend STREQUAL scalar)
      # The text is asked as scalar; these compile for twice as long with it.
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined,float-cast-overflow)
    endif()
    if(NOT backend STREQUAL scalar)   # NOTE: [inline functions keep to their instruction set]
      set(wrapper ${PROJECT_SOURCE_DIR}/cmake/isa-compile ${backend} ${LAMELLA_NM} ${LAMELLA_OBJCOPY})
      set_target_properties(${target} PROPERTIES
        CXX_COMPILER_LAUNCHER "${wrapper};${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
    target_sources(lamella_kernels PRIVATE $<TARGET_OBJECTS:${target}>)
    set_property(GLOBAL APPEND PROPERTY lamella_isa_objects $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()

# lamella_tiny_sources(files...)  once more as plain text, with the lowered constants of core/thresholds.h.
function(lamella_tiny_sources)
  add_library(lamella_kernels_tiny OBJECT ${ARGN})
  target_link_libraries(lamella_kernels_tiny PRIVATE lamella::core)
  target_include_directories(lamella_kernels_tiny PRIVATE ${PROJECT_BINARY_DIR}/include/kernels)
  target_compile_definitions(lamella_kernels_tiny PRIVATE LAMELLA_BACKEND=tiny LAMELLA_LOWERED)
  # Asked about its bits alone: a third less to compile.
  target_compile_options(lamella_kernels_tiny PRIVATE ${LAMELLA_ISA_OPTIONS} $<$<CONFIG:Release>:-O1>)
  target_sources(lamella_kernels PRIVATE $<TARGET_OBJECTS:lamella_kernels_tiny>)
  set_property(GLOBAL APPEND PROPERTY lamella_isa_objects $<TARGET_OBJECTS:lamella_kernels_tiny>)
endfunction()
