"""The posterior of latent values by Laplace's method, and its evidence.

    S(f) = sum_i w_i l(y_i, f_i) + 1/2 f'Sigma^-1 f                                  (9)

is convex; with f = Sigma a its minimum has a_i = -w_i dl/df_i =: w_i g_i. Newton's
direction is d = (I + W Sigma)^-1 (w g - a), W_i = w_i d2l/df_i2. One factorisation at W
serves as long as it brings the residual w g - a down tenfold a step: nearby, W hardly
changes, and a step costs n^2 in place of n^3.

    -ln P(D) = S(f) + 1/2 ln |I + Sigma W|                                          (21)

Its gradient, Appendix A, is that of (21) with f held still, and by the mode f: with
s = d(21)/df = 1/2 A_ii dW_ii/df_i, A = (Sigma^-1 + W)^-1, and u = -(I + W Sigma)^-1 s,
moving Sigma moves f by (I + Sigma W)^-1 dSigma a, and (21) by -u'dSigma a.
"""

import numpy as np

from .likelihood import Likelihood, Posterior

_TOL = 1e-12  # of the residual, in units of its largest term or 1
_USABLE = 1e-6  # the same: with more left, the mode was not found
_MAX_ITER = 500
_FALL = 1e-4  # Armijo's constant
_KEEP = 0.1  # what a kept factor must leave of the residual


def laplace(cov, like: Likelihood, state: np.ndarray | None) -> Posterior:
    """Laplace's posterior and the derivatives of its evidence.

    Parameters
    ----------
    cov : Dense or LowRank
    like : Likelihood
    state : (n,) array, optional
        `a` from which to start.
    """
    w = like.weight
    a = np.zeros(w.size) if state is None else state
    f = cov.times(a)
    out, value = _S(like, a, f)
    last, fresh, fall = 0.0, False, np.inf
    exact = np.inf  # what was left when f was last recomputed
    moved = False  # since then
    n_iter = 0
    while n_iter < _MAX_ITER:
        residual = w * out[1] - a
        violation = _violation(residual, w * out[1])
        if not np.isfinite(violation):
            break
        rounding = 1e-13 * (1 + abs(value))
        if violation <= _TOL or (fresh and fall < rounding and violation > last / 2):
            if moved:
                f = cov.times(a)  # without what the steps have left of their rounding
                out, value = _S(like, a, f)
                moved = False
            before, exact = exact, _violation(w * out[1] - a, w * out[1])
            if exact <= _TOL or exact > before / 2:
                break
            last, fresh, fall = 0.0, False, np.inf
            continue
        fresh = violation > _KEEP * last
        if fresh:
            cov.factor(w * out[2])
        last = violation
        n_iter += 1
        d = cov.solve(residual)
        Sd = cov.times(d)
        fall = float(residual @ Sd)  # that S promises along d
        size = 1.0
        while size > 1e-10:
            trial = a + size * d, f + size * Sd
            at_trial, new = _S(like, *trial)
            if new <= value - _FALL * size * fall:
                break
            if fall < rounding and new <= value + rounding:
                break
            size /= 2
        else:
            break
        (a, f), out, value = trial, at_trial, new
        moved = True
    if moved:
        f = cov.times(a)
        out, value = _S(like, a, f)
    violation = _violation(w * out[1] - a, w * out[1])
    if violation > _USABLE and state is not None:
        return laplace(cov, like, None)  # a start so far off that f is all rounding
    return _posterior(cov, like, a, f, out, value, violation, n_iter)


def _S(like: Likelihood, a: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, float]:
    """What `Likelihood.loss` gives, and (9)."""
    out = like.loss(f)
    return out, 0.5 * float(a @ f) - float(like.weight @ out[0])


def _violation(residual: np.ndarray, slope: np.ndarray) -> float:
    return float(np.abs(residual).max() / max(1.0, np.abs(slope).max()))


def _posterior(cov, like, a, f, out, value, violation, n_iter) -> Posterior:
    w, (_, g, curvature) = like.weight, out
    cov.factor(w * curvature)
    A, _ = cov.marginals()
    d = like.derivatives(f)
    half = -0.5 * A * w
    u = cov.solve(half * d[4])
    by_g = w * cov.times(u)
    by_row = [
        half * -d[4] + by_g * curvature - w * g,
        half * d[5] + by_g * d[2] + w * d[0],
        half * d[6] + by_g * d[3] + w * d[1],
    ]
    return Posterior(
        objective=-value - 0.5 * cov.log_det,
        a=a,
        u=u,
        by_row=np.array(by_row),
        state=a,
        violation=violation,
        n_iter=n_iter,
        converged=violation <= _USABLE,
    )
