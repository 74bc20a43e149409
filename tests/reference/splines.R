# Prints the columns of smooth terms that tests/test_splines.py holds formulas against:
#   Rscript tests/reference/splines.R > tests/data/spline_reference.json
suppressMessages({
  library(splines)
  library(mgcv)
  library(Hmisc)
})
# 120 values, of which the first three lie near one another, and 7 that lie beyond too
x <- ((37 * (1:120)) %% 121 / 12)^1.5 - 3
at <- c(-6, min(x), -2.5, 4.25, 20, max(x), 40)
tied <- pmax(x, 1)
centred <- smoothCon(s(x, bs = "cr", k = 5), data = data.frame(x), absorb.cons = TRUE)[[1]]
bs1 <- bs(x, df = 6)
bs2 <- bs(x, knots = c(0, 5), degree = 2, Boundary.knots = c(-4, 35))
ns1 <- ns(x, df = 4)
ns2 <- ns(x, knots = c(0, 5, 9))
poly1 <- poly(x, 3)
columns <- suppressWarnings(list(
  "bs(x, df=6)" = predict(bs1, at),
  "bs(x, knots=[0, 5], degree=2, lower_bound=-4, upper_bound=35)" = predict(bs2, at),
  "bs(x)" = predict(bs(x), at),
  "ns(x, 4)" = predict(ns1, at),
  "ns(x, knots=[0, 5, 9])" = predict(ns2, at),
  "cr(x, df=4)" = PredictMat(centred, data.frame(x = at)),
  "poly(x, 3)" = predict(poly1, at),
  "rcs(x)" = rcspline.eval(at, rcspline.eval(x, nk = 5, knots.only = TRUE), inclx = TRUE),
  "rcs(x, 3)" = rcspline.eval(at, rcspline.eval(x, nk = 3, knots.only = TRUE), inclx = TRUE),
  "rcs(x, [-1, 2, 9, 20])" = rcspline.eval(at, c(-1, 2, 9, 20), inclx = TRUE),
  "rcs(small, 4)" = rcspline.eval(at, rcspline.eval(x[1:60], nk = 4, knots.only = TRUE), inclx = TRUE),
  "rcs(tied, 4)" = rcspline.eval(at, rcspline.eval(tied, nk = 4, knots.only = TRUE), inclx = TRUE)
))
cat("{\n")
lines <- sapply(names(columns), function(name) {
  rows <- apply(unclass(columns[[name]]), 1, function(row) {
    paste0("[", paste(sprintf("%.15g", row), collapse = ", "), "]")
  })
  paste0("\"", name, "\": [", paste(rows, collapse = ", "), "]")
})
cat(lines, sep = ",\n")
cat("\n}\n")
