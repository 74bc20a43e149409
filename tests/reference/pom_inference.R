# Figures of R for the inference of cumulative models, printed for tests/test_pom_inference.py:
#
#     Rscript tests/reference/pom_inference.R
#
# It needs the packages ordinal, MASS and numDeriv. Profile intervals are roots of the
# profile log likelihood by uniroot: those of confint(clm) are interpolated, and good for
# some five digits. The sandwiches, Brant's test and the marginal effects are written out.
suppressMessages({
  library(MASS)
  library(ordinal)
  library(numDeriv)
})
options(digits = 13, width = 120)
exact <- list(gradTol = 1e-12)

ends <- function(fit, X, y, w, k) {
  # of column k of X, which becomes an offset
  fall <- function(b) {
    Z <- X[, -k]
    o <- b * X[, k]
    held <- clm(y ~ Z + offset(o), weights = w, control = exact)
    2 * as.numeric(logLik(fit) - logLik(held)) - qchisq(0.95, 1)
  }
  at <- coef(fit)[length(fit$alpha) + k]
  se <- sqrt(diag(vcov(fit)))[length(fit$alpha) + k]
  c(uniroot(fall, c(at - 8 * se, at), tol = 1e-12)$root,
    uniroot(fall, c(at, at + 8 * se), tol = 1e-12)$root)
}

brant <- function(y, X, w) {
  X1 <- cbind(1, X)
  T <- nlevels(y) - 1
  p <- ncol(X)
  fits <- lapply(1:T, function(j) {
    glm.fit(X1, as.numeric(as.integer(y) > j), weights = w, family = binomial(),
            control = list(epsilon = 1e-14, maxit = 100))
  })
  P <- sapply(fits, function(f) f$fitted.values)
  b <- as.vector(sapply(fits, function(f) f$coefficients[-1]))
  inverse <- lapply(1:T, function(j) solve(t(X1) %*% (X1 * (w * P[, j] * (1 - P[, j])))))
  V <- matrix(0, T * p, T * p)
  for (j in 1:T) for (l in j:T) {
    middle <- t(X1) %*% (X1 * (w * (P[, l] - P[, j] * P[, l])))
    v <- (inverse[[j]] %*% middle %*% inverse[[l]])[-1, -1]
    V[(j - 1) * p + 1:p, (l - 1) * p + 1:p] <- v
    V[(l - 1) * p + 1:p, (j - 1) * p + 1:p] <- t(v)
  }
  D <- do.call(rbind, lapply(1:(T - 1), function(j) {
    D <- matrix(0, p, T * p)
    D[, 1:p] <- diag(p)
    D[, j * p + 1:p] <- -diag(p)
    D
  }))
  wald <- function(D) {
    d <- D %*% b
    chi2 <- c(t(d) %*% solve(D %*% V %*% t(D)) %*% d)
    c(chi2, nrow(D), pchisq(chi2, nrow(D), lower.tail = FALSE))
  }
  each <- sapply(1:p, function(k) wald(D[seq(k, nrow(D), p), , drop = FALSE]))
  rbind(all = wald(D), t(each))
}

cat("wine\n")
X <- model.matrix(~ temp + contact, wine)[, -1]
fit <- clm(rating ~ temp + contact, data = wine, control = exact)
one <- rep(1, 72)
print(t(sapply(1:2, function(k) ends(fit, X, wine$rating, one, k))))
print(confint(fit, type = "Wald"))
print(confint(clm(rating ~ temp + contact, scale = ~contact, data = wine, control = exact)))
print(nominal_test(fit))
print(anova(clm(rating ~ temp, data = wine), fit))
print(c(logLik(clm(rating ~ 1, data = wine)),
        logLik(clm(rating ~ 1, data = wine, threshold = "symmetric"))))

cat("housing\n")
w <- housing$Freq
y <- housing$Sat
X <- model.matrix(~ Infl + Type + Cont, housing)[, -1]
fit <- clm(Sat ~ Infl + Type + Cont, weights = Freq, data = housing, control = exact)
print(t(sapply(1:6, function(k) ends(fit, X, y, w, k))))
print(c(logLik(fit), AIC(fit), BIC(fit), logLik(clm(Sat ~ 1, weights = Freq, data = housing))))
print(brant(y, X, w))

logp <- function(x) {
  a <- c(-Inf, x[1:2], Inf)
  xb <- as.vector(X %*% x[-(1:2)])
  log(plogis(a[as.integer(y) + 1] - xb) - plogis(a[as.integer(y)] - xb))
}
x <- coef(fit)
V <- vcov(fit)
S <- jacobian(logp, x)
G <- rowsum(S * w, rep(1:24, each = 3)) # the cells, 3 rows each
print(rbind(robust = sqrt(diag(V %*% t(S) %*% (S * w) %*% V)),
            cluster = sqrt(diag(V %*% t(G) %*% G %*% V * 24 / 23))))

step <- function(x) {
  # of ContHigh from 0 to 1, on the mean probabilities
  mean_at <- function(value) {
    X[, 6] <- value
    a <- c(-Inf, x[1:2], Inf)
    xb <- as.vector(X %*% x[-(1:2)])
    P <- sapply(1:3, function(j) plogis(a[j + 1] - xb) - plogis(a[j] - xb))
    colSums(w * P) / sum(w)
  }
  mean_at(1) - mean_at(0)
}
J <- jacobian(step, x)
print(rbind(effect = step(x), error = sqrt(diag(J %*% V %*% t(J)))))
