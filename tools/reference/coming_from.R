# The figures of docs/coming_from.md, by the programs that it is about:
#
#     Rscript tools/reference/coming_from.R
#
# It needs the packages ordinal, MASS, VGAM and rms. Those of mord are printed by
# mord.LogisticAT(alpha=1).fit(X, y) on the 72 ratings, a row each.
suppressMessages({
  library(MASS)
  library(VGAM)
  library(rms)
  library(ordinal)
})
options(digits = 9)
data(wine, package = "ordinal")
model <- rating ~ temp + contact

shown <- function(name, value) {
  cat("\n", name, "\n", sep = "")
  print(value)
}

fit <- clm(model, data = wine)
shown("clm", coef(fit))
polr_fit <- polr(model, data = wine)
shown("polr", c(coef(polr_fit), polr_fit$zeta))
shown("vglm, propodds", VGAM::coef(vglm(model, propodds, wine)))
shown("vglm, cumulative", VGAM::coef(vglm(model, cumulative(parallel = TRUE), wine)))
shown("orm", coef(orm(model, data = wine)))

shown("nominal", coef(clm(rating ~ temp, nominal = ~contact, data = wine)))
for (structure in c("equidistant", "symmetric")) {
  shown(structure, coef(clm(model, threshold = structure, data = wine)))
}
shown("nominal_test", nominal_test(fit))
shown("confint", confint(fit))
for (link in c("cloglog", "loglog")) {
  shown(paste("clm,", link), coef(clm(model, link = link, data = wine)))
  shown(paste("orm,", link), coef(orm(model, family = link, data = wine)))
}
shown("clm, cauchit", coef(clm(model, link = "cauchit", data = wine)))
shown("polr, cauchit", polr(model, method = "cauchit", data = wine)$zeta)
shown("ranks predicted by clm", table(predict(fit, type = "class")$fit))
shown("ranks predicted by polr", table(predict(polr_fit)))
