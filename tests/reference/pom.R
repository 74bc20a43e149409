# Fits of cumulative models by R's clm, polr and vglm, as JSON on the standard output:
#
#     Rscript tests/reference/pom.R > tests/data/pom_reference.json
#
# It needs the packages ordinal, MASS and VGAM. Three sets are fitted by clm over the
# links, the structures of the thresholds, and nominal and scale effects. Each record holds
# the estimates in the order and with the signs of PomModel.covariance: thresholds (the
# free ones), nominal (a row a free threshold), location, scale; clm's nominal slopes and
# all slopes of vglm have the other sign. `with` names what else gave these estimates to
# 1e-6; the script stops if polr or vglm gave others. The errors are clm's: polr's come
# from numerical differences, vglm's from the expected information.
#
# clm takes 1e5 for the infinite ends of the thresholds, and polr 100. With cauchit this
# shows: F(1e5) is 1 - 3e-6 and F(100) is 1 - 3e-3. clm's fit is therefore continued with
# ends at 1e15, by clm's own Newton method, and then agrees with vglm; polr is left out.
suppressMessages({
  library(MASS)
  library(VGAM)
  library(ordinal)
})

links <- c("logit", "probit", "cloglog", "loglog", "cauchit")
tight <- ordinal::clm.control(gradTol = 1e-10, relTol = 1e-13, maxIter = 500)

# 120 rows by the generator of Lehmer, which tests/pom_data.py writes again
made <- local({
  state <- 20051
  draw <- function() {
    state <<- (16807 * state) %% 2147483647
    state / 2147483647
  }
  rows <- lapply(1:120, function(i) {
    x1 <- floor(9 * draw()) / 2 - 2
    x2 <- floor(5 * draw()) - 2
    x3 <- floor(2 * draw())
    w <- 1 + floor(3 * draw())
    o <- floor(5 * draw()) / 4 - 0.5
    u <- draw()
    score <- 0.6 * x1 - 0.3 * x2 + 0.5 * x3 + o + 0.9 * log(u / (1 - u))
    y <- 1 + (score > -1.5) + (score > 0.25) + (score > 1.75)
    data.frame(x1 = x1, x2 = x2, x3 = x3, w = w, o = o, y = y)
  })
  data <- do.call(rbind, rows)
  data$y <- ordered(data$y)
  data
})

sets <- list(
  wine = list(
    data = ordinal::wine, y = "rating", location = c("temp", "contact"),
    nominal = "contact", scale = "temp", weights = NULL, offset = NULL
  ),
  housing = list(
    data = MASS::housing, y = "Sat", location = c("Infl", "Type", "Cont"),
    nominal = "Cont", scale = "Infl", weights = "Freq", offset = NULL
  ),
  made = list(
    data = made, y = "y", location = c("x1", "x2", "x3"),
    nominal = c("x2", "x3"), scale = "x1", weights = "w", offset = "o"
  )
)

one_sided <- function(names) {
  if (length(names)) reformulate(names) else NULL
}

text <- function(values) {
  paste0("[", paste(trimws(formatC(values, digits = 10, format = "g")), collapse = ", "), "]")
}

quoted <- function(words) {
  if (length(words)) paste0("[\"", paste(words, collapse = "\", \""), "\"]") else "[]"
}

by_clm <- function(name, link, threshold, nominal, scale) {
  s <- sets[[name]]
  terms <- setdiff(s$location, nominal)
  if (!is.null(s$offset)) terms <- c(terms, paste0("offset(", s$offset, ")"))
  call <- list(
    quote(ordinal::clm), formula = reformulate(terms, s$y), data = s$data,
    link = link, threshold = threshold, control = tight
  )
  call$nominal <- one_sided(nominal)
  call$scale <- one_sided(scale)
  if (!is.null(s$weights)) call$weights <- s$data[[s$weights]]
  fit <- suppressWarnings(eval(as.call(call)))
  ends_far <- update(fit, doFit = FALSE)
  ends_far$o1[ends_far$o1 > 5e4] <- 1e15
  ends_far$o2[ends_far$o2 < -5e4] <- -1e15
  ends_far$par <- fit$coefficients
  further <- ordinal:::clm.fit.NR(ends_far, tight)
  stopifnot(further$maxGradient < 1e-5)
  alpha <- further$par[seq_along(fit$alpha)]
  rest <- further$par[-seq_along(fit$alpha)]
  error <- sqrt(diag(solve(further$Hessian)))
  widths <- vapply(s$data[nominal], function(v) max(1, nlevels(v) - 1), 0)
  M <- 1 + sum(widths)
  q <- length(alpha) / M
  # clm names alpha column by column: all intercepts, then each nominal effect
  at <- matrix(seq_along(alpha), q, M)
  order_of <- c(at[, 1], if (M > 1) as.vector(t(at[, -1, drop = FALSE])))
  sign <- rep(c(1, -1), c(q, length(alpha) - q))
  list(
    loglik = further$logLik,
    estimate = c(sign * alpha[order_of], rest),
    error = c(error[order_of], error[length(alpha) + seq_along(rest)])
  )
}

by_polr <- function(name, link) {
  s <- sets[[name]]
  terms <- s$location
  if (!is.null(s$offset)) terms <- c(terms, paste0("offset(", s$offset, ")"))
  call <- list(
    quote(MASS::polr), formula = reformulate(terms, s$y), data = s$data,
    method = if (link == "logit") "logistic" else link,
    control = list(reltol = 1e-15, maxit = 2000)
  )
  if (!is.null(s$weights)) call$weights <- s$data[[s$weights]]
  fit <- suppressWarnings(eval(as.call(call)))
  c(fit$zeta, fit$coefficients)
}

by_vglm <- function(name, link, nominal) {
  s <- sets[[name]]
  vlink <- c(
    logit = "logitlink", probit = "probitlink", cloglog = "clogloglink",
    cauchit = "cauchitlink"
  )[[link]]
  parallel <- if (length(nominal)) {
    as.formula(paste("FALSE ~", paste(nominal, collapse = " + ")))
  } else {
    TRUE
  }
  w <- if (is.null(s$weights)) rep(1, nrow(s$data)) else s$data[[s$weights]]
  n_rows <- nrow(s$data)
  n_thresholds <- nlevels(s$data[[s$y]]) - 1
  o <- if (is.null(s$offset)) rep(0, nrow(s$data)) else s$data[[s$offset]]
  data <- s$data
  data$shift <- -o
  terms <- c(s$location, if (!is.null(s$offset)) "offset(matrix(shift, n_rows, n_thresholds))")
  formula <- reformulate(terms, s$y)
  environment(formula) <- environment()
  family <- do.call(VGAM::cumulative, list(link = vlink, parallel = parallel))
  # it warns of halved steps, as rounding leaves no deviance to gain at epsilon = 1e-14
  fit <- suppressWarnings(VGAM::vglm(
    formula, family, data = data, weights = w, epsilon = 1e-14, maxit = 500
  ))
  B <- coef(fit, matrix = TRUE)
  columns <- function(terms) {
    unlist(lapply(terms, function(v) {
      paste0(v, if (is.factor(s$data[[v]])) levels(s$data[[v]])[-1] else "")
    }))
  }
  bent <- -B[columns(nominal), , drop = FALSE]
  c(B["(Intercept)", ], as.vector(bent), -B[columns(setdiff(s$location, nominal)), 1])
}

# The names of those of the two that fit this, having been seen to agree with clm.
others <- function(name, link, threshold, nominal, scale, estimate) {
  if (threshold != "flexible" || length(scale)) return(character(0))
  fits <- list()
  if (!length(nominal) && link != "cauchit") fits$polr <- by_polr(name, link)
  if (link != "loglog") fits$vglm <- by_vglm(name, link, nominal)
  for (fit in fits) stopifnot(length(fit) == length(estimate), abs(fit - estimate) < 1e-6)
  names(fits)
}

record <- function(name, link, threshold, nominal, scale) {
  fit <- by_clm(name, link, threshold, nominal, scale)
  agree <- others(name, link, threshold, nominal, scale, fit$estimate)
  sprintf(
    paste0(
      "{\"set\": \"%s\", \"link\": \"%s\", \"threshold\": \"%s\", \"nominal\": %s, ",
      "\"scale\": %s, \"with\": %s,\n \"loglik\": %s,\n \"estimate\": %s,\n \"error\": %s}"
    ),
    name, link, threshold, quoted(nominal), quoted(scale), quoted(agree),
    formatC(fit$loglik, digits = 13, format = "g"), text(fit$estimate), text(fit$error)
  )
}

records <- character(0)
for (name in names(sets)) {
  for (link in links) {
    s <- sets[[name]]
    thresholds <- c("flexible", "symmetric", "equidistant")
    if (name == "housing") thresholds <- "flexible"  # two thresholds are all alike
    for (threshold in thresholds) {
      for (nominal in list(NULL, s$nominal)) {
        for (scale in list(NULL, s$scale)) {
          records <- c(records, record(name, link, threshold, nominal, scale))
        }
      }
    }
  }
}
cat("[\n", paste(records, collapse = ",\n"), "\n]\n", sep = "")
