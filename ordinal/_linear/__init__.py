"""Linear cumulative models: P(y <= j | x) = F(theta_j - x'beta).

formula, expressions      formulas and the arithmetic in them
contrasts, training       tables as columns of numbers, and the training rows
design, matrices          columns, thresholds and parameters of a model
likelihood                mean loss with its gradient and Hessian
rowwise, chunked          the same for sparse rows and for rows in chunks
bordered                  Hessians by many thresholds
newton                    Newton's method
elastic_net               coordinate descent for the elastic net
fitting                   choice of a form of the loss and of a solver
collinear, separation     collinear columns and separated ranks
estimates, model          fields and predictions of what `fit_pom` returns
path                      what `fit_pom_path` returns
predictors                scores, predictors and probabilities of rows
inference, sandwich       standard errors and tests
odds, nested, profile     tests of proportional odds, of nested models; profiles
margins, averages         average probabilities and marginal effects
tables                    printed results
remembered                training rows that a model keeps for refits
thresholded, score_model  loss and model of LIT and LAT
hierarchy                 path of penalties of OFMHS
pair_model, pair_scores   model of OFMHS and its scores

Imports `_model` and what stands below. `linear`, `logistic` and `ofmhs` import it.
"""
