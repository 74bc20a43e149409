"""Tests that processors' abilities are read from registers as the compiler reads
them."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

import ordinal

SOLVERS = Path(__file__).resolve().parents[1] / "ordinal" / "_solvers"
COMPILER = shutil.which(os.environ.get("CC", "cc"))

# gcc and clang know the processor at hand; the registers of others are arguments
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "simd_cpu.h"

static void tell(simd_cpu cpu) {
  printf("%d %d\\n", simd_cpu_has_avx2(cpu), simd_cpu_has_avx512(cpu));
}

int main(int count, char **words) {
  simd_cpu cpu;
  if (count == 4) {
    cpu.ecx1 = (uint32_t)strtoul(words[1], NULL, 0);
    cpu.ebx7 = (uint32_t)strtoul(words[2], NULL, 0);
    cpu.xcr0 = (uint32_t)strtoul(words[3], NULL, 0);
    tell(cpu);
    return 0;
  }
#ifdef SIMD_ASKS_CPU
  tell(simd_this_cpu());
  __builtin_cpu_init();
  const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  printf("%d %d\\n", avx2, avx2 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw"));
#endif
  return 0;
}
"""

FMA, OSXSAVE, AVX = 1 << 12, 1 << 27, 1 << 28
AVX2, F, DQ, BW, VL = 1 << 5, 1 << 16, 1 << 17, 1 << 30, 1 << 31
YMM, ZMM = 0b110, 0b11100110
HASWELL = FMA | OSXSAVE | AVX


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("cpu")
    (folder / "cpu.c").write_text(PROGRAM)
    command = [COMPILER, "-std=gnu11", "-I", SOLVERS, "cpu.c", "-o", "cpu"]
    subprocess.run(command, cwd=folder, check=True, timeout=600)

    def answers(*registers):
        words = [folder / "cpu", *map(str, registers)]
        out = subprocess.run(words, check=True, timeout=600, stdout=subprocess.PIPE)
        return [tuple(map(int, line.split())) for line in out.stdout.splitlines()]

    return answers


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="has no other levels"
)
def test_this_processor_has_what_the_compiler_finds(ask):
    ours, the_compilers = ask()
    assert ours == the_compilers
    levels = ordinal.show_config()["simd_levels"]
    assert ours == ("avx2" in levels, "avx512" in levels)


@pytest.mark.parametrize(("registers", "expected"), [
    pytest.param((HASWELL, AVX2 | F | DQ | BW | VL, ZMM), (1, 1), id="all"),
    pytest.param((HASWELL, AVX2, YMM), (1, 0), id="avx2"),
    pytest.param((0, 0, 0), (0, 0), id="neither"),
    pytest.param((AVX | OSXSAVE, AVX2, YMM), (0, 0), id="no fma"),
    pytest.param((HASWELL, 0, YMM), (0, 0), id="avx alone"),
    pytest.param((HASWELL, AVX2 | F | DQ | BW, ZMM), (1, 0), id="no vl"),
    pytest.param((HASWELL, AVX2 | F | DQ | VL, ZMM), (1, 0), id="no bw"),
    pytest.param((HASWELL, AVX2 | F | BW | VL, ZMM), (1, 0), id="no dq"),
    pytest.param((HASWELL, F | DQ | BW | VL, ZMM), (0, 0), id="no avx2"),
    # the processor could, but the system saves fewer registers
    pytest.param((HASWELL, AVX2 | F | DQ | BW | VL, YMM), (1, 0), id="no zmm"),
    pytest.param((HASWELL, AVX2 | F | DQ | BW | VL, 0b10), (0, 0), id="no ymm"),
    pytest.param((FMA | AVX, AVX2, YMM), (0, 0), id="no xsave"),
])  # fmt: skip
def test_a_level_needs_all_that_it_is_compiled_for(ask, registers, expected):
    assert ask(*registers) == [expected]
