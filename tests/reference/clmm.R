# Cumulative link mixed models by R's clmm and clmm2, as JSON on the standard output:
#
#     Rscript tests/reference/clmm.R > tests/data/clmm_reference.json
#
# or of the models that are named behind the script, some of which take minutes.
# It needs the package ordinal. clmm and clmm2 stop at gradients of 1e-3 or so and take
# differences of few digits as Hessians. Here Newton steps maximise the log likelihoods
# that these functions compute, with modes of the random effects to 1e-10, and with
# differences of the fourth order as gradients and Hessians; `gradient` is the largest
# entry at the end. Estimates and standard errors are in the order of
# ClmmModel.parameters: thresholds, nominal (the slopes with the other sign), location,
# scale; then come the standard deviations of the effects. The models are of the data set
# `wine`, which `ordinal.datasets.load_wine` reads as well, and of `soup`, which comes with
# R's package.
suppressMessages(library(ordinal))
control <- list(gradTol = 1e-10, maxIter = 500, innerCtrl = "noWarn")
num <- function(x) paste0("[", paste(format(as.numeric(x), digits = 15), collapse = ", "), "]")
asked <- commandArgs(trailingOnly = TRUE)
before <- "{\n"

slopes <- function(f, x, h) {
  sapply(seq_along(x), function(j) {
    at <- function(k) f(replace(x, j, x[j] + k * h))
    (at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)
  })
}
polished <- function(name, f, x) {
  for (i in 1:20) {
    g <- slopes(f, x, 1e-3)
    if (i > 1 && max(abs(g)) < 1e-6) break
    if (i < 4) {
      H <- slopes(function(v) slopes(f, v, 2e-3), x, 5e-3)
      H <- (H + t(H)) / 2
    }
    x <- x - solve(H, g)
  }
  H <- slopes(function(v) slopes(f, v, 2e-3), x, 5e-3)
  message(name, ": gradient ", format(max(abs(g)), digits = 2), " after ", i, " steps")
  list(x = x, V = solve((H + t(H)) / 2), value = -f(x), gradient = max(abs(g)))
}
# by: derivatives of the standard deviations by the last parameters, if each has its own
add <- function(name, found, fixed, sd, by = numeric(0)) {
  errors <- sqrt(diag(found$V))
  cat(before, sprintf(
    paste0(
      '"%s": {"estimates": %s, "sd": %s, "loglik": %s, "errors": %s, ',
      '"sd_errors": %s, "gradient": %s}'
    ),
    name, num(found$x[fixed]), num(sd), format(found$value, digits = 15),
    num(errors[fixed]), num(by * errors[-fixed][seq_along(by)]),
    format(found$gradient, digits = 2)
  ))
  before <<- ",\n"
}
by_clmm <- function(name, formula, ...) {
  if (length(asked) && !name %in% asked) return(invisible())
  start <- suppressWarnings(clmm(formula, ...))
  rho <- clmm(formula, ..., control = do.call(clmm.control, control), doFit = FALSE)
  fixed <- seq_len(length(start$alpha) + length(start$beta))
  x <- start$optRes$par
  if (!is.null(rho$ntau)) { # one term: log sd
    by <- if (rho$nAGQ > 1) ordinal:::getNAGQ.ssr else ordinal:::getNLA.ssr
    found <- polished(name, function(v) by(rho, v), x)
    sd <- exp(found$x[-fixed])
    add(name, found, fixed, sd, sd)
    return(invisible())
  }
  ordinal:::setPar.clmm(rho, x)
  bound <- as.logical(ordinal:::paratBoundary2(rho))
  x[bound] <- 0 # a variance of 0 stays on the boundary
  ordinal:::setPar.clmm(rho, x)
  found <- polished(name, function(v) ordinal:::getNLA(rho, v, which = !bound), x[!bound])
  ordinal:::setPar.clmm(rho, found$x, which = !bound)
  sd <- lapply(rho$ST, function(ST) sqrt(rowSums(ST^2)))
  is_scalar <- all(lengths(rho$ST) == 1) && !any(bound)
  add(name, found, fixed, unlist(sd), if (is_scalar) rep(1, length(sd)) else numeric(0))
}
by_clmm2 <- function(name, ...) {
  if (length(asked) && !name %in% asked) return(invisible())
  call <- substitute(clmm2(...)) # which evaluates its call once more
  start <- suppressWarnings(eval(call, globalenv()))
  call$control <- do.call(clmm2.control, control)
  call$doFit <- FALSE
  rho <- eval(call, globalenv())
  by <- if (rho$nAGQ > 1) ordinal:::getNAGQinC else ordinal:::getNLA2
  found <- polished(name, function(v) by(rho, v), start$optRes[[1]])
  fixed <- seq_len(length(found$x) - 1)
  sd <- exp(found$x[-fixed])
  add(name, found, fixed, sd, sd)
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
by_clmm2("scale", rating ~ contact + temp, scale = ~temp, random = judge, data = wine, nAGQ = 10)
by_clmm2("nominal", rating ~ temp, nominal = ~contact, random = judge, data = wine, nAGQ = 10)
by_clmm2("swapped10", rating ~ temp + contact, random = judge, data = wine, nAGQ = 10, link = "loglog")
soup <- ordinal::soup
soup$x <- as.numeric(soup$PROD == "Test")
soup2 <- function(name, ...) by_clmm(name, ..., data = soup)
soup2("soup_nodes", SURENESS ~ PROD + DAY + (1 | RESP), nAGQ = 10)
by_clmm2("soup_scale", SURENESS ~ PROD, scale = ~PROD, random = RESP, data = soup, nAGQ = 10)
by_clmm2("soup_nominal", SURENESS ~ DAY, nominal = ~PROD, random = RESP, data = soup, nAGQ = 10)
soup2("soup_nested", SURENESS ~ PROD + (1 | RESP) + (1 | PROD:RESP))
soup2("soup_probit", SURENESS ~ PROD + (1 | RESP) + (1 | PROD:RESP), link = "probit")
soup2("soup_cloglog", SURENESS ~ PROD + (1 | RESP) + (1 | PROD:RESP), link = "cloglog")
soup2("soup_more", SURENESS ~ PRODID + DAY + (1 | RESP) + (1 | PROD:RESP))
soup2("soup_slope", SURENESS ~ PROD + (1 + x | RESP))
soup2("soup_crossed", SURENESS ~ PROD + (1 | RESP) + (1 | PRODID))
cat("\n}\n")
