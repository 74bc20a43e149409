"""What a fit returns, how it is watched, and the way into a fit.

`convergence` and `monitor` import `_input` alone, and `_numerics` may import them. The
other modules stand on `kernels` and `_kernel_matrix`, and serve the methods and
`model_selection`.
"""
