# Figures of lme4 for GLMER of tests/test_clmm_ratio.py:
#
#     Rscript tests/reference/clmm_ratio.R
suppressMessages({
  library(ordinal)
  library(lme4)
})
data(wine)
y <- as.integer(wine$rating)
expanded <- function(backward) do.call(rbind, lapply(seq_along(y), function(i) {
  s <- if (backward) max(y[i] - 1, 1):4 else 1:min(y[i], 4)
  cbind(wine[rep(i, length(s)), c("temp", "contact", "judge", "bottle")],
        s = factor(s, levels = 1:4), beyond = as.integer(y[i] > s))
}))
d <- expanded(FALSE)  # TRUE for "backward"
d$touch <- as.numeric(d$contact == "yes")
tight <- glmerControl(optimizer = "bobyqa", check.conv.grad = "ignore",
  optCtrl = list(rhobeg = 1e-3, rhoend = 1e-9, maxfun = 1e5), tolPwrss = 1e-12)
m <- glmer(beyond ~ 0 + s + temp + contact + (1 | judge), d, binomial, nAGQ = 1,
           control = tight)  # or another of the entries
print(c(fixef(m)[5:6], as.data.frame(VarCorr(m))$sdcor, logLik(m)), digits = 9)
