# Prints the fits of ordinal::clm that tests/test_pom_design.py holds formulas against:
#   Rscript tests/reference/pom_formulas.R
suppressMessages(library(ordinal))
library(MASS)
options(digits = 10)
data <- housing
data$t <- as.numeric(data$Type)
for (formula in c(
  Sat ~ Infl + Type * Cont,
  Sat ~ Type:Cont,
  Sat ~ Infl + Infl:t,
  Sat ~ Infl + offset(t / 2),
  Sat ~ Cont + log(t) + I(t^2)
)) {
  fit <- clm(formula, weights = Freq, data = data)
  print(formula, showEnv = FALSE)
  print(coef(fit))
  print(as.numeric(logLik(fit)))
}
