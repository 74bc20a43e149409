"""Properties of this build, and the vector instructions that it uses."""
from ._simd cimport simd, simd_level

cdef extern from *:
    """
    #ifdef ORDINAL_DEBUG
    #define ORDINAL_CHECKS 1
    #else
    #define ORDINAL_CHECKS 0
    #endif
    #define ORDINAL_TEXT_(x) #x
    #define ORDINAL_TEXT(x) ORDINAL_TEXT_(x)
    #if defined(__clang__)
    #define ORDINAL_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
    #define ORDINAL_COMPILER "gcc " __VERSION__
    #elif defined(_MSC_VER)
    #define ORDINAL_COMPILER "msvc " ORDINAL_TEXT(_MSC_VER)
    #else
    #define ORDINAL_COMPILER "unknown"
    #endif
    """
    const char* ORDINAL_VERSION
    const char* ORDINAL_COMPILER
    bint ORDINAL_CHECKS

import os

VERSION = ORDINAL_VERSION.decode()
COMPILER = ORDINAL_COMPILER.decode().strip()
INDEX_CHECKS = bool(ORDINAL_CHECKS)


def simd_name() -> str:
    """Return the name of the vector level in use."""
    return simd().name.decode()


def simd_levels() -> list[str]:
    """Return the names of the levels that build and processor support, best first."""
    names, i = [], 0
    while simd_level(i) != NULL:
        names.append(simd_level(i).decode())
        i += 1
    return names


if os.environ.get("ORDINAL_SIMD", simd_name()) not in simd_levels():
    raise ValueError(
        f"ORDINAL_SIMD must be one of {', '.join(simd_levels())}, "
        f"got {os.environ['ORDINAL_SIMD']!r}"
    )
