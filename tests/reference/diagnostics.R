# Figures of R for residuals, goodness of fit and influence, printed for
# tests/test_pom_diagnostics.py:
#
#     Rscript tests/reference/diagnostics.R
#
# It needs the packages ordinal, rms and MASS. The ordinal Hosmer-Lemeshow test is written
# out after Fagerland and Hosmer (2013), with groups as generalhoslem::logitgof cuts them.
suppressMessages({
  library(ordinal)
  library(rms)
  library(MASS)
})
options(digits = 15)
print(head(residuals(lrm(rating ~ temp + contact, data = wine, tol = 1e-14, eps = 1e-12,
                         x = TRUE, y = TRUE), "li.shepherd"), 8))

# the rows that pom.R and tests/pom_data.py make
source_lines <- readLines(file.path("tools", "reference", "pom.R"))
first <- grep("^made <- local", source_lines)
eval(parse(text = source_lines[first:(first + 20)]))
made$y <- as.integer(made$y)
fit <- clm(ordered(y) ~ x1 + x2 + x3, data = made, control = list(gradTol = 1e-12))
eta <- as.vector(as.matrix(made[c("x1", "x2", "x3")]) %*% fit$beta)
P <- t(diff(t(cbind(0, sapply(fit$alpha, function(a) plogis(a - eta)), 1))))
gof <- function(y, P, g) {
  score <- as.vector(P %*% seq_len(ncol(P)))
  group <- cut(score, unique(quantile(score, seq(0, 1, 1 / g))), include.lowest = TRUE)
  O <- table(droplevels(group), y)
  E <- rowsum(P, droplevels(group))
  chi2 <- sum((O - E)^2 / E)
  df <- (nrow(O) - 2) * (ncol(O) - 1) + ncol(O) - 2
  c(chi2, df, pchisq(chi2, df, lower.tail = FALSE))
}
print(gof(made$y, P, 10))
print(gof(made$y, P, 5))
p <- residuals(lrm(y ~ x1 + x2 + x3, data = made, tol = 1e-14, eps = 1e-12, x = TRUE, y = TRUE),
               "li.shepherd")
print(c(mean(p), var(p), range(p)))

# two ranks: leverage and distances of glm (whose influence() takes deviance residuals)
two <- glm(I(y > 2) ~ x1 + x2 + x3, binomial, made,
           control = list(epsilon = 1e-14, maxit = 100))
print(c(sum(hatvalues(two)^2), max(hatvalues(two)), hatvalues(two)[1:3]))
print(cooks.distance(two)[1:3])
