// What a plug-in is: LAMELLA_PLUGIN() { ... }, and the stamp by which a program knows that it fits.
#pragma once

#include "lamella/core/version.h"
#include "lamella/dispatch/state.h"
#include "lamella/dispatch/table.h"

LAMELLA_API_BEGIN
namespace lamella {

/// NOTE: [plug-ins] A plug-in shares C++ objects with the program that loads it, so both must have been
/// compiled from the same headers, by compilers that lay objects out alike. The macro puts a stamp of what it
/// saw beside the entry; a program compares it with its own before it calls anything. `abi` counts changes
/// that sizes do not show (the order of fields, what a function pointer takes): whoever makes one counts it
/// up.
struct PluginStamp {
  static constexpr uint64_t kMagic = 0x6c616d656c6c61;  // "lamella"
  static constexpr uint32_t kAbi = 4;

  uint64_t magic = kMagic;
  uint32_t abi = kAbi;
  uint32_t compiler = __GXX_ABI_VERSION;
  uint32_t op_def = sizeof(OpDef), op = sizeof(Op), table = sizeof(OpTable), schema = sizeof(Schema);
  uint32_t tensor = sizeof(TensorImpl), storage = sizeof(Storage), state = sizeof(DispatchState);
  bool operator==(const PluginStamp&) const = default;
};

/// Its name in a shared object, beside that of the entry.
inline constexpr const char* kPluginStamp = "lamella_plugin_stamp";
inline constexpr const char* kPluginEntry = "lamella_plugin";

}  // namespace lamella
LAMELLA_API_END

/// The one entry of a plug-in: LAMELLA_PLUGIN() { OpTable::add(...); }. It is called once, after the built-in
/// operators are there; what it raises becomes a message.
#define LAMELLA_PLUGIN()                                                \
  extern "C" {                                                          \
  extern LAMELLA_API const ::lamella::PluginStamp lamella_plugin_stamp; \
  const ::lamella::PluginStamp lamella_plugin_stamp{};                  \
  LAMELLA_API void lamella_plugin();                                    \
  }                                                                     \
  void lamella_plugin()
