# Fits of cumulative link mixed models by R's clmm and clmm2, as JSON on the standard
# output:
#
#     Rscript tools/reference/clmm.R > tests/data/clmm_reference.json
#
# It needs the package ordinal. Estimates are in the order of ClmmModel.parameters:
# thresholds, nominal (the slopes with the other sign), location, scale; then the standard
# deviations of the effects. The models are of the data set `wine`, which
# `ordinal.datasets.load_wine` reads as well, and of `soup`, which comes with R's package.
suppressMessages(library(ordinal))
num <- function(x) paste0("[", paste(format(as.numeric(x), digits = 15), collapse = ", "), "]")
records <- character()
add <- function(name, estimates, sd, loglik, errors) {
  records <<- c(records, sprintf(
    '"%s": {"estimates": %s, "sd": %s, "loglik": %s, "errors": %s}',
    name, num(estimates), num(sd), format(as.numeric(loglik), digits = 15), num(errors)
  ))
}
by_clmm <- function(name, formula, ...) {
  m <- clmm(formula, ..., control = clmm.control(gradTol = 1e-8, maxIter = 500))
  p <- length(m$alpha) + length(m$beta)
  sd <- unlist(lapply(VarCorr(m), function(v) attr(v, "stddev")))
  add(name, c(m$alpha, m$beta), sd, m$logLik, sqrt(diag(vcov(m)))[1:p])
}
wine <- ordinal::wine
by_clmm("laplace", rating ~ temp + contact + (1 | judge), data = wine)
by_clmm("nodes10", rating ~ temp + contact + (1 | judge), data = wine, nAGQ = 10)
by_clmm("probit", rating ~ temp + contact + (1 | judge), data = wine, link = "probit")
# clmm with one random term and clmm2 call cloglog what clm, clmm with several terms and
# this package call loglog, and vice versa
by_clmm("swapped", rating ~ temp + contact + (1 | judge), data = wine, link = "cloglog")
by_clmm("crossed", rating ~ temp + contact + (1 | judge) + (1 | bottle), data = wine)
by_clmm("equidistant", rating ~ temp + contact + (1 | judge), data = wine, threshold = "equidistant")
by_clmm("symmetric", rating ~ temp + contact + (1 | judge), data = wine, threshold = "symmetric")
by_clmm("slope", rating ~ temp + contact + (1 + contact | judge), data = wine)
m2 <- clmm2(rating ~ contact + temp, scale = ~temp, random = judge, data = wine, Hess = TRUE, nAGQ = 10)
add("scale", c(m2$Theta, m2$beta, m2$zeta), m2$stDev, m2$logLik, numeric(0))
m3 <- clmm2(rating ~ temp, nominal = ~contact, random = judge, data = wine, Hess = TRUE, nAGQ = 10)
add("nominal", c(t(matrix(m3$Theta, ncol = 1)), m3$beta), m3$stDev, m3$logLik, numeric(0))
m4 <- clmm2(rating ~ temp + contact, random = judge, data = wine, Hess = TRUE, nAGQ = 10, link = "loglog")
add("swapped10", c(m4$Theta, m4$beta), m4$stDev, m4$logLik, numeric(0))
soup <- ordinal::soup
soup$x <- as.numeric(soup$PROD == "Test")
soup2 <- function(name, ...) by_clmm(name, ..., data = soup)
soup2("soup_nested", SURENESS ~ PROD + (1 | RESP) + (1 | PROD:RESP))
soup2("soup_probit", SURENESS ~ PROD + (1 | RESP) + (1 | PROD:RESP), link = "probit")
soup2("soup_cloglog", SURENESS ~ PROD + (1 | RESP) + (1 | PROD:RESP), link = "cloglog")
soup2("soup_more", SURENESS ~ PRODID + DAY + (1 | RESP) + (1 | PROD:RESP))
soup2("soup_slope", SURENESS ~ PROD + (1 + x | RESP))
soup2("soup_crossed", SURENESS ~ PROD + (1 | RESP) + (1 | PRODID))
soup2("soup_nodes", SURENESS ~ PROD + DAY + (1 | RESP), nAGQ = 10)
m5 <- clmm2(SURENESS ~ PROD, scale = ~PROD, random = RESP, data = soup, Hess = TRUE, nAGQ = 10)
add("soup_scale", c(m5$Theta, m5$beta, m5$zeta), m5$stDev, m5$logLik, numeric(0))
m6 <- clmm2(SURENESS ~ DAY, nominal = ~PROD, random = RESP, data = soup, Hess = TRUE, nAGQ = 10)
add("soup_nominal", c(m6$Theta, m6$beta), m6$stDev, m6$logLik, numeric(0))
cat("{\n", paste(records, collapse = ",\n"), "\n}\n")
