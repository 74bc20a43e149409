# Figures of R for stopping ratio and adjacent categories models, written to
# tests/data/ratio_reference.json for tests/test_ratio.py:
#
#     Rscript tests/reference/ratio.R > tests/data/ratio_reference.json
#
# It needs the packages ordinal, MASS and VGAM.
suppressMessages({
  library(ordinal)
  library(MASS)
  library(VGAM)
})
source_lines <- readLines(file.path("tools", "reference", "pom.R"))
first <- grep("^made <- local", source_lines)
eval(parse(text = source_lines[first:(first + 20)]))
wine <- data.frame(ordinal::wine, w = 1)  # VGAM has another wine
sets <- list(
  wine = list(wine, rating ~ temp + contact, wine$w),
  housing = list(housing, Sat ~ Infl + Type + Cont, housing$Freq),
  made = list(made, y ~ x1 + x2 + x3, made$w)
)
for (k in 1:20) {
  # small tables by the generator of Lehmer, which tests/test_ratio.py makes again
  state <- 1009 * k
  draw <- function() {
    state <<- (16807 * state) %% 2147483647
    state / 2147483647
  }
  rows <- lapply(1:90, function(i) {
    x1 <- floor(5 * draw()) - 2
    x2 <- floor(2 * draw())
    w <- 1 + floor(2 * draw())
    u <- draw()
    s <- 0.5 * x1 - 0.7 * x2 + log(u / (1 - u))
    data.frame(x1 = x1, x2 = x2, w = w, y = 1 + (s > -1) + (s > 0.1) + (s > 1.2 & k %% 2 == 0))
  })
  data <- do.call(rbind, rows)
  data$y <- ordered(data$y)
  sets[[paste0("table", k)]] <- list(data, y ~ x1 + x2, data$w)
}
families <- list(
  stopping = function(p) sratio(parallel = p),
  backward = function(p) cratio(parallel = p, reverse = TRUE),
  adjacent = function(p) acat(parallel = p),
  continuation = function(p) cratio(parallel = p),
  probit = function(p) sratio(link = "probitlink", parallel = p),
  cloglog = function(p) sratio(link = "clogloglink", parallel = p)
)
tight <- vglm.control(criterion = "coefficients", epsilon = 1e-11, maxit = 200)
out <- c()
for (s in names(sets)) for (f in names(families)) for (p in c(TRUE, FALSE)) {
  if (startsWith(s, "table") && f %in% c("continuation", "probit", "cloglog")) next
  set <- sets[[s]]
  data <- set[[1]]
  data$.w <- set[[3]]
  fit <- suppressWarnings(try(
    vglm(set[[2]], families[[f]](p), data = data, weights = .w, control = tight), TRUE))
  if (inherits(fit, "try-error")) next
  number <- function(v) paste0("[", paste(sprintf("%.12g", v), collapse = ", "), "]")
  se <- suppressWarnings(try(sqrt(diag(vcov(fit))), TRUE))
  if (inherits(se, "try-error") || max(abs(coef(fit))) > 6) next # separated
  out <- c(out, sprintf(
    '{"set": "%s", "family": "%s", "parallel": %s, "loglik": %.12g, "coef": %s, "error": %s}',
    s, f, tolower(p), logLik(fit), number(coef(fit)), number(se)))
}
cat("[\n", paste(out, collapse = ",\n"), "\n]\n", sep = "")
