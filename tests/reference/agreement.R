# Figures of R for measures of agreement, printed for tests/test_agreement.py:
#
#     Rscript tests/reference/agreement.R
#
# It needs the packages ordinal, Hmisc, vcd and MASS. Gamma and its standard error are
# written out after Goodman and Kruskal (1972), by a loop over all pairs of cells.
suppressMessages({
  library(ordinal)
  library(Hmisc)
  library(vcd)
  library(MASS)
})
options(digits = 15)

gamma_of <- function(t) {
  r <- nrow(t)
  k <- ncol(t)
  C <- D <- matrix(0, r, k)
  for (i in 1:r) for (j in 1:k) for (a in 1:r) for (b in 1:k) {
    sign <- sign(a - i) * sign(b - j)
    if (sign > 0) C[i, j] <- C[i, j] + t[a, b]
    if (sign < 0) D[i, j] <- D[i, j] + t[a, b]
  }
  P <- sum(t * C)
  Q <- sum(t * D)
  c((P - Q) / (P + Q), 4 / (P + Q)^2 * sqrt(sum(t * (Q * C - P * D)^2)))
}

fit <- clm(rating ~ temp + contact, data = wine)
mode <- predict(fit, type = "class")$fit
print(rcorr.cens(as.integer(mode), as.integer(wine$rating))[1:3])
t <- table(wine$rating, mode)
print(gamma_of(t))
print(Kappa(t, weights = "Equal-Spacing")$Weighted)
print(Kappa(t, weights = "Fleiss-Cohen")$Weighted)

# a score that ranks the cells: temp, then contact
score <- 2 * (wine$temp == "warm") + (wine$contact == "yes")
print(rcorr.cens(score, as.integer(wine$rating))[1:3])

# satisfaction by influence, with frequencies as rows
rows <- housing[rep(1:72, housing$Freq), ]
print(rcorr.cens(as.integer(rows$Infl), as.integer(rows$Sat))[1:3])
print(gamma_of(xtabs(Freq ~ Sat + Infl, housing)))
