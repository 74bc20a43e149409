# Figures of R for tests of terms and choices of terms, printed for tests/test_pom_steps.py:
#
#     Rscript tests/reference/steps.R
#
# It needs the packages ordinal, MASS, emmeans and multcomp.
suppressMessages({
  library(ordinal)
  library(MASS)
  library(emmeans)
})
options(digits = 12, width = 150)
exact <- list(gradTol = 1e-12)
fit <- clm(Sat ~ Infl + Type + Cont, weights = Freq, data = housing, control = exact)
show <- function(x) print(as.data.frame(x), digits = 12)
show(drop1(fit, test = "Chisq"))
show(scale_test(fit))
show(nominal_test(fit))
base <- clm(Sat ~ Infl, weights = Freq, data = housing, control = exact)
show(add1(base, ~ Infl + Type + Cont, test = "Chisq"))
big <- clm(Sat ~ (Infl + Type + Cont)^3, weights = Freq, data = housing, control = exact)
show(drop1(big, test = "Chisq"))
end <- step(big, trace = 0)
print(formula(end)); print(c(AIC(end), logLik(end)))
print(formula(step(big, trace = 0, k = log(1681))))
show(anova(big, base, fit))
for (adjust in c("tukey", "bonferroni", "holm", "none"))
  show(summary(pairs(emmeans(fit, "Type"), adjust = adjust, reverse = TRUE), infer = TRUE))
# the quantile of simultaneous intervals
own <- -(1:2)
set.seed(1)
all <- multcomp::glht(multcomp::parm(coef(fit)[own], vcov(fit)[own, own]), diag(6))
print(attr(confint(all)$confint, "calpha"))

# contrasts within the levels of another factor
within <- clm(Sat ~ Infl * Cont + Type, data = housing, weights = Freq)
pairs_within <- summary(pairs(emmeans(within, "Infl", by = "Cont")))
print(pairs_within$estimate, digits = 13)
print(pairs_within$p.value, digits = 12)

# Random effects: drop1 of a mixed model
data(wine)
mixed <- clmm(rating ~ temp + contact + (1 | judge), wine, nAGQ = 9)
show(drop1(mixed, test = "Chisq"))
