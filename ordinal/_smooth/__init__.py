"""Smooth losses of scores on a basis of rows, minimised by Newton's method.

`columns` are the kernel's values of rows in memory or in blocks, `objective` is psi of
TLS-SVOR with its derivatives, `newton` a descent that copes with indefinite Hessians,
`continuation` lowers u from infinity, where psi is convex, to its value.

Imports `_numerics` and what stands below. `tlssvor` imports it.
"""
