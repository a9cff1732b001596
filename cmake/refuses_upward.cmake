# Run by ctest: a layer that names a higher one must stop the configuration before any target exists.
include(${LAYERS})
lamella_layer(core USES ops SOURCES any.cpp)
