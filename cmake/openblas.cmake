# OpenBLAS, as the target PkgConfig::LAMELLA_OPENBLAS where pkg-config finds it: for the build, and for those
# who find the installed library. What pkg_check_modules() leaves in the cache is taken out again, as that may
# be another project's; to ask anew takes 10 ms.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND AND NOT TARGET PkgConfig::LAMELLA_OPENBLAS)
  pkg_check_modules(LAMELLA_OPENBLAS QUIET IMPORTED_TARGET openblas)
  get_cmake_property(lamella_left CACHE_VARIABLES)
  list(FILTER lamella_left INCLUDE REGEX
    "^prefix_result$|^__pkg_config_[a-z]+_LAMELLA_OPENBLAS$|^(pkgcfg_lib_)?LAMELLA_OPENBLAS_")
  foreach(name IN LISTS lamella_left)
    unset(${name} CACHE)
  endforeach()
endif()
