# Prints the fits of ordinal::clm with the link log-gamma that tests/test_flexible.py holds:
#   Rscript tools/reference/log_gamma.R
# The gradient of clm ends near 1e-3 in the first three, so that estimates agree to 4 digits.
suppressMessages(library(ordinal))
library(MASS)
options(digits = 10)
show <- function(formula, ...) {
  fit <- suppressWarnings(clm(formula, link = "log-gamma", ...))
  print(formula, showEnv = FALSE)
  print(coef(fit))
  print(sqrt(diag(vcov(fit))))
  print(as.numeric(logLik(fit)))
}
show(rating ~ temp + contact, data = ordinal::wine)
show(Sat ~ Infl + Type + Cont, data = housing[rep(1:72, housing$Freq), ])
show(rating ~ temp + contact, data = ordinal::wine, threshold = "equidistant")
show(SURENESS ~ PRODID, data = soup)
