// What objects outside of the library may use of it: all other symbols are hidden.
#pragma once

/// NOTE: [exported symbols] The libraries are compiled with -fvisibility=hidden (cmake/compiler.cmake), so a
/// program that shows its symbols to plug-ins shows what installed headers declare, and nothing else. Each of
/// these headers has its namespaces between LAMELLA_API_BEGIN and LAMELLA_API_END, with no #include there; no
/// other file has them (tools/check_api.py). All declared there but inline functions is exported: classes
/// with their type information, by which exceptions are caught across objects, and variables, which so are
/// one in the program and its plug-ins, also within inline functions and templates (not in a template that
/// says `inline`).
///
/// An attribute of the namespace would be shorter, but Clang does not keep it for what is defined outside of
/// that very body. g++ takes the first mention of a class for all: `class Tensor;` in a file that is not
/// installed, before the header, would hide the type information of Tensor; so such files include the header.
#define LAMELLA_API_BEGIN _Pragma("GCC visibility push(default)")
#define LAMELLA_API_END _Pragma("GCC visibility pop")

/// The same for one declaration: what LAMELLA_PLUGIN() leaves, a friend that its class alone declares.
#define LAMELLA_API __attribute__((visibility("default")))
