"""Cumulative models P(y <= j | x) = F(theta_j - f(x)): likelihood and minimisation.

design, matrices       columns, thresholds and parameters of a linear model
likelihood             mean loss, its gradient, its Hessian, which is bordered with
                       many thresholds; probabilities of all ranks
rowwise                the same for sparse rows and for rows in chunks
elastic_net            coordinate descent for the elastic net
fitting                Newton's method; choice of a form of the loss, of a solver and of
                       starting values; thresholds that keep their order at rows
collinear, separation  collinear columns and separated ranks
pooling                thresholds between ranks without weight, of intervals
recession              limit of a fit whose ranks are separated

Imports `_model` and what stands below.
"""
