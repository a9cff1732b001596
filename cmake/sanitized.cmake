# Another preset's program under ctest: by Clang, with libFuzzer; where there is no Clang, by GCC and without.
find_program(LAMELLA_CLANG clang++)
set(preset asan)
set(targets fuzz_laws fuzz_planted)
if(LAMELLA_CLANG)
  set(preset fuzz)
  list(APPEND targets fuzz_replay)
endif()

# The build is a fixture, and does nothing when that build is current.
add_test(NAME sanitized.build COMMAND ${CMAKE_COMMAND} -E env LAMELLA_PRESET=${preset} ./run build ${targets}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(sanitized.build PROPERTIES FIXTURES_SETUP sanitized PROCESSORS 2 TIMEOUT 1500)

add_test(NAME sanitized.laws COMMAND build/${preset}/fuzz/fuzz_laws 40 20261121
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(sanitized.laws PROPERTIES FIXTURES_REQUIRED sanitized PROCESSORS 2 TIMEOUT 600
  ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=0;UBSAN_OPTIONS=print_stacktrace=1")
# Off: g++ 12's fake stack frames do not keep the 64-byte alignment that AVX-512 registers spill with.

# Planted: touched is what nobody may touch, lost is what nobody frees, and the sanitizer says so.
function(lamella_planted_fault way says)
  add_test(NAME sanitized.pools.${way} COMMAND build/${preset}/fuzz/fuzz_planted ${way}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(sanitized.pools.${way} PROPERTIES FIXTURES_REQUIRED sanitized TIMEOUT 60
    PASS_REGULAR_EXPRESSION "${says}")
endfunction()
foreach(way read_behind_elements write_behind_elements read_behind_pooled write_behind_pooled
            write_behind_reused read_waiting_header write_waiting_block read_waiting_after_miss
            read_waiting_family)
  lamella_planted_fault(${way} "AddressSanitizer: use-after-poison")
endforeach()
foreach(way read_behind_block write_behind_block read_behind_own)
  lamella_planted_fault(${way} "AddressSanitizer: heap-buffer-overflow")
endforeach()
foreach(way lose_tensor lose_storage lose_family lose_sizes)
  lamella_planted_fault(${way} "LeakSanitizer: detected memory leaks")
endforeach()
add_test(NAME sanitized.pools.nothing COMMAND build/${preset}/fuzz/fuzz_planted nothing
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(sanitized.pools.nothing PROPERTIES FIXTURES_REQUIRED sanitized TIMEOUT 60)

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
