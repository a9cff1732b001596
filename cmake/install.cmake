# What `cmake --install` copies: headers as include/lamella/..., the rooms' archives, the program, and files
# for find_package(lamella) and pkg-config. Components verify and mutate are archive and headers of those
# rooms, component core is all else.

# NOTE: [versions] core/version.h is what people include; here it is held to the version of the project.
file(READ ${PROJECT_SOURCE_DIR}/core/version.h text)
string(REPLACE "." "_" underscored ${PROJECT_VERSION})
foreach(line IN ITEMS "VERSION_MAJOR ${PROJECT_VERSION_MAJOR}\n" "VERSION_MINOR ${PROJECT_VERSION_MINOR}\n"
                      "VERSION_PATCH ${PROJECT_VERSION_PATCH}\n" "VERSION \"${PROJECT_VERSION}\"\n"
                      "VERSION_SYMBOL lamella_linked_here_is_not_version_${underscored}_of_the_headers\n")
  string(FIND "${text}" "#define LAMELLA_${line}" at)
  if(at LESS 0)
    message(FATAL_ERROR "core/version.h is not of version ${PROJECT_VERSION}: expected LAMELLA_${line}")
  endif()
endforeach()

option(LAMELLA_INSTALL "Install headers, archives and the program" ${PROJECT_IS_TOP_LEVEL})
if(CMAKE_VERIFY_INTERFACE_HEADER_SETS)   # its sets would all have to be installed, kernels' too
  set(LAMELLA_INSTALL OFF)
endif()
if(NOT LAMELLA_INSTALL)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lamella)

foreach(room IN LISTS LAMELLA_LAYERS)
  set(part core)
  if(room MATCHES "^(verify|mutate)$")
    set(part ${room})
  endif()
  set_target_properties(lamella_${room} PROPERTIES EXPORT_NAME ${room})
  install(TARGETS lamella_${room} EXPORT lamella_${part}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${part}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  get_property(headers GLOBAL PROPERTY lamella_headers_of_${room})
  if(room STREQUAL kernels)   # ops' sources alone see it
    set(headers)
  endif()
  foreach(header IN LISTS headers)
    get_filename_component(folder ${room}/${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${room}/${header}
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lamella/${folder} COMPONENT ${part})
  endforeach()
  get_property(headers GLOBAL PROPERTY lamella_made_headers_of_${room})
  foreach(header IN LISTS headers)   # by the build
    get_filename_component(folder ${room}/${header} DIRECTORY)
    install(FILES ${PROJECT_BINARY_DIR}/include/${room}/lamella/${room}/${header}
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lamella/${folder} COMPONENT ${part})
  endforeach()
endforeach()
install(TARGETS lamella_umbrella EXPORT lamella_core)
install(FILES include/lamella/lamella.h include/lamella/plugin.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lamella COMPONENT core)
install(FILES include/lamella/verify.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lamella COMPONENT verify)
if(TARGET lamella_program)
  # Where OpenBLAS lies. The built program gets the same path: CMake would pad it for the later change with
  # colons, and an empty element means the current folder, whose libraries would then win over the system's.
  set_target_properties(lamella_program PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS lamella_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT core)
endif()

foreach(part IN ITEMS core verify mutate)
  install(EXPORT lamella_${part} NAMESPACE lamella:: FILE lamella_${part}.cmake DESTINATION ${package}
    COMPONENT ${part})
endforeach()
configure_package_config_file(cmake/config.cmake.in ${PROJECT_BINARY_DIR}/package/lamellaConfig.cmake
  INSTALL_DESTINATION ${package})
# The symbol of NOTE: [versions] knows no two versions that fit.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/lamellaConfigVersion.cmake
  COMPATIBILITY ExactVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/lamellaConfig.cmake
  ${PROJECT_BINARY_DIR}/package/lamellaConfigVersion.cmake cmake/plugin.cmake cmake/openblas.cmake
  DESTINATION ${package} COMPONENT core)

# Archives in the order of a linker that reads them once: who uses before who is used.
set(LAMELLA_PC_REQUIRES)
if(LAMELLA_HAVE_BLAS)
  set(LAMELLA_PC_REQUIRES openblas)
endif()
foreach(file IN ITEMS lamella lamella-verify)
  configure_file(cmake/${file}.pc.in ${PROJECT_BINARY_DIR}/package/${file}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/package/lamella.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT core)
install(FILES ${PROJECT_BINARY_DIR}/package/lamella-verify.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT verify)
