"""Matrices of kernel values.

choice  kernel that an argument means, and its abilities
tiles   values of a kernel, tile by tile
slopes  derivatives of kernel values by ln gamma

Imports `kernels` and what stands below. Every package above may import it.
"""
