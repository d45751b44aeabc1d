// Carries the precompiled headers; see cmake/module.cmake.
