# Another preset's program under ctest: by Clang, with libFuzzer; where there is no Clang, by GCC and without.
find_program(LAMELLA_CLANG clang++)
set(preset asan)
set(targets lamella_program)
if(LAMELLA_CLANG)
  set(preset fuzz)
  list(APPEND targets fuzz_replay)
endif()

# The build is a fixture, and does nothing when that build is current.
add_test(NAME sanitized.build COMMAND ${CMAKE_COMMAND} -E env LAMELLA_PRESET=${preset} ./run build ${targets}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(sanitized.build PROPERTIES FIXTURES_SETUP sanitized PROCESSORS 2 TIMEOUT 1500)

add_test(NAME sanitized.laws COMMAND build/${preset}/lamella verify --seed 20261121 --time 40
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(sanitized.laws PROPERTIES FIXTURES_REQUIRED sanitized PROCESSORS 2 TIMEOUT 600
  ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=0;UBSAN_OPTIONS=print_stacktrace=1")
# Off: g++ 12's fake stack frames do not keep the 64-byte alignment that AVX-512 registers spill with.

if(LAMELLA_CLANG)
  file(GLOB corpora CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/corpus/*)
  foreach(corpus IN LISTS corpora)
    get_filename_component(name ${corpus} NAME)
    if(name STREQUAL archive AND NOT LAMELLA_HAVE_ZSTD)
      continue()
    endif()
    add_test(NAME sanitized.fuzz.${name} COMMAND ./run fuzz ${name} 30
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(sanitized.fuzz.${name} PROPERTIES FIXTURES_REQUIRED sanitized TIMEOUT 300)
  endforeach()
endif()
