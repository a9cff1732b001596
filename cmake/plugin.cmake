# lamella_plugin(NAME files...): a shared object for `lamella verify --load`, as target plugin_NAME. It is
# here, in a project that adds this tree, and in one that finds an installed lamella: docs/outside.md.
# It links nothing: the program has it all.
function(lamella_plugin name)
  add_library(plugin_${name} MODULE ${ARGN})
  target_compile_features(plugin_${name} PRIVATE cxx_std_20)
  set_target_properties(plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} CXX_EXTENSIONS OFF
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/plugins)
  if(TARGET lamella_typed_api)   # in the tree: headers that the build writes
    add_dependencies(plugin_${name} lamella_typed_api)
  endif()
  set(room lamella::lamella)
  foreach(above IN ITEMS verify mutate)   # found without them: no laws or no mutants of its own
    if(TARGET lamella::${above})
      set(room lamella::${above})
    endif()
  endforeach()
  target_include_directories(plugin_${name} PRIVATE
    $<TARGET_PROPERTY:${room},INTERFACE_INCLUDE_DIRECTORIES>)
endfunction()
