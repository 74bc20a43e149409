"""Gaussian processes cut by thresholds.

`covariance` is the prior of the latent values, and `low_rank` that of a basis, which is
sums over the rows (`passes`); `likelihood` is that of the ranks given them. `laplace`
and `ep` make a Gaussian posterior of the two.
`hyperparameters` is theta, its prior and where searches begin; `evidence` is what they
maximise.

Imports `kernels`, `_kernel_matrix` and what stands below. `gpor` imports it.
"""
