# Run what docs/features.md says of R's ordinal, VGAM and rms:
#
#     Rscript tools/reference/features.R
#
# (Debian: apt-get install r-cran-ordinal r-cran-vgam r-cran-rms). One line for each
# call: the row and the program as in the page, and "yes" if the call runs, or "no" and
# the message if it stops. With ordinal 2022.11, VGAM 1.1.7 and rms 6.5 three stop: no
# start is found by vglm for the link loglog, rms has no fit of y ~ 1, and clm refuses
# offsets by threshold, as the page says.
suppressPackageStartupMessages({
  library(ordinal); library(VGAM); library(rms); library(splines)
})
data(wine, package = "ordinal")
wine$x <- as.numeric(wine$bottle) + 0.1 * as.numeric(wine$judge)
wine$y <- as.numeric(wine$rating)
wine$judge <- factor(wine$judge)
wine$o <- seq(-1, 1, length.out = nrow(wine))
O <- cbind(wine$o, 2 * wine$o, 0, -wine$o)

check <- function(row, program, call) {
  message <- tryCatch(
    suppressWarnings(suppressMessages({
      utils::capture.output(force(call)); "yes"
    })),
    error = function(e) paste("no:", gsub("[[:space:]]+", " ", conditionMessage(e)))
  )
  cat(row, program, substr(message, 1, 70), sep = "\t"); cat("\n")
}
linear_lrm <- lrm(y ~ temp + contact, data = wine, x = TRUE, y = TRUE)
m <- function(link) clm(rating ~ temp + contact, data = wine, link = link)
v <- function(family, ...) vglm(rating ~ temp + contact, family, data = wine, ...)

link <- "cumulative model with logit, probit, cloglog, loglog, cauchit"
for (f in c("logit", "probit", "cloglog", "loglog", "cauchit")) check(link, "clm", m(f))
# VGAM reads the name of a link from the call
for (f in c("logitlink", "probitlink", "clogloglink", "logloglink", "cauchitlink"))
  check(link, "VGAM", v(eval(call("cumulative", parallel = TRUE, link = f))))
for (f in c("logistic", "probit", "cloglog", "loglog", "cauchit"))
  check(link, "rms", orm(y ~ temp + contact, data = wine, family = f))
row <- "link with an estimated parameter"
check(row, "clm", m("log-gamma")); check(row, "clm", m("Aranda-Ordaz"))
row <- "partial proportional odds (nominal effects)"
check(row, "clm", clm(rating ~ temp, nominal = ~ contact, data = wine))
check(row, "VGAM", v(cumulative(parallel = FALSE ~ contact)))
row <- "effects on the scale"
check(row, "clm", clm(rating ~ temp, scale = ~ contact, data = wine))
row <- "symmetric and equidistant thresholds"
check(row, "clm", clm(rating ~ temp, threshold = "symmetric", data = wine))
check(row, "clm", clm(rating ~ temp, threshold = "equidistant", data = wine))
row <- "stopping ratios, forward and backward"
for (reverse in c(FALSE, TRUE)) {
  check(row, "VGAM", v(sratio(parallel = TRUE, reverse = reverse)))
}
row <- "adjacent categories"
check(row, "VGAM", v(acat(parallel = TRUE)))
row <- "random intercepts and slopes"
check(row, "clm", clmm(rating ~ temp + (1 | judge), data = wine))
row <- "lasso and elastic net, paths"
check(row, "rms", pentrace(linear_lrm, c(0, 1, 2)))
row <- "formulas, `y ~ 1`"
check(row, "clm", clm(rating ~ 1, data = wine))
check(row, "VGAM", vglm(rating ~ 1, cumulative(parallel = TRUE), data = wine))
check(row, "rms", lrm(y ~ 1, data = wine))
row <- "`ns`, `bs`, `poly`"
for (term in c("ns(x, df = 3)", "bs(x, df = 4)", "poly(x, 2)")) {
  text <- paste("rating ~", term)
  check(row, "clm", clm(as.formula(text), data = wine))
  check(row, "VGAM", vglm(as.formula(text), cumulative(parallel = TRUE), data = wine))
  check(row, "rms", orm(as.formula(sub("rating", "y", text)), data = wine))
}
row <- "`rcs`, `cr`"
check(row, "rms", orm(y ~ rcs(x, 4), data = wine))
check(row, "clm", clm(rating ~ rcs(x, 4), data = wine))
row <- "smoothing penalties"
check(row, "VGAM", vgam(rating ~ s(x), cumulative(parallel = TRUE), data = wine))
row <- "polynomial contrasts of ordered predictors"
wine$ox <- cut(wine$x, 4, ordered_result = TRUE)
check(row, "clm", clm(rating ~ ox, data = wine))
check(row, "VGAM", vglm(rating ~ ox, cumulative(parallel = TRUE), data = wine))
row <- "scale or nominal effects without a location effect"
check(row, "clm", clm(rating ~ 1, nominal = ~ temp, scale = ~ contact, data = wine))
row <- "offset"
check(row, "clm", clm(rating ~ temp + offset(o), data = wine))
check(row, "VGAM", v(cumulative(parallel = TRUE), offset = wine$o))
check(row, "rms", orm(y ~ temp + offset(o), data = wine))
row <- "offsets that differ by threshold"
check(row, "VGAM", v(cumulative(parallel = TRUE), offset = O))
check(row, "clm", stopifnot(is.matrix(model.offset(model.frame(
  clm(rating ~ temp + offset(O), data = wine))))))
row <- "Wald and profile intervals"
fit <- m("logit"); parallel <- v(cumulative(parallel = TRUE))
check(row, "clm", confint(fit)); check(row, "clm", confint(fit, type = "Wald"))
check(row, "VGAM", confint(parallel))
check(row, "VGAM", confint(parallel, method = "profile"))
linear <- orm(y ~ temp + contact, data = wine, x = TRUE, y = TRUE)
check(row, "rms", confint(linear))
row <- "sandwich, clusters"
check(row, "rms", robcov(linear, wine$judge))
check(row, "rms", bootcov(linear_lrm, B = 10))
row <- "`anova`, `drop1`, `add1`, `step`"
check(row, "clm", drop1(fit)); check(row, "clm", anova(fit, m("logit")))
check(row, "clm", step(fit, trace = 0))
check(row, "VGAM", drop1(parallel)); check(row, "VGAM", step4(parallel, trace = FALSE))
check(row, "rms", fastbw(linear))
row <- "tests of all scale effects"
check(row, "clm", scale_test(fit))
row <- "proportional odds: Brant, likelihood ratio"
check(row, "clm", nominal_test(fit))
row <- "contrasts of levels: Tukey, Holm, Bonferroni"
dd <- datadist(wine[c("temp", "contact")]); options(datadist = "dd")
named <- orm(y ~ temp + contact, data = wine, x = TRUE, y = TRUE)
check(row, "rms", contrast(named, list(temp = "warm"), list(temp = "cold")))
row <- "probability-scale residuals"
check(row, "rms", resid(orm(y ~ temp, data = wine, x = TRUE, y = TRUE), "pseudo.dep"))
row <- "score and deviance residuals"
check(row, "VGAM", resid(parallel, type = "working"))
check(row, "VGAM", resid(parallel, type = "pearson"))
check(row, "rms", resid(named, "score"))
row <- "leverage, Cook's distance, one-step changes"
check(row, "VGAM", hatvalues(parallel)); check(row, "VGAM", dfbeta(parallel, maxit.new = 1))
check(row, "rms", resid(linear_lrm, "dfbetas"))
