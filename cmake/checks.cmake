# What ctest runs beside the tests: direction of the rooms, house rules, format, the laws, also sanitized.
find_package(Python3 QUIET COMPONENTS Interpreter)

if(NOT LAMELLA_SANITIZE)
  foreach(pair IN ITEMS core,dispatch dispatch,draw kernels,dispatch dispatch,kernels dispatch,ops
                        ops,transforms
                        transforms,verify verify,mutate text,dispatch verify,text ops,kernels
                        transforms,kernels verify,kernels mutate,kernels)
    string(REPLACE "," ";" pair ${pair})   # the first may not see the second; ops shows kernels to nobody
    list(GET pair 0 room)
    list(GET pair 1 other)
    get_property(header GLOBAL PROPERTY lamella_header_of_${other})
    if(header)   # a room may still be without headers
      lamella_must_not_compile(${room} INCLUDES ${header} TWIN ${other})
    endif()
  endforeach()
  lamella_must_not_compile(transforms SOURCE cmake/users_have_no_f128.cpp
    MESSAGE "f128.* in namespace|no type named 'f128'")
  add_test(NAME layering.configure_refuses_upward
    COMMAND ${CMAKE_COMMAND} -DLAYERS=${PROJECT_SOURCE_DIR}/cmake/layers.cmake
      -P ${PROJECT_SOURCE_DIR}/cmake/refuses_upward.cmake)
  set_tests_properties(layering.configure_refuses_upward PROPERTIES
    PASS_REGULAR_EXPRESSION "layer 'core' may not use 'ops'" LABELS house)
  if(Python3_FOUND)
    foreach(checker IN ITEMS check_house check_house_test check_format)
      add_test(NAME house.${checker}
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/${checker}.py
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(house.${checker} PROPERTIES LABELS house SKIP_RETURN_CODE 77)
    endforeach()
    add_test(NAME house.polynomials_are_current
      COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/fit_polynomials.py --check)
    set_tests_properties(house.polynomials_are_current PROPERTIES LABELS house)
    foreach(name_and_script IN ITEMS mutants.real_text:mutant_text mutants.real_verdicts:real_mutants
                                     scripts.run:run scripts.law_costs:law_costs)
      string(REGEX MATCH "^(.*):(.*)$" matched ${name_and_script})
      add_test(NAME ${CMAKE_MATCH_1}
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/${CMAKE_MATCH_2}_test.py)
      set_tests_properties(${CMAKE_MATCH_1} PROPERTIES SKIP_RETURN_CODE 77)
    endforeach()
    add_test(NAME mutants.real_fit
      COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/real_mutants.py --check)
  endif()
endif()

# The libraries as another project takes them: tools/consumer_test.py. Source compiles them once more.
if(Python3_FOUND AND NOT LAMELLA_SANITIZE AND LAMELLA_INSTALL)
  foreach(name_and_class IN ITEMS install.installed:Installed install.source:Source)
    string(REGEX MATCH "^(.*):(.*)$" matched ${name_and_class})
    add_test(NAME ${CMAKE_MATCH_1}
      COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/consumer_test.py ${PROJECT_BINARY_DIR}
        ${CMAKE_MATCH_2})
    set_tests_properties(${CMAKE_MATCH_1} PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2 TIMEOUT 600)
  endforeach()
endif()

option(LAMELLA_SANITIZED_TESTS "ctest also builds a sanitized preset, runs the laws with it, and fuzzes" ON)
if(TARGET lamella_program)
  set(LAMELLA_LAW_SECONDS 20 CACHE STRING "How long ctest runs the laws in the program, per preset")
  add_test(NAME laws COMMAND lamella_program verify --seed 20261121 --time ${LAMELLA_LAW_SECONDS})
  foreach(plugin_and_line IN ITEMS "my_law:operators, 1 laws, seed 1: 0 failures"
                                   "my_transform:operators, 3 laws, seed 1: 0 failures"
                                   "my_type:operators, [0-9]+ laws, seed 1: 0 failures"
                                   "my_layout:operators, [0-9]+ laws, seed 1: 0 failures"
                                   "my_backend_override:1 operators, [0-9]+ laws, seed 1: 0 failures"
                                   "my_operator:1 operators, [0-9]+ laws, seed 1: 0 failures"
                                   "my_operator_broken:breaks [jv][vj]p_equals_differences")
    string(REGEX MATCH "^([^:]+):(.*)$" matched "${plugin_and_line}")
    add_test(NAME plugin.${CMAKE_MATCH_1}
      COMMAND lamella_program verify --load $<TARGET_FILE:plugin_${CMAKE_MATCH_1}> --seed 1 --time 3)
    set_tests_properties(plugin.${CMAKE_MATCH_1} PROPERTIES
      PASS_REGULAR_EXPRESSION "${CMAKE_MATCH_2}" PROCESSORS 2)
  endforeach()
  foreach(law IN ITEMS device_as_cpu device_under_transforms host_dies device_meets_host
    device_repeats)
    add_test(NAME plugin.my_device.${law}
      COMMAND lamella_program verify --load $<TARGET_FILE:plugin_my_device> --law ${law} --seed 1 --time 5)
    set_tests_properties(plugin.my_device.${law} PROPERTIES
      PASS_REGULAR_EXPRESSION "operators, 1 laws, seed 1: 0 failures" PROCESSORS 2)
  endforeach()
  add_test(NAME museum COMMAND lamella_program museum --check ${PROJECT_SOURCE_DIR}/docs/museum.md)
  set_tests_properties(museum PROPERTIES TIMEOUT 600)
  if(NOT LAMELLA_SANITIZE)
    add_test(NAME answers COMMAND lamella_program answers --check ${PROJECT_SOURCE_DIR}/docs/answers.md)
    set_tests_properties(answers PROPERTIES TIMEOUT 600)
  endif()
  if(Python3_FOUND)
    add_test(NAME typed_api
      COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/typed_api_test.py
        $<TARGET_FILE:lamella_program> $<TARGET_FILE:lamella_typed_api_writer> ${PROJECT_BINARY_DIR})
    # All are given the folder of the plug-ins; one that lacks a program here ends with 77.
    foreach(name_and_script IN ITEMS reports:report reports--browser:browser usage:usage mpi:mpi
        plugins:plugin plugins.exports:exports bench.command:bench)
      string(REGEX MATCH "^(.*):(.*)$" matched ${name_and_script})
      set(script ${CMAKE_MATCH_2})
      add_test(NAME ${CMAKE_MATCH_1}
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/${script}_test.py
          $<TARGET_FILE:lamella_program> ${PROJECT_BINARY_DIR}/plugins)
      set_tests_properties(${CMAKE_MATCH_1} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
    endforeach()
  endif()
  # Kernels by each instruction set: 20 s of the laws each, 15 s with lowered thresholds, and their bits
  # beside each other.
  if(Python3_FOUND AND NOT LAMELLA_SANITIZE)
    set(isa_test ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/isa_test.py)
    foreach(set IN ITEMS scalar avx2 avx512 tiny)
      add_test(NAME isa.${set} COMMAND ${isa_test} laws $<TARGET_FILE:lamella_program> ${set})
    endforeach()
    add_test(NAME isa.bits COMMAND ${isa_test} bits $<TARGET_FILE:lamella_program> $<TARGET_FILE:isa_bits>)
    set_tests_properties(isa.scalar isa.avx2 isa.avx512 isa.tiny isa.bits PROPERTIES
      SKIP_RETURN_CODE 77 PROCESSORS 2 TIMEOUT 300)
  endif()
  if(LAMELLA_HAVE_ZSTD AND Python3_FOUND AND NOT LAMELLA_SANITIZE)
    add_test(NAME readme.lines
      COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/readme_lines_test.py
        $<TARGET_FILE:lamella_program> ${PROJECT_BINARY_DIR}/plugins)
    set_tests_properties(readme.lines PROPERTIES RUN_SERIAL TRUE TIMEOUT 300)
  endif()
  if(LAMELLA_HAVE_ZSTD)
    add_test(NAME reference
      COMMAND lamella_program reference ${PROJECT_SOURCE_DIR}/proptests/data/reference.tar.zst)
    add_test(NAME reference.numpy
      COMMAND lamella_program reference ${PROJECT_SOURCE_DIR}/proptests/data/numpy.tar.zst)
    add_test(NAME reference.runner
      COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/reference_test.py
        $<TARGET_FILE:lamella_program>)
  endif()
  add_test(NAME interrupt
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/interrupt_test.py
      $<TARGET_FILE:lamella_program> ${PROJECT_SOURCE_DIR}/proptests/data/reference.tar.zst)
  set_tests_properties(interrupt PROPERTIES RUN_SERIAL TRUE TIMEOUT 300)
  set_tests_properties(laws PROPERTIES PROCESSORS 2 TIMEOUT 600)
  if(LAMELLA_SANITIZE STREQUAL "thread")   # what `laws` leaves them of its time is a case or two a pair
    set(laws_of_threads 57 78 91 96 120 121 122 123 124 125 127 129 149 173)
    list(JOIN laws_of_threads "," laws_of_threads)
    add_test(NAME laws.threads
      COMMAND lamella_program verify --law ${laws_of_threads} --seed 20261121 --time 60)
    set_tests_properties(laws.threads PROPERTIES PROCESSORS 2 TIMEOUT 600)
  endif()
  if(NOT LAMELLA_SANITIZE)   # a bug that only a sanitizer sees says nothing about the laws
    add_test(NAME mutants.sample COMMAND lamella_program mutate --sample 120 --seed 20261121)
    add_test(NAME mutants.laws_shown_red
      COMMAND lamella_program mutate --check-laws ${PROJECT_SOURCE_DIR}/docs/laws.md)
    set_tests_properties(mutants.sample mutants.laws_shown_red PROPERTIES PROCESSORS 2 TIMEOUT 900)
    # Six of mutants/real, a room each, in files that compile fast, built from this build's objects: 90 s of
    # two free cores at most; the rest is for a busy machine and for builds without bundles.
    if(Python3_FOUND)
      set(six argnums-repeated core-promote-c64-f64 harness-wanted-nan-takes-anything kernels-argmax-last-nan
        rules-permute-not-inverse vmap-write-unmoved)
      list(JOIN six "," six)
      add_test(NAME mutants.real_sample
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/real_mutants.py --time 10 --at-least 1
          --only ${six} --build ${PROJECT_BINARY_DIR} --json ${PROJECT_BINARY_DIR}/real_sample.json)
      set_tests_properties(mutants.real_sample PROPERTIES PROCESSORS 2 TIMEOUT 600)
    endif()
    add_test(NAME mutants.plugin
      COMMAND lamella_program mutate --load ${PROJECT_BINARY_DIR}/plugins/my_mutant.so --op tanh
        --mutant my_sign_lost:tanh --verbose)
    set_tests_properties(mutants.plugin PROPERTIES
      PASS_REGULAR_EXPRESSION "killed +kernel +my_sign_lost:tanh" PROCESSORS 1 TIMEOUT 300)
  endif()
  if(LAMELLA_SANITIZED_TESTS AND PROJECT_BINARY_DIR STREQUAL "${PROJECT_SOURCE_DIR}/build/release")
    include(cmake/sanitized.cmake)
  endif()
endif()
