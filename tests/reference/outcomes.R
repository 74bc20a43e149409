# Grids of levels and contrasts on the scale of the outcome, and tests of textbooks, for
# tests/test_outcomes.py and tests/test_grouped.py.
# Rscript tests/reference/outcomes.R, with ordinal 2022.11.16 and emmeans 1.8.4.1
suppressPackageStartupMessages({library(ordinal); library(emmeans); library(MASS)})
options(digits = 12)
fit <- clm(Sat ~ Infl * Cont + Type, weights = Freq, data = housing)
show <- function(x) print(as.data.frame(x)[, -1], row.names = FALSE)
table <- function(x) for (column in names(as.data.frame(x))) {
  values <- as.data.frame(x)[[column]]
  if (is.numeric(values)) cat(column, ":", format(values, digits = 10), "\n")
}
for (mode in c("prob", "cum.prob", "exc.prob", "mean.class", "latent")) {
  by <- switch(mode, prob = "Sat", cum.prob = "cut", exc.prob = "cut", NULL)
  cells <- emmeans(fit, c("Infl", by), mode = mode)
  cat("\n", mode, "\n"); table(cells)
  cat("pairs\n")
  table(pairs(emmeans(fit, "Infl", by = by, mode = mode), reverse = TRUE))
}
cat("\nwithin Cont, exc.prob\n")
table(pairs(emmeans(fit, "Infl", by = c("cut", "Cont"), mode = "exc.prob"), reverse = TRUE))
# a numeric covariate and scale effects
wine2 <- wine; wine2$x <- wine2$response
again <- clm(rating ~ temp + x, scale = ~ contact, data = transform(wine2, x = as.numeric(judge)))
cat("\nnumeric, mean.class\n"); table(emmeans(again, "temp", mode = "mean.class"))
cat("numeric, cum.prob\n"); table(emmeans(again, c("temp", "cut"), mode = "cum.prob"))
# terms with scale and nominal effects: logLik without and with them
full <- clm(rating ~ temp, nominal = ~ contact, scale = ~ temp, data = wine)
for (m in list(full, clm(rating ~ 1, nominal = ~ contact, data = wine),
               clm(rating ~ temp, scale = ~ temp, data = wine)))
  cat(format(as.numeric(logLik(m)), digits = 10), attr(logLik(m), "df"), "\n")
# linear combinations
fit <- clm(rating ~ temp + contact, data = wine)
K <- rbind(c(0, 0, 0, 0, 1, -2), c(1, 0, 0, -1, 0, 0))
cat(format(c(K %*% coef(fit), sqrt(diag(K %*% vcov(fit) %*% t(K)))), digits = 10), "\n")
cat(drop(t(K %*% coef(fit)) %*% solve(K %*% vcov(fit) %*% t(K), K %*% coef(fit))), "\n")
