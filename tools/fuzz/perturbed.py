"""Names for results of perturbed columns, which depend on no dtype."""

# ruff: noqa: F403, F405
from tables import *


def compared(dtype: Callable[[Any], Any], method: str, way: str, seed: int) -> Any:
    """Compare a method of a model for a column of a dtype and for one of floats."""
    rng = np.random.default_rng(seed)
    n = 120
    count = rng.integers(0, 2 if way == "truth" else 5, n)
    columns = {"a": rng.normal(size=n), "b": count, "c": rng.choice(["u", "v"], n)}
    y = np.digitize(columns["a"] + 0.5 * count + rng.logistic(size=n), [0.0, 2.0])
    floats = pd.DataFrame(columns).astype({"b": float, "c": "category"})
    typed = dtype(floats)
    results = []
    for table in (floats, typed):
        if way == "formula" and isinstance(table, pd.DataFrame):
            model = ordinal.fit_pom("y ~ a + b + c", table.assign(y=y))
        else:
            model = ordinal.fit_pom(table, y)
        found = getattr(model, method)(table)
        results.append(np.array([v for v in found.values() if v.dtype.kind == "f"]))
    if not np.allclose(*results, rtol=1e-6, atol=1e-9):
        raise BrokenPromise(f"{results[1]} of {method}, and {results[0]} of floats")
    return results[1]
