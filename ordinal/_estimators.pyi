"""Estimators of `ordinal.sklearn`; written by tools/estimators.py."""

from ._cumulative.design import Threshold
from ._cumulative.likelihood import Link
from ._input.types import AnyBasis, ClassWeight, Gamma, Kernel, MatrixLike, Rng
from ._model.labelled import MissingLabels
from ._model.preparation import Callback
from .boosting.growing import Structure
from .gpor.fit import _KernelName
from .kernels.functions import KernelName
from .linear.prepared import Missing
from .linear.ratio_loss import Family
from .model_selection.splits import SplitsLike
from .networks.models import CodeLoss
from .npsvor.fit import Intercept, _Solver, _Start
from .sklearn.estimators import Estimator, FoldedEstimator, GroupedEstimator
from .stacking.fit import _Methods, _Scoring
from .svor.family import SvorModel
from .svor.sum_of_margins import Margin
from .xofm.fit import _XofmSolver
from collections.abc import Mapping, Sequence
from numpy.typing import ArrayLike
from typing import Any, Literal

class Boosting(FoldedEstimator):
    n_rounds: int | Literal['auto']
    structure: Structure
    link: Link
    learning_rate: float | None
    n_leaves: int | None
    min_rows: int | None
    row_share: float | None
    feature_share: float | None
    l2: float
    monotone: Mapping[str, int] | Sequence[int] | None
    categorical: Sequence[str | int]
    interactions: Sequence[Sequence[str | int]] | None
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    tol: float
    max_iter: int
    def __init__(
        self, *, n_rounds: int | Literal['auto'] = 'auto',
        structure: Structure = 'score', link: Link = 'logit',
        learning_rate: float | None = None, n_leaves: int | None = None,
        min_rows: int | None = None, row_share: float | None = None,
        feature_share: float | None = None, l2: float = 1.0,
        monotone: Mapping[str, int] | Sequence[int] | None = None,
        categorical: Sequence[str | int] = ...,
        interactions: Sequence[Sequence[str | int]] | None = None,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', rng: Rng = 0,
        n_threads: int | None = None, tol: float = 0.0001, max_iter: int = 2000,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class CLMM(GroupedEstimator):
    random: str | None
    slopes: Mapping[str, Sequence[str | int]] | None
    n_quadrature: int | Literal['auto']
    family: Literal['cumulative'] | Family
    link: Link
    threshold: Threshold
    nominal: Sequence[str | int]
    scale: Sequence[str | int]
    missing_labels: MissingLabels
    reference: Mapping[str, Any] | None
    missing: Missing
    tol: float
    max_iter: int
    def __init__(
        self, *, random: str | None = None,
        slopes: Mapping[str, Sequence[str | int]] | None = None,
        n_quadrature: int | Literal['auto'] = 'auto',
        family: Literal['cumulative'] | Family = 'cumulative', link: Link = 'logit',
        threshold: Threshold = 'flexible', nominal: Sequence[str | int] = ...,
        scale: Sequence[str | int] = ..., classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error',
        reference: Mapping[str, Any] | None = None, missing: Missing = 'error',
        tol: float = 1e-06, max_iter: int = 1000, max_time: float | None = None,
        n_threads: int | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class CNNOR(Estimator):
    width: int
    n_filters: int
    n_hidden: int
    n_places: int
    l2: float
    n_triplets: int
    n_compared: int
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    max_iter: int
    def __init__(
        self, *, width: int = 3, n_filters: int = 8, n_hidden: int = 16,
        n_places: int = 4, l2: float = 0.01, n_triplets: int = 20000,
        n_compared: int = 200, tol: float = 0.001,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', rng: Rng = 0,
        n_threads: int | None = None, max_iter: int = 1000,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class CSSVC(Estimator):
    C: float
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, kernel: KernelName | Kernel = 'rbf',
        gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        basis: AnyBasis | None = None, probability: bool = False, rng: Rng = 0,
        n_threads: int | None = None, cache_mb: float = 1000.0,
        max_iter: int | None = None, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class ELMOR(Estimator):
    n_hidden: int
    ridge: float | Literal['loo']
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    max_iter: int
    def __init__(
        self, *, n_hidden: int = 200, ridge: float | Literal['loo'] = 'loo',
        tol: float = 0.05, class_weight: ClassWeight | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        probability: bool = False, rng: Rng = 0, n_threads: int | None = None,
        max_iter: int = 100, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class GPOR(Estimator):
    inference: Literal['ep', 'laplace']
    kernel: _KernelName | Kernel
    optimize: bool
    objective: Literal['evidence', 'bound']
    prior: Literal['weak'] | Mapping[str, Any] | None
    basis: AnyBasis | None
    n_restarts: int
    start: Mapping[str, Any] | None
    tol: float
    max_iter: int
    missing_labels: MissingLabels
    cache_mb: float
    rng: Rng
    def __init__(
        self, *, inference: Literal['ep', 'laplace'] = 'ep',
        kernel: _KernelName | Kernel = 'rbf', optimize: bool = True,
        objective: Literal['evidence', 'bound'] = 'evidence',
        prior: Literal['weak'] | Mapping[str, Any] | None = 'weak',
        basis: AnyBasis | None = None, n_restarts: int = 0,
        start: Mapping[str, Any] | None = None, tol: float = 0.001, max_iter: int = 200,
        max_time: float | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', n_threads: int | None = None,
        cache_mb: float = 1000.0, rng: Rng = 0, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class KDLOR(Estimator):
    ridge: float
    C: float
    kernel: KernelName | Kernel
    gamma: Gamma
    basis: AnyBasis | None
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    max_iter: int
    def __init__(
        self, *, ridge: float = 0.003, C: float = 1.0,
        kernel: KernelName | Kernel = 'rbf', gamma: Gamma = 'scale',
        basis: AnyBasis | None = None, tol: float = 1e-06,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', probability: bool = False,
        rng: Rng = 0, n_threads: int | None = None, max_iter: int = 10000,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class LAT(Estimator):
    l2: float
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    max_iter: int
    def __init__(
        self, *, l2: float = 0.001, tol: float = 1e-06,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', probability: bool = False,
        rng: Rng = 0, n_threads: int | None = None, max_iter: int = 1000,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class LIT(Estimator):
    l2: float
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    max_iter: int
    def __init__(
        self, *, l2: float = 0.001, tol: float = 1e-06,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', probability: bool = False,
        rng: Rng = 0, n_threads: int | None = None, max_iter: int = 1000,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class NNOR(Estimator):
    n_hidden: int
    loss: CodeLoss
    l2: float
    n_starts: int
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    max_iter: int
    def __init__(
        self, *, n_hidden: int = 20, loss: CodeLoss = 'cross_entropy',
        l2: float = 0.003, n_starts: int = 1, tol: float = 0.001,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', rng: Rng = 0,
        n_threads: int | None = None, max_iter: int = 1000,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class NNPOM(Estimator):
    n_hidden: int
    link: Link
    l2: float
    n_starts: int
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    max_iter: int
    def __init__(
        self, *, n_hidden: int = 20, link: Link = 'logit', l2: float = 0.01,
        n_starts: int = 1, tol: float = 0.001, class_weight: ClassWeight | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        rng: Rng = 0, n_threads: int | None = None, max_iter: int = 1000,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class NPSVOR(Estimator):
    C: float
    C2: float | None
    epsilon: float
    kernel: KernelName | Kernel
    gamma: Gamma
    solver: _Solver
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    normalize: bool
    rho: float | None
    e_abs: float | None
    e_rel: float | None
    polish: bool | None
    n_steps: int | None
    intercept: Intercept | None
    basis: AnyBasis | None
    start: _Start | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, C2: float | None = None, epsilon: float = 0.2,
        kernel: KernelName | Kernel = 'rbf', gamma: Gamma = 'scale',
        solver: _Solver = 'smo', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        normalize: bool = False, rho: float | None = None, e_abs: float | None = None,
        e_rel: float | None = None, polish: bool | None = None,
        n_steps: int | None = None, intercept: Intercept | None = None,
        basis: AnyBasis | None = None, start: _Start | None = None,
        probability: bool = False, rng: Rng = 0, n_threads: int | None = None,
        cache_mb: float = 1000.0, max_iter: int | None = None,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class OFMHS(Estimator):
    l1: float
    pair_ratio: float
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    max_iter: int
    def __init__(
        self, *, l1: float = 0.01, pair_ratio: float = 1.0, tol: float = 1e-05,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', n_threads: int | None = None,
        max_iter: int = 1000, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class OPBE(Estimator):
    C: float
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, kernel: KernelName | Kernel = 'rbf',
        gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', basis: AnyBasis | None = None,
        rng: Rng = 0, n_threads: int | None = None, cache_mb: float = 1000.0,
        max_iter: int | None = None, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class POM(Estimator):
    link: Link
    threshold: Threshold
    nominal: Sequence[str | int]
    scale: Sequence[str | int]
    in_order: bool | MatrixLike
    l1: float
    l2: float
    class_weight: ClassWeight | None
    robust: bool
    missing_labels: MissingLabels
    reference: Mapping[str, Any] | None
    missing: Missing
    tol: float
    max_iter: int
    def __init__(
        self, *, link: Link = 'logit', threshold: Threshold = 'flexible',
        nominal: Sequence[str | int] = ..., scale: Sequence[str | int] = ...,
        in_order: bool | MatrixLike = False, l1: float = 0.0, l2: float = 0.0,
        class_weight: ClassWeight | None = None, robust: bool = False,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        reference: Mapping[str, Any] | None = None, missing: Missing = 'error',
        tol: float = 1e-06, max_iter: int = 1000, max_time: float | None = None,
        n_threads: int | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = 'mode', scoring: str | object = 'mae'
    ) -> None: ...

class REDSVM(Estimator):
    C: float
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    start: SvorModel | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, kernel: KernelName | Kernel = 'rbf',
        gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        basis: AnyBasis | None = None, start: SvorModel | None = None,
        probability: bool = False, rng: Rng = 0, n_threads: int | None = None,
        cache_mb: float = 1000.0, max_iter: int | None = None,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class ShashuaLevin(Estimator):
    C: float
    margin: Margin
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    start: SvorModel | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, margin: Margin = 'fixed',
        kernel: KernelName | Kernel = 'rbf', gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        basis: AnyBasis | None = None, start: SvorModel | None = None,
        probability: bool = False, rng: Rng = 0, n_threads: int | None = None,
        cache_mb: float = 1000.0, max_iter: int | None = None,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class Stacking(FoldedEstimator):
    methods: _Methods
    cv: SplitsLike
    tune: bool
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    progress: bool | None
    rng: Rng
    def __init__(
        self, *, methods: _Methods = None, cv: SplitsLike = 5, tune: bool = True,
        scoring: _Scoring = 'rps', class_weight: ClassWeight | None = None,
        cost: ArrayLike | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', n_threads: int | None = None,
        max_time: float | None = None, progress: bool | None = None, rng: Rng = 0,
        rule: str | None = 'mode'
    ) -> None: ...

class OrdinalSVC(Estimator):
    C: float
    decomposition: Literal['one_vs_one', 'one_vs_all']
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0,
        decomposition: Literal['one_vs_one', 'one_vs_all'] = 'one_vs_one',
        kernel: KernelName | Kernel = 'rbf', gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', basis: AnyBasis | None = None,
        probability: bool = False, rng: Rng = 0, n_threads: int | None = None,
        cache_mb: float = 1000.0, max_iter: int | None = None,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class SVMOP(Estimator):
    C: float
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, kernel: KernelName | Kernel = 'rbf',
        gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        basis: AnyBasis | None = None, probability: bool = False, rng: Rng = 0,
        n_threads: int | None = None, cache_mb: float = 1000.0,
        max_iter: int | None = None, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class SVOREX(Estimator):
    C: float
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    start: SvorModel | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 10.0, kernel: KernelName | Kernel = 'rbf',
        gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        basis: AnyBasis | None = None, start: SvorModel | None = None,
        probability: bool = False, rng: Rng = 0, n_threads: int | None = None,
        cache_mb: float = 1000.0, max_iter: int | None = None,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class SVORIM(Estimator):
    C: float
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    start: SvorModel | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, kernel: KernelName | Kernel = 'rbf',
        gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        basis: AnyBasis | None = None, start: SvorModel | None = None,
        probability: bool = False, rng: Rng = 0, n_threads: int | None = None,
        cache_mb: float = 1000.0, max_iter: int | None = None,
        max_time: float | None = None, callback: Callback | None = None,
        verbose: bool = False, rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class OrdinalSVR(Estimator):
    C: float
    epsilon: float
    thresholds: Literal['rounded', 'fitted']
    kernel: KernelName | Kernel
    gamma: Gamma
    tol: float
    class_weight: ClassWeight | None
    cost: ArrayLike | None
    missing_labels: MissingLabels
    basis: AnyBasis | None
    rng: Rng
    cache_mb: float
    max_iter: int | None
    def __init__(
        self, *, C: float = 1.0, epsilon: float = 0.1,
        thresholds: Literal['rounded', 'fitted'] = 'rounded',
        kernel: KernelName | Kernel = 'rbf', gamma: Gamma = 'scale', tol: float = 0.001,
        class_weight: ClassWeight | None = None, cost: ArrayLike | None = None,
        classes: Sequence[Any] | None = None, missing_labels: MissingLabels = 'error',
        basis: AnyBasis | None = None, probability: bool = False, rng: Rng = 0,
        n_threads: int | None = None, cache_mb: float = 1000.0,
        max_iter: int | None = None, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class TLSSVOR(Estimator):
    C: float
    u: float
    eta: float
    kernel: KernelName | Kernel
    gamma: Gamma
    basis: AnyBasis | None
    tol: float
    class_weight: ClassWeight | None
    missing_labels: MissingLabels
    rng: Rng
    cache_mb: float
    max_iter: int
    def __init__(
        self, *, C: float = 1.0, u: float = 2.0, eta: float = 0.1,
        kernel: KernelName | Kernel = 'rbf', gamma: Gamma = 'scale',
        basis: AnyBasis | None = None, tol: float = 1e-06,
        class_weight: ClassWeight | None = None, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', probability: bool = False,
        rng: Rng = 0, n_threads: int | None = None, cache_mb: float = 1000.0,
        max_iter: int = 500, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...

class XOFM(Estimator):
    n_intervals: int | Sequence[int]
    breakpoints: Literal['equal', 'quantile']
    n_factors: int
    tau: float
    l2_main: float
    l2_pair: float
    early_stopping: float | None
    monotone: Mapping[str, int] | Sequence[int] | None
    categorical: Sequence[str | int]
    solver: _XofmSolver
    learning_rate: float | None
    n_epochs: float | None
    batch_size: int | None
    init_scale: float
    cache_mb: float
    missing_labels: MissingLabels
    rng: Rng
    tol: float | None
    max_iter: int | None
    def __init__(
        self, *, n_intervals: int | Sequence[int] = 8,
        breakpoints: Literal['equal', 'quantile'] = 'equal', n_factors: int = 4,
        tau: float = 1.0, l2_main: float = 0.003, l2_pair: float = 0.01,
        early_stopping: float | None = None,
        monotone: Mapping[str, int] | Sequence[int] | None = None,
        categorical: Sequence[str | int] = ..., solver: _XofmSolver = 'lbfgs',
        learning_rate: float | None = None, n_epochs: float | None = None,
        batch_size: int | None = None, init_scale: float = 0.1,
        cache_mb: float = 1000.0, classes: Sequence[Any] | None = None,
        missing_labels: MissingLabels = 'error', probability: bool = False,
        rng: Rng = 0, n_threads: int | None = None, tol: float | None = None,
        max_iter: int | None = None, max_time: float | None = None,
        callback: Callback | None = None, verbose: bool = False,
        rule: str | None = None, scoring: str | object = 'mae'
    ) -> None: ...
