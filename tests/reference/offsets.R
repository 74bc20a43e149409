# Figures of R for offsets that differ by threshold, typed into tests/test_pom.py and
# tests/test_ratio.py. From the top of the source tree, with VGAM:
#
#     Rscript tests/reference/offsets.R
suppressMessages(library(VGAM))
source_lines <- readLines(file.path("tools", "reference", "pom.R"))
first <- grep("^made <- local", source_lines)
eval(parse(text = source_lines[first:(first + 20)]))
tight <- vglm.control(criterion = "coefficients", epsilon = 1e-11, maxit = 200)
O <- outer(made$o, c(1, -0.5, 0.25))
families <- list(
  cumulative = cumulative(parallel = TRUE), stopping = sratio(parallel = TRUE),
  backward = cratio(parallel = TRUE, reverse = TRUE), adjacent = acat(parallel = TRUE)
)
for (name in names(families)) {
  # predictors of acat are log odds of the higher rank: all signs are the other ones
  sign <- if (name == "adjacent") -1 else 1
  fit <- vglm(y ~ x1 + x2 + x3, families[[name]], data = made, weights = w,
              offset = -sign * O, control = tight)
  cat(name, sprintf("%.12g", c(logLik(fit), sign * coef(fit))), "\n")
}
